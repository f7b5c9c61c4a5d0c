"""Whether a turn is over, by its sound alone: how the voice falls, draws a word out, or breaks off.

Owns: `SmartTurn`, the network Smart Turn v3.2 (BSD 2-Clause, Daily; https://github.com/pipecat-ai/smart-turn), whose
weights are inside the package `pipecat-ai`. Of that package only the file is read; nothing of it is imported. Driven by
the listener for semantic turn detection, on the server's worker pool. What the words say is `completeness.py`'s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from realtime.errors import MissingExtraError, UserError
from realtime.local.engines import open_network
from realtime.local.mel import FRAMES_PER_SECOND, RATE_HZ, MelFeatures
from realtime.local.parts import Samples
from realtime.local.weights import check_sha256, package_dir
from realtime.local.workers import FairPool

__all__ = ["INSTALL_LINE", "SmartTurn"]

INSTALL_LINE: Final = "pip install --no-deps pipecat-ai==1.14.0"
"""What installs the weights."""
FILE: Final = Path("audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx")
SHA256: Final = "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f"
"""SHA-256 of the weights in `pipecat-ai==1.14.0`."""
SECONDS: Final = 8
"""It hears the last seconds of a turn; before a shorter one is silence."""
_VARIANCE_FLOOR: Final = 1e-7


class SmartTurn:
    """The embedded `TurnJudge`."""

    rate_hz = RATE_HZ

    def __init__(self, pool: FairPool) -> None:
        """Load the network.

        Args:
            pool: Where the work is done.

        Raises:
            UserError: The weights are not installed (the text names the line that does), or not what was meant.
        """
        try:
            path = package_dir("pipecat", what="Smart Turn", package="pipecat-ai") / FILE
        except MissingExtraError:
            raise UserError(f"Smart Turn is not installed: {INSTALL_LINE}") from None
        if not path.is_file():
            raise UserError(f"pipecat-ai holds no {FILE.name}, which is in this one: {INSTALL_LINE}")
        check_sha256(path, SHA256)
        self._model: Any = open_network(path.read_bytes(), what="Smart Turn")
        self._features = MelFeatures(80)
        self._pool = pool

    async def finished(self, samples: Samples, *, owner: str) -> float:
        """How sure it is, 0..1, that whoever spoke has finished."""
        return await self._pool.run(owner, "soon", self.judge, samples)

    async def aclose(self) -> None:
        """Nothing is held that does not go with it."""

    def judge(self, samples: Samples) -> float:
        """How sure it is, 0..1, here and now. Safe to call from any thread.

        Args:
            samples: A turn so far, 16 kHz, mono, up to the pause behind it.
        """
        heard = np.zeros(SECONDS * RATE_HZ, np.float32)
        newest = samples[-len(heard) :]
        if len(newest):
            heard[-len(newest) :] = newest
        heard = (heard - heard.mean()) / np.sqrt(heard.var() + _VARIANCE_FLOOR)
        features = self._features.extract(heard, SECONDS * FRAMES_PER_SECOND)[np.newaxis]
        return float(self._model.run(None, {"input_features": features})[0][0, 0])
