"""What the server counts: sessions, turns and how long their steps took, as Prometheus text and in the log.

Owns: `Metrics`, `Turn`. Driven by the sessions. Figures only, never content.
"""

from __future__ import annotations

import bisect
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Metrics", "Turn"]

STEPS: Final = ("transcript", "token", "audio")
"""What a turn waits for, in order: the words, the reply's first text, its first audio."""
_BUCKETS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(_BUCKETS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str) -> Iterator[str]:
        seen = 0
        for bound, count in zip((*_BUCKETS, float("inf")), self.counts, strict=True):
            seen += count
            edge = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f'{name}_bucket{{le="{edge}"}} {seen}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {seen}"


class Turn:
    """One turn's clock, from the end of the user's speech on."""

    def __init__(self, metrics: Metrics, owner: str, ended_at: float, now: Callable[[], float]) -> None:
        """Begin at the end of the speech, which lies a silence back."""
        self._metrics = metrics
        self._owner = owner
        self._ended_at = ended_at
        self._now = now
        self.seconds: dict[str, float] = {}
        """Seconds from the end of speech to each step that was reached."""

    def reached(self, step: str) -> None:
        """A step was reached; only its first time counts."""
        if step not in self.seconds:
            self.seconds[step] = self._now() - self._ended_at

    def finish(self, status: str) -> None:
        """The turn's reply is over: count it and write it to the log."""
        self._metrics.count("turns", status=status)
        for step, seconds in self.seconds.items():
            self._metrics.observe(step, seconds)
        shown = " ".join(f"{step}={self.seconds[step] * 1000:.0f}ms" for step in STEPS if step in self.seconds)
        _log.info("turn of %s %s: %s", self._owner, status, shown or "no step was reached")


class Metrics:
    """Counters and histograms of one server."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._counters: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._steps = {step: _Histogram() for step in STEPS}

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        key = (name, tuple(sorted(labels.items())))
        self._counters[key] = self._counters.get(key, 0) + amount

    def observe(self, step: str, seconds: float) -> None:
        """Add how long a step took."""
        if step in self._steps:
            self._steps[step].add(seconds)

    def get(self, name: str, **labels: str) -> int:
        """What a counter stands at."""
        return self._counters.get((name, tuple(sorted(labels.items()))), 0)

    def text(self, gauges: dict[str, float]) -> str:
        """Everything in Prometheus' text format.

        Args:
            gauges: What stands now, by name.
        """
        lines: list[str] = []
        for name, value in gauges.items():
            lines += [f"# TYPE realtime_llm_{name} gauge", f"realtime_llm_{name} {value:g}"]
        names = sorted({name for name, _labels in self._counters})
        for name in names:
            lines.append(f"# TYPE realtime_llm_{name}_total counter")
            for (other, labels), amount in sorted(self._counters.items()):
                if other == name:
                    shown = ",".join(f'{key}="{value}"' for key, value in labels)
                    lines.append(
                        f"realtime_llm_{name}_total{{{shown}}} {amount}"
                        if shown
                        else f"realtime_llm_{name}_total {amount}"
                    )
        for step, histogram in self._steps.items():
            name = f"realtime_llm_{step}_seconds"
            lines.append(f"# HELP {name} From the end of the user's speech to the {step}.")
            lines.append(f"# TYPE {name} histogram")
            lines += histogram.lines(name)
        return "\n".join(lines) + "\n"
