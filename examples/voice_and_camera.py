"""A voice and camera bot whose user is a file: sound as the microphone, pictures as the camera, the reply as a WAV file.

Any aiortc track is added the same way; with a browser, `session.attach(peer)` takes all its tracks at once.

Run:  python examples/voice_and_camera.py question.wav street.mp4      (starts the local websocket LLM)
      python examples/voice_and_camera.py question.wav street.mp4 --url ws://127.0.0.1:8765/v1/realtime
"""

from __future__ import annotations

import argparse
import asyncio
from fractions import Fraction
from pathlib import Path
from typing import Any

from aiortc.contrib.media import MediaPlayer
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame

from realtime import RealtimeSession
from realtime.events import FrameKept, MessageCommitted, TurnCompleted
from realtime.pcm import wav_bytes


class ThenSilence(MediaStreamTrack):
    """A microphone that stays open when the file is over, so that the end of the sentence can be heard."""

    kind = "audio"

    def __init__(self, file: Any) -> None:
        super().__init__()
        self.file = file

    async def recv(self) -> AudioFrame:
        """The file's next frame, or 20 ms of silence."""
        if self.file is not None:
            try:
                frame: AudioFrame = await self.file.recv()
                return frame
            except MediaStreamError:
                self.file = None
        await asyncio.sleep(0.02)
        silence = AudioFrame(format="s16", layout="mono", samples=480)
        silence.planes[0].update(bytes(960))
        silence.sample_rate, silence.time_base = 24_000, Fraction(1, 24_000)
        return silence


async def call(model: str, microphone: Path, camera: Path | None) -> bytes:
    """Hold the call until the first reply is over; gives the reply as a WAV file."""
    async with RealtimeSession(model, instructions="You see the user's camera.", retain_images_max=20) as session:
        listening = asyncio.create_task(record(session))
        speech = MediaPlayer(str(microphone)).audio
        assert speech is not None, f"{microphone} holds no sound"
        if camera is not None and (pictures := MediaPlayer(str(camera), loop=True).video) is not None:
            session.add_track(pictures, source="camera")
        session.add_track(ThenSilence(speech), source="microphone")
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
