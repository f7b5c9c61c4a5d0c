"""Answers the phone: a server for the media streams of a telephone provider (Twilio's Media Streams and those like them).

Tell the provider to stream each call both ways; at Twilio by this answer to an incoming call:
    <Response><Connect><Stream url="wss://your.host/" /></Connect></Response>

Run:  python examples/phone_call.py --port 8765                        (starts the local websocket LLM)
      python examples/phone_call.py --port 8765 --model openai:gpt-realtime
"""

from __future__ import annotations

import argparse
import asyncio

from websockets.asyncio.server import ServerConnection, serve

from realtime import RealtimeSession, TelephonyStream
from realtime.events import DtmfReceived, MessageCommitted, ReplyInterrupted, TrackEnded


async def answer(websocket: ServerConnection, model: str) -> None:
    """Hold one call, from the first ring to the hang-up."""
    call = await TelephonyStream.open(websocket)
    print(f"call {call.call_id}: answered", flush=True)
    async with RealtimeSession(model, instructions="You answer the phone. Be brief.") as session:
        session.attach(call)
        async for event in session:
            match event:
                case DtmfReceived(digit=digit):
                    print(f"call {call.call_id}: key {digit}", flush=True)
                    await session.send(f"The caller pressed the key {digit}.")
                case MessageCommitted(message=message) if message.content:
                    print(f"call {call.call_id}: {message.role.value}: {message.content}", flush=True)
                case ReplyInterrupted(heard_ms=heard_ms):
                    print(f"call {call.call_id}: cut off after {heard_ms} ms", flush=True)
                case TrackEnded():
                    break
                case _:
                    pass
    print(f"call {call.call_id}: over, {call.statistics().sent_ms} ms spoken", flush=True)


async def listen(port: int, model: str, calls: int) -> None:
    """Answer calls, many at once; end after so many (0: never)."""
    over = asyncio.Semaphore(0)

    async def handle(websocket: ServerConnection) -> None:
        try:
            await answer(websocket, model)
        finally:
            over.release()

    async with serve(handle, "127.0.0.1", port, compression=None) as server:
        print(f"listening on ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        for _ in range(calls):
            await over.acquire()
        if not calls:
            await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8765, help="behind a proxy that speaks TLS; 0: any that is free")
    parser.add_argument("--model", default="local", help="a model's name, or a websocket LLM's address")
    parser.add_argument("--calls", type=int, default=0, help="end after so many calls; 0: never")
    given = parser.parse_args()
    asyncio.run(listen(given.port, given.model, given.calls))


if __name__ == "__main__":
    main()
