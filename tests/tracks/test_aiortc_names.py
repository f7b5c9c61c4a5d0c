"""What we import of aiortc beside its public names: all of it in one place, and an aiortc without one breaks nothing."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import aioice
import aiortc
import pylibsrtp
import pytest
from aiortc.sdp import candidate_from_sdp

import realtime
from realtime.testing.loopback import make_peer, on_loopback
from realtime.tracks import aiortc_names
from realtime.tracks.aiortc_internals import take_over_sender, unsupported, unsupported_sender
from realtime.tracks.reply import ReplyTrack
from realtime.tracks.reply_out import send_reply
from realtime.tracks.rtp_receiver import receive_directly
from realtime.web.bounds import read_candidate

ROOM = Path(realtime.__file__).parent
LIBRARIES = {"aiortc": aiortc, "aioice": aioice, "pylibsrtp": pylibsrtp}
HOWTO = ROOM.parent / "docs" / "howto-testing.md"


def imported(path: Path) -> set[tuple[str, str]]:
    """What a module imports of these libraries, as (module, name); name is empty for a module as a whole."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in LIBRARIES:
            found |= {(node.module, name.name) for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {(name.name, "") for name in node.names if name.name.partition(".")[0] in LIBRARIES}
    return found


NEEDED = sorted(imported(Path(aiortc_names.__file__)))


def test_the_aiortc_that_is_installed_has_every_name():
    """The loud one: an aiortc without one of them runs on its own receiver and sender."""
    assert aiortc_names.missing == ""
    assert {name for _, name in NEEDED} | {"missing"} == set(aiortc_names.__all__)


def test_everybody_else_imports_public_names_only():
    for path in ROOM.rglob("*.py"):
        if path == Path(aiortc_names.__file__):
            continue
        for module, name in imported(path):
            assert module in LIBRARIES, f"{path.name} imports {module}"
            public: list[str] = LIBRARIES[module].__all__
            assert not name or name in public, f"{path.name} imports {name} of {module}"


def test_nothing_is_imported_that_nobody_needs():
    """Each name is one more that a later aiortc may lack."""
    others = "".join(
        path.read_text(encoding="utf-8") for path in (ROOM / "tracks").rglob("*.py") if path.name != "aiortc_names.py"
    )
    assert {name for _, name in NEEDED if not re.search(rf"\b{name}\b", others)} == set()


def imported_anew() -> Any:
    """The module as a process would have it that imports it now."""
    spec = importlib.util.spec_from_file_location("aiortc_names_anew", aiortc_names.__file__)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("module", "name"), NEEDED)
def test_a_name_that_is_gone_is_said_and_can_still_be_imported(monkeypatch, module, name):
    monkeypatch.delattr(importlib.import_module(module), name)
    names = imported_anew()
    assert name in names.missing
    for each in names.__all__:
        assert hasattr(names, each)
    with pytest.raises(ImportError, match=f"{name} is not to be had: .*{name}"):
        getattr(names, name)()
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        names.nothing_of_the_kind  # noqa: B018


def test_a_module_that_is_gone_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiortc.clock", None)
    assert "aiortc.clock" in imported_anew().missing


async def test_without_a_name_tracks_are_received_and_the_reply_is_sent_by_aiortc(monkeypatch):
    monkeypatch.setattr(aiortc_names, "missing", "cannot import name 'is_rtx'")
    assert unsupported() == unsupported_sender() == "cannot import name 'is_rtx'"
    peer, reply = make_peer(), ReplyTrack(24_000)
    transceiver = peer.addTransceiver("audio")
    assert receive_directly(peer, transceiver.receiver.track, lambda *_: None) is None
    assert take_over_sender(transceiver.sender, lambda *_: None) is None
    send_reply(peer, reply)
    assert "_run_rtp" not in vars(peer.getSenders()[0])
    await peer.close()


CALL = f"""
import asyncio, importlib, re
import aiortc.rtp
del aiortc.rtp.pack_remb_fci

import realtime, realtime.web, realtime.testing
for name in realtime.__all__:
    getattr(realtime, name)

from realtime.tracks import aiortc_names, rtp_receiver
assert "pack_remb_fci" in aiortc_names.missing
took, receive = [], rtp_receiver.receive_directly
def watched(*given):
    took.append(receive(*given))
importlib.import_module("realtime.tracks.peer").receive_directly = watched

page = open({str(HOWTO)!r}, encoding="utf-8").read()
programs = {{"__name__": "howto"}}
for program in re.findall(r"<!-- program: \\w+ -->\\n```python\\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
    exec(program, programs)
asyncio.run(asyncio.wait_for(programs["test_a_call"](), 120))
assert took == [None, None], took
print("the call went well")
"""


def test_a_process_without_one_imports_all_and_holds_a_call():
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "the call went well\n", done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "1 1 udp 2130706431 192.0.2.1 9 typ host",
        "842163049 1 UDP 1677729535 203.0.113.7 46154 typ srflx raddr 10.0.0.2 rport 46154 generation 0 ufrag x network-cost 999",
        "a 2 tcp 1518280447 2001:db8::1 9 typ host tcptype active generation 0",
        "7 1 udp 1 host.local 1 typ relay raddr",
    ],
)
def test_a_candidate_is_read_as_aiortc_reads_it(line):
    theirs = candidate_from_sdp(line)
    theirs.sdpMid = "0"
    assert read_candidate({"candidate": f"candidate:{line}", "sdpMid": "0"}) == theirs


@pytest.mark.parametrize("line", ["", "nonsense", "1 1 udp x 192.0.2.1 9 typ host", "1 1 udp 1 192.0.2.1 9 typ"])
def test_what_is_no_candidate_is_a_value_error(line):
    with pytest.raises(ValueError, match=r"."):
        read_candidate({"candidate": f"candidate:{line}", "sdpMid": "0"})


async def test_peers_of_an_aioice_that_gathers_in_another_way_are_left_alone(monkeypatch):
    monkeypatch.delattr(importlib.import_module("aioice.ice"), "get_host_addresses")
    with on_loopback():
        assert make_peer().signalingState == "stable"
