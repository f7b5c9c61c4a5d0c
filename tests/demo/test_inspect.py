"""`realtime inspect`: a written context, in the terminal and as a page (issue "the conversation as values", item 7)."""

from __future__ import annotations

import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rich.console import Console

from realtime.chat.context import ChatContext
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.window import ContextWindow
from realtime.demo.inspect import inspect_file, main, show
from realtime.demo.inspect_terminal import thumbnail
from realtime.errors import ArgumentError, MissingExtraError, UserError

U, A, T = ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
EVIL = "<script>alert(1)</script>\x1b[2J\u202e"


def picture(color: tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> ImageContent:
    data = io.BytesIO()
    Image.new("RGB", size, color).save(data, "PNG")
    return ImageContent.from_bytes(data.getvalue(), "image/png")


RED = picture((255, 0, 0))


@pytest.fixture
def context() -> ChatContext:
    context = ChatContext(
        [
            ChatMessage(ChatRole.SYSTEM, "You see the camera.", "s1"),
            ChatMessage(U, "what is this? 👨‍👩‍👧 日本", "u1", created_at=1_700_000_000.0, audio=AudioContent.from_pcm(bytes(4800), 24_000)),
            ChatMessage(U, "", "f1", images=[RED], source="camera"),
            ChatMessage(A, "One moment.", "a1", [FunctionCall("look_up", '{"what": "cup"}', "c1")], agent_id="guide", thinking="hm"),
            ChatMessage(T, "three cups", "r1", (), "c1", tool_name="look_up", is_error=True),
            ChatMessage(A, "It is a red", "a2", interrupted=True, heard_ms=900, unheard="cup"),
            ChatMessage(U, EVIL, "u2", images=[ImageContent.from_url("https://example.com/a.jpg", "high")]),
            ChatMessage(U, "", "u3"),
        ]
    )  # fmt: skip
    context.add_handoff("cook", "guide", "hungry")
    return context


@pytest.fixture
def written(context: ChatContext, tmp_path: Path) -> Path:
    path = tmp_path / "context.json"
    path.write_text(json.dumps(context.to_dict()), encoding="utf-8")
    return path


def drawn(path: Path, *, colors: bool = False, window: ContextWindow | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=colors, color_system="truecolor" if colors else None)
    show(path, window=window, console=console)
    return out.getvalue()


def test_words_rounds_pictures_and_sound_are_told(written):
    text = drawn(written)
    for said in (
        "what is this? 👨‍👩‍👧 日本",
        "2023-11-14 22:13:20 UTC",
        "0.1 s of sound at 24000 Hz",
        "64×48 image/png",
        "from camera",
        'calls look_up({"what": "cup"})  c1',
        "result of look_up c1",
        "an error",
        "interrupted after 900 ms",
        "not heard: cup",
        "picture at https://example.com/a.jpg",
        "agent guide",
        "(nothing was said)",
        "handed off: guide → cook: hungry",
        "8 messages, 3 spoken turns",
    ):
        assert said in text
    assert text.count("kept: everything fits") == 8


def test_a_result_stands_below_its_call(written):
    lines = drawn(written).splitlines()
    called = next(line for line in lines if "calls look_up" in line)
    result = next(line for line in lines if "three cups" in line)
    assert len(result) - len(result.lstrip()) > len(called) - len(called.lstrip())


def test_what_a_window_would_trim_is_told_with_the_reason(written):
    text = drawn(written, window=ContextWindow(max_context_items=4, keep_recent_turns=1))
    assert "kept: an instruction" in text
    assert "trimmed: an old frame" in text
    assert "the window keeps 4 messages" in text


def test_nothing_that_people_wrote_steers_the_terminal(written):
    text = drawn(written, colors=True)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "<script>alert(1)</script>" in text


def test_a_picture_is_drawn_with_half_blocks_where_there_are_colors(written):
    assert "▀" not in drawn(written)
    assert "\x1b[38;2;255;0;0;48;2;255;0;0m▀" in drawn(written, colors=True)


@pytest.mark.parametrize(
    ("size", "cells"), [((64, 48), (43, 16)), ((1, 1), (1, 1)), ((3, 5), (3, 3)), ((2000, 10), (48, 1))]
)
def test_a_thumbnail_keeps_its_shape_within_48_columns_and_16_lines(size, cells):
    small = thumbnail(picture((1, 2, 3), size))
    assert small is not None
    lines = small.plain.split("\n")
    assert (max(map(len, lines)), len(lines)) == cells


def test_a_thumbnail_is_turned_as_its_camera_was():
    data = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20), (9, 9, 9)).save(data, "JPEG", exif=exif)
    small = thumbnail(ImageContent.from_bytes(data.getvalue(), "image/jpeg"))
    assert small is not None
    lines = small.plain.split("\n")
    assert len(lines) * 2 > len(lines[0])


@pytest.mark.parametrize(
    "image",
    [
        ImageContent.from_url("https://example.com/a.jpg"),
        ImageContent.from_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(50), "image/jpeg"),
        ImageContent.from_bytes(RED.data[:60], "image/png"),
        ImageContent.from_bytes(RED.data[:16] + (40_000).to_bytes(4, "big") * 2 + RED.data[24:], "image/png"),
    ],
)
def test_what_cannot_be_decoded_or_is_too_large_is_no_thumbnail(image):
    assert thumbnail(image) is None


def test_whatever_a_decoder_raises_is_no_thumbnail(monkeypatch):
    monkeypatch.setattr("PIL.ImageOps.exif_transpose", lambda _image: {}["a tag"])
    assert thumbnail(RED) is None


class Page(HTMLParser):
    """What a page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        self.words += data


def test_a_page_holds_the_pictures_and_the_sound_and_nothing_foreign(written, tmp_path, capsys):
    target = tmp_path / "context.html"
    assert main([str(written), "--html", str(target), "--max-context-items", "4", "--keep-recent-turns", "1"]) == 0
    text = target.read_text(encoding="utf-8")
    page = Page(text)
    assert page.tags.count("article") == 8
    assert [source.split(",")[0] for source in page.sources] == ["data:audio/wav;base64", "data:image/png;base64"]
    assert RED.url in page.sources
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.words
    assert "picture at https://example.com/a.jpg" in page.words
    assert "handed off: guide → cook: hungry" in page.words
    assert "Content-Security-Policy" in text
    assert text.count("trimmed: an old frame") == 1
    assert "written: " in capsys.readouterr().out
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", text)


def test_the_command_draws_on_stdout(written, capsys):
    assert main([str(written), "--counter", "estimate"]) == 0
    assert "three cups" in capsys.readouterr().out


def test_a_list_of_transport_messages_is_a_context_too(tmp_path):
    path = tmp_path / "messages.json"
    path.write_text('\ufeff[{"role": "user", "content": "hi"}]', encoding="utf-8")
    inspection = inspect_file(path)
    assert [one.message.content for one in inspection.messages] == ["hi"]
    assert inspection.summary == "1 message, 1 spoken turn, 2 tokens"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"7", "no context"),
        (b"{}", "no context"),
        (b'["x"]', "no context"),
        (b'{"items": 7}', "no context"),
        (b'{"items": [], "handoffs": [3]}', "no context"),
        (b'[{"role": "user", "provider_data": ' + b'{"a":' * 400 + b"1" + b"}" * 401 + b"]", "no context"),
    ],
)
def test_what_is_no_context_is_one_clear_line(tmp_path, content, words):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        show(path)
    assert "broken.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_a_page_that_cannot_be_written(tmp_path, written):
    with pytest.raises(UserError, match=r"missing\.json cannot be read"):
        main([str(tmp_path / "missing.json")])
    with pytest.raises(UserError, match="cannot be written"):
        show(written, html=tmp_path / "no" / "such" / "folder.html")
    with pytest.raises(ArgumentError, match="html must be the path of a file"):
        show(written, html="")


@pytest.mark.parametrize("options", [["--max-tokens", "-1"], ["--keep-recent-turns", "-1"]])
def test_limits_that_cannot_be_are_refused_by_name(written, options):
    with pytest.raises(ArgumentError, match=f"^{options[0]} must be"):
        main([str(written), *options])


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--counter", "sheep"], ["a", "--max-tokens", "many"]])
def test_options_that_nobody_knows_are_one_line_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("realtime inspect: ")
    assert said.count("\n") == 1


def test_drawing_needs_its_extra_and_a_page_does_not(written, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "realtime.demo.inspect_terminal", raising=False)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtraError, match="demo"):
        show(written)
    show(written, html=tmp_path / "page.html")


def test_a_written_call_of_any_size_is_read_back(context: ChatContext, tmp_path: Path):
    big: Any = ChatContext([*context.messages(), *(ChatMessage(U, f"more {at}", images=[RED]) for at in range(200))])
    path = tmp_path / "big.json"
    path.write_text(json.dumps(big.to_dict()))
    assert len(inspect_file(path).messages) == 208
