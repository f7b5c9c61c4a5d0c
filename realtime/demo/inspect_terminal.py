"""An inspected context in the terminal, drawn by rich.

Owns: `draw`. Driven by `demo/inspect.py`. A picture is drawn with upper half blocks, two pixels in each, where the
terminal has colors; elsewhere it is told in words.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

from PIL import Image, ImageOps
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from realtime.chat.explain import Explanation
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.demo.inspect_facts import Inspection, about, outcome, picture_facts, printable, sound_facts

__all__ = ["draw", "thumbnail"]

_STYLES: Final[dict[str, str]] = {
    ChatRole.SYSTEM: "yellow",
    ChatRole.DEVELOPER: "yellow",
    ChatRole.USER: "cyan",
    ChatRole.ASSISTANT: "green",
    ChatRole.TOOL: "magenta",
}
_THUMBNAIL: Final = (48, 32)
"""The largest drawn picture: columns, and rows of pixels, of which two make a line."""
_MAX_PIXELS: Final = 64_000_000
"""A larger picture is not decoded."""
_HALF_BLOCK: Final = "▀"


def draw(inspection: Inspection, console: Console | None = None) -> None:
    """Draw a context, message by message."""
    screen = console or Console()
    screen.print(Rule(Text(printable(inspection.name), style="bold")))
    with_pictures = screen.color_system is not None
    for number, one in enumerate(inspection.messages, 1):
        screen.print(_message(number, one, with_pictures=with_pictures))
    for handoff in inspection.handoffs:
        words = f"{handoff.from_agent or '?'} → {handoff.to_agent}" + (f": {handoff.reason}" if handoff.reason else "")
        screen.print(Text(f"handed off: {printable(words)}", style="bold"))
    screen.print(Rule())
    screen.print(Text(inspection.summary, style="bold"))


def _message(number: int, one: Explanation, *, with_pictures: bool) -> RenderableType:
    message = one.message
    style = _STYLES[message.role] if one.kept else "dim"
    head = Text.assemble(
        (f"{number:>4}  ", "dim"),
        (f"{message.role.value:<9}", f"bold {style}"),
        ("  " + " · ".join(about(one)), "dim"),
        ("  " + outcome(one), "dim" if one.kept else "bold red"),
    )
    body = Group(*_body(message, style, with_pictures=with_pictures))
    in_round = message.role is ChatRole.TOOL and one.round_size > 1
    return Group(head, Padding(body, (0, 0, 0, 10 if in_round else 6)))


def _body(message: ChatMessage, style: str, *, with_pictures: bool) -> Iterator[RenderableType]:
    if message.thinking:
        yield Text(printable(message.thinking), style="dim italic")
    if message.content:
        yield Text(printable(message.content), style=style)
    if message.unheard:
        yield Text(f"not heard: {printable(message.unheard)}", style="dim strike")
    for call in message.tool_calls:
        yield Text.assemble(
            ("calls ", "dim"), (printable(call.name), "bold magenta"), f"({printable(call.arguments)})",
            (f"  {printable(call.call_id)}", "dim"),
        )  # fmt: skip
    if message.tool_call_id:
        tool = f"{printable(message.tool_name)} " if message.tool_name else ""
        yield Text(f"result of {tool}{printable(message.tool_call_id)}", style="dim")
    for image in message.images:
        yield Text(picture_facts(image), style="dim")
        drawn = thumbnail(image) if with_pictures else None
        if drawn is not None:
            yield drawn
    if message.audio is not None:
        said = f": “{printable(message.audio.transcript)}”" if message.audio.transcript else ""
        yield Text(sound_facts(message.audio) + said, style="dim")
    if message.is_empty:
        yield Text("(nothing was said)", style="dim")


def thumbnail(image: ImageContent) -> Text | None:
    """A picture of half blocks, or None if it is only an address, too large, or cannot be decoded."""
    size = image.size
    if size is None or size[0] * size[1] > _MAX_PIXELS:
        return None
    try:
        with Image.open(io.BytesIO(image.data)) as opened:
            opened.draft("RGB", (_THUMBNAIL[0] * 2, _THUMBNAIL[1] * 2))
            picture = ImageOps.exif_transpose(opened).convert("RGB")
        picture.thumbnail(_THUMBNAIL)
    except Exception:  # decoders and EXIF parsers, fed with anything, raise anything
        return None
    width, height = picture.size
    drawn = Text()
    for row in range(0, height, 2):
        for column in range(width):
            upper = _color(picture, column, row)
            lower = f" on {_color(picture, column, row + 1)}" if row + 1 < height else ""
            drawn.append(_HALF_BLOCK, style=f"{upper}{lower}")
        drawn.append("\n")
    drawn.rstrip()
    return drawn


def _color(picture: Image.Image, column: int, row: int) -> str:
    red, green, blue = picture.getpixel((column, row))  # type: ignore[misc]
    return f"rgb({red},{green},{blue})"
