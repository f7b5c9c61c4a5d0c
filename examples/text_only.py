"""A conversation typed instead of spoken: no tracks, no microphone, one live context.

Run:  python examples/text_only.py                                     (starts the local websocket LLM)
      python examples/text_only.py --url ws://127.0.0.1:8765/v1/realtime "What time is it?"
"""

from __future__ import annotations

import argparse
import asyncio

from realtime import ContextWindow, RealtimeSession
from realtime.events import MessagesRemoved


async def converse(model: str, sentences: list[str], max_tokens: int) -> None:
    async with RealtimeSession(
        model,
        instructions="Answer in one short sentence.",
        window=ContextWindow(max_tokens=max_tokens, keep_recent_turns=3),
    ) as session:
        watching = asyncio.create_task(tell_trims(session))
        for sentence in sentences:
            print(f"you:   {sentence}")
            await session.send(sentence)
            reply = await session.wait_for_reply()
            print(f"model: {reply.text}")
            print(f"       ({session.context.estimated_tokens()} of {max_tokens} tokens in the context)")
        await session.aclose()
        await watching
        print(f"{len(session.all_messages())} messages in the history, {len(session.context)} in the context")


async def tell_trims(session: RealtimeSession) -> None:
    async for event in session:
        if isinstance(event, MessagesRemoved):
            print(f"       {len(event.message_ids)} messages left the context ({event.reason})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="*", default=["Hello!", "My name is Ada.", "What did I say first?"])
    parser.add_argument("--url", default="local", help="a websocket LLM; without it, a local one is started")
    parser.add_argument("--max-tokens", type=int, default=2000)
    given = parser.parse_args()
    asyncio.run(converse(given.url, given.sentences, given.max_tokens))


if __name__ == "__main__":
    main()
