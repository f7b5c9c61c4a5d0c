"""`realtime.web.reading` and `downloads`: nothing holds the loop, nothing grows beyond what was told."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from realtime import ChatContext
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.web import downloads as downloads_module
from realtime.web import reading
from realtime.web.downloads import Downloads


async def test_a_file_that_grows_while_it_is_sent_has_the_size_that_was_told(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_PIECE_BYTES", 4)
    file = tmp_path / "growing"
    file.write_bytes(b"0123456789")
    found = []
    async for piece in reading.read_pieces(file, 10):
        found.append(piece)
        with file.open("ab") as opened:
            opened.write(b"more")
    assert found == [b"0123", b"4567", b"89"]


async def test_a_file_that_has_gone_or_has_an_impossible_name_is_none(tmp_path):
    assert await reading.size_of(tmp_path / "nothing") is None
    assert await reading.read_off_loop(tmp_path / ("a" * 300)) is None


async def test_the_context_is_written_on_another_thread(monkeypatch):
    context = ChatContext([ChatMessage(ChatRole.USER, "\ud800 Hello.")])
    threads = []
    write = downloads_module._context_json
    monkeypatch.setattr(
        downloads_module, "_context_json", lambda *said: threads.append(threading.current_thread()) or write(*said)
    )
    found = await Downloads(SimpleNamespace(context=context), None).read("context.json")
    assert b"Hello." in b"".join([piece async for piece in found.pieces])
    assert threads[0] is not threading.main_thread()
