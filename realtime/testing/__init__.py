"""The test kit for applications: a clock by hand, tracks and a provider by script, a connection whose faults you make.

::

    from realtime.testing import Expect, FakeTrack, ManualClock, Reply, ScriptedModel, openai_script

Nothing of it is used by the package itself. `openai_script` builds what a server of OpenAI's protocol says;
`check_wire_format` and `check_transport` are what a provider of your own has to pass.
"""

from __future__ import annotations

from realtime.testing import openai_script
from realtime.testing.clock import ManualClock
from realtime.testing.conformance import check_transport, check_wire_format, mutations, sample_commands
from realtime.testing.memory import MemoryEnd, MemoryPair
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
    "Replay",
    "ReplayError",
    "Reply",
    "ScriptedModel",
    "check_transport",
    "check_wire_format",
    "mutations",
    "openai_script",
    "replay",
    "sample_commands",
]
