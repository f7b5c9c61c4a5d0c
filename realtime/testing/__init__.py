"""The test kit for applications: a clock by hand, tracks, a provider and a caller by script, a connection whose faults you make.

::

    from realtime.testing import Expect, FakeTrack, ManualClock, Reply, ScriptedModel, openai_script

Nothing of it is used by the package itself. `SyntheticPeer` is a user at the other end of a real WebRTC call on this
machine, `ScriptedPhone` a caller with a telephone. `openai_script` builds what a server of OpenAI's protocol says;
`check_wire_format` and `check_transport` are what a provider of your own has to pass.
"""

from __future__ import annotations

from realtime.testing import openai_script
from realtime.testing.clock import ManualClock
from realtime.testing.conformance import check_transport, check_wire_format, mutations, sample_commands
from realtime.testing.loopback import connect, make_peer, on_loopback
from realtime.testing.memory import MemoryEnd, MemoryPair
from realtime.testing.peer import SyntheticPeer
from realtime.testing.peer_script import Pause, Say, Show, Turn
from realtime.testing.phone import ScriptedPhone
from realtime.testing.replay import Replay, ReplayError, replay
from realtime.testing.scripted import Close, Drop, Expect, Reply, ScriptedModel
from realtime.testing.tracks import FakeTrack

__all__ = [
    "Close",
    "Drop",
    "Expect",
    "FakeTrack",
    "ManualClock",
    "MemoryEnd",
    "MemoryPair",
    "Pause",
    "Replay",
    "ReplayError",
    "Reply",
    "Say",
    "ScriptedModel",
    "ScriptedPhone",
    "Show",
    "SyntheticPeer",
    "Turn",
    "check_transport",
    "check_wire_format",
    "connect",
    "make_peer",
    "mutations",
    "on_loopback",
    "openai_script",
    "replay",
    "sample_commands",
]
