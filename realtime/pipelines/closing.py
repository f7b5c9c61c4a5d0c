"""How things end: side by side, each within its time.

Owns: `within`, `most_telling`, `as_lost` and `is_cancelled`. Driven by `pipelines/runtime.py`, `pipelines/link.py` and `pipelines/connection.py`. It never decides what is to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from realtime.errors import LinkLost, ModelError, RealtimeError

__all__ = ["as_lost", "is_cancelled", "most_telling", "within"]

logger = logging.getLogger(__name__)


async def within(seconds: float, *steps: Coroutine[Any, Any, None]) -> None:
    """Take closing steps side by side; one that fails or takes too long does not keep the others."""
    tasks = [asyncio.create_task(step) for step in steps]
    try:
        _, late = await asyncio.wait(tasks, timeout=seconds) if tasks else (None, set[asyncio.Task[None]]())
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        raise
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=0.1)
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is not None:
            logger.warning("a step of closing the session failed", exc_info=task.exception())


def is_cancelled() -> bool:
    """Whether somebody ends the running task, rather than what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def as_lost(error: OSError) -> LinkLost:
    """What a transport of the application's own raised for a connection that is gone, as ours say it; without its frames."""
    lost = LinkLost(str(error) or type(error).__name__)
    lost.__cause__ = error.with_traceback(None)
    return lost


def most_telling(errors: BaseExceptionGroup[RealtimeError | OSError]) -> RealtimeError:
    """Of the errors of a group the refusal, if there is one: it says more than the drop that follows it."""
    found: list[RealtimeError] = []
    waiting: list[RealtimeError | OSError | BaseExceptionGroup[RealtimeError | OSError]] = list(errors.exceptions)
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, RealtimeError):
            found.append(each)
        elif isinstance(each, OSError):
            found.append(as_lost(each))
        else:
            waiting += each.exceptions
    return next((error for error in found if isinstance(error, ModelError)), found[0])
