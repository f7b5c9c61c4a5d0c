"""An inspected context as one HTML page that needs nothing else.

Owns: `page`. Driven by `demo/inspect.py`. Pictures and sound are in the page; whatever people, models or tools wrote is
escaped, and the page may load nothing and run nothing (its content security policy says so), so that a context from
outside can be looked at safely. A picture that is only an address is told, not loaded.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from html import escape
from typing import Final

from realtime.chat.explain import Explanation
from realtime.chat.messages import ChatMessage
from realtime.demo.inspect_facts import Inspection, about, outcome, picture_facts, printable, sound_facts

__all__ = ["page"]

_POLICY: Final = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; padding: 0 1rem; color: #1c1c1c; background: #fff }
h1 { font-size: 1.2rem }
article { border-left: 4px solid #999; margin: 1rem 0; padding: .1rem 1rem }
article.user { border-color: #1673a8 } article.assistant { border-color: #2b8a3e }
article.tool { border-color: #8a3ea8; margin-left: 2rem } article.system, article.developer { border-color: #c28f00 }
article.trimmed { opacity: .55 }
header { color: #666; font-size: .85rem } header b { color: #1c1c1c }
p, pre { margin: .3rem 0; white-space: pre-wrap; overflow-wrap: anywhere }
pre { font: 13px/1.4 ui-monospace, monospace; background: #f4f4f4; padding: .4rem .6rem }
.aside { color: #777 } .unheard { text-decoration: line-through }
figure { margin: .4rem 0 } img { max-width: 100%; max-height: 24rem; display: block } figcaption { color: #666; font-size: .85rem }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #161616 } header b { color: #eee } pre { background: #222 }
}
"""


def page(inspection: Inspection) -> str:
    """Write a context as a page."""
    title = _text(inspection.name)
    articles = "\n".join(_article(number, one) for number, one in enumerate(inspection.messages, 1))
    handoffs = "\n".join(
        f'<p class="aside">handed off: {_text(handoff.from_agent or "?")} → {_text(handoff.to_agent)}'
        f"{': ' + _text(handoff.reason) if handoff.reason else ''}</p>"
        for handoff in inspection.handoffs
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{_text(inspection.summary)}</p>\n"
        f"{articles}\n{handoffs}\n</body>\n</html>\n"
    )


def _article(number: int, one: Explanation) -> str:
    message = one.message
    kept = "" if one.kept else " trimmed"
    facts = " · ".join(map(_text, [*about(one), outcome(one)]))
    head = f"<header>{number} <b>{message.role.value}</b> {facts}</header>"
    return f'<article class="{message.role.value}{kept}">\n{head}\n' + "\n".join(_body(message)) + "\n</article>"


def _body(message: ChatMessage) -> Iterator[str]:
    if message.thinking:
        yield f'<p class="aside"><i>{_text(message.thinking)}</i></p>'
    if message.content:
        yield f"<p>{_text(message.content)}</p>"
    if message.unheard:
        yield f'<p class="aside unheard">{_text(message.unheard)}</p>'
    for call in message.tool_calls:
        yield f'<pre>{_text(call.name)}({_text(call.arguments)})  <span class="aside">{_text(call.call_id)}</span></pre>'
    if message.tool_call_id:
        yield f'<p class="aside">result of {_text(f"{message.tool_name} {message.tool_call_id}".strip())}</p>'
    for image in message.images:
        shown = f'<img alt="" src="{escape(image.url)}">' if image.byte_length else ""
        yield f"<figure>{shown}<figcaption>{_text(picture_facts(image))}</figcaption></figure>"
    if message.audio is not None:
        sound = f"data:audio/wav;base64,{base64.b64encode(message.audio.data).decode('ascii')}"
        words = f": “{message.audio.transcript}”" if message.audio.transcript else ""
        yield (
            f'<figure><audio controls src="{sound}"></audio>'
            f"<figcaption>{_text(sound_facts(message.audio) + words)}</figcaption></figure>"
        )
    if message.is_empty:
        yield '<p class="aside">(nothing was said)</p>'


def _text(text: str) -> str:
    return escape(printable(text))
