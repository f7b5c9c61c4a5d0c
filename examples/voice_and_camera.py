"""A voice and camera bot whose user is a file: sound as the microphone, pictures as the camera, the reply as a WAV file.

Any aiortc track is added the same way; with a browser, `session.attach(peer)` takes all its tracks at once.

Run:  python examples/voice_and_camera.py question.wav street.mp4      (starts the local websocket LLM)
      python examples/voice_and_camera.py question.wav street.mp4 --url ws://127.0.0.1:8765/v1/realtime
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from aiortc.contrib.media import MediaPlayer

from realtime import RealtimeSession
from realtime.events import FrameKept, MessageCommitted, TurnCompleted
from realtime.pcm import wav_bytes


async def call(model: str, microphone: Path, camera: Path | None) -> bytes:
    """Hold the call until the first reply is over; gives the reply as a WAV file."""
    async with RealtimeSession(model, instructions="You see the user's camera.", retain_images_max=20) as session:
        listening = asyncio.create_task(record(session))
        speech = MediaPlayer(str(microphone)).audio
        assert speech is not None, f"{microphone} holds no sound"
        if camera is not None and (pictures := MediaPlayer(str(camera), loop=True).video) is not None:
            session.add_track(pictures, source="camera")
        session.add_track(speech, source="microphone")
        async for event in session:
            match event:
                case FrameKept():
                    print(f"saw:   {event.source} {event.width}×{event.height} ({event.reason})")
                case MessageCommitted(message=message) if message.content:
                    print(f"{message.role.value}: {message.content}")
                case TurnCompleted(latency=latency):
                    print(f"first audio {latency.first_audio_ms} ms after the end of speech")
                    break
                case _:
                    pass
        await session.aclose()
        return wav_bytes(await listening, session.capabilities.output_rate_hz)


async def record(session: RealtimeSession) -> bytes:
    return b"".join([chunk async for chunk in session.stream_audio()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("microphone", type=Path, help="a file with sound")
    parser.add_argument("camera", type=Path, nargs="?", help="a file with pictures")
    parser.add_argument("--url", default="local", help="a websocket LLM; without it, a local one is started")
    parser.add_argument("--out", type=Path, default=Path("reply.wav"), help="where the reply is written")
    given = parser.parse_args()
    given.out.write_bytes(asyncio.run(call(given.url, given.microphone, given.camera)))
    print(f"the reply is in {given.out}")


if __name__ == "__main__":
    main()
