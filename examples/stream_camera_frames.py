"""A camera without a microphone: frames in, budgets at work, a question at the end.

The pictures are drawn here; a frame of OpenCV, PyAV, numpy or Pillow is sent the same way.

Run:  python examples/stream_camera_frames.py                          (starts the local websocket LLM)
      python examples/stream_camera_frames.py --frames 30 --url ws://127.0.0.1:8765/v1/realtime
"""

from __future__ import annotations

import argparse
import asyncio

from PIL import Image, ImageDraw, ImageFont

from realtime import ContextWindow, EncodeOptions, RealtimeSession, ResizeOptions
from realtime.events import InputRejected, MessagesRemoved


def draw_frame(number: int) -> Image.Image:
    """What the camera sees: a sign that counts."""
    picture = Image.new("RGB", (640, 360), (30, 60, 50))
    font = ImageFont.load_default(size=72)
    ImageDraw.Draw(picture).text((320, 180), f"GATE {number}", font=font, fill="white", anchor="mm")
    return picture


async def stream(model: str, frames: int, keep: int) -> None:
    async with RealtimeSession(
        model,
        instructions="You are shown pictures. Answer in one short sentence.",
        window=ContextWindow(max_tokens=4000),
        retain_images_max=keep,  # never more pictures than this, whatever is sent
        retain_images_every_n=2,  # and only every second one of them
        encode_options=EncodeOptions(format="JPEG", quality=70, resize_options=ResizeOptions(512, 512, mode="fit")),
    ) as session:
        watching = asyncio.create_task(tell_budgets(session))
        for number in range(1, frames + 1):
            await session.send_image(draw_frame(number))  # encoded off the loop; asks for no reply
            kept = sum(bool(message.images) for message in session.context.messages())
            assert kept <= keep, f"{kept} pictures are in the context"
        await session.send("What does the sign say?")
        reply = await session.wait_for_reply()
        print(f"model: {reply.text}")
        kept = sum(bool(message.images) for message in session.all_messages())
        print(f"{frames} pictures sent, {kept} kept, {session.context.estimated_tokens()} tokens in the context")
        await session.aclose()
        await watching


async def tell_budgets(session: RealtimeSession) -> None:
    async for event in session:
        if isinstance(event, MessagesRemoved):
            print(f"{len(event.message_ids)} left: {event.reason}")
        elif isinstance(event, InputRejected):
            print(f"not taken: {event.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="local", help="a websocket LLM; without it, a local one is started")
    parser.add_argument("--frames", type=int, default=12, help="how many pictures are sent")
    parser.add_argument("--keep", type=int, default=3, help="how many of them are kept at most")
    given = parser.parse_args()
    asyncio.run(stream(given.url, given.frames, given.keep))


if __name__ == "__main__":
    main()
