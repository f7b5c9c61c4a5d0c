"""The planned renewal of a connection before the provider's deadline (behaviour.md L3).

Owns: when a connection is renewed. Driven by `pipelines/link.py` for as long as a connection lasts, and by the clock. It
never opens one: it is given how.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

from realtime.errors import LinkLost, RealtimeError
from realtime.pipelines.clock import Clock, Deadline
from realtime.pipelines.connection import Connection
from realtime.wire.base import Resumption

__all__ = ["renew_in_time"]

_LEAD_SECONDS = 60.0
"""A quiet moment is looked for this long before the provider's deadline (at most half of the connection's life)."""
_LAST_SECONDS = 5.0
"""… and the connection is renewed this long before it whatever is going on."""
_LOOK_SECONDS = 0.5


async def renew_in_time(
    connection: Connection,
    *,
    clock: Clock,
    is_quiet: Callable[[], bool],
    connect: Callable[[Resumption | None], Awaitable[Connection]],
    retry_seconds: float,
) -> NoReturn:
    """Before the deadline, at a quiet moment, let a new connection be opened that takes over (`Connection.follower`).

    Args:
        connection: The present one; without a deadline this waits for ever.
        clock: What deadlines are measured by.
        is_quiet: Whether nobody speaks and nothing is waited for.
        connect: Opens another connection, to the same conversation if it can be resumed.
        retry_seconds: How long to wait after an attempt that failed.

    Raises:
        LinkLost: It is time to go on with the new connection; or the deadline passed and there is none.
    """
    await _await_lead(connection, clock)
    while not is_quiet():
        assert connection.expires_at is not None
        life = connection.expires_at - connection.opened_at
        latest = connection.expires_at - min(_LAST_SECONDS, life / 10)
        if clock.now() >= latest:
            break
        await clock.sleep_until(min(latest, clock.now() + _LOOK_SECONDS))
    while connection.follower is None:
        try:
            connection.follower = await connect(connection.resumption())
        except RealtimeError as error:
            if clock.now() >= (connection.expires_at or 0.0):
                raise LinkLost("the provider's deadline passed before a new connection was made") from error
            await clock.sleep_until(clock.now() + retry_seconds)
    raise LinkLost("renewed before the provider's deadline")


async def _await_lead(connection: Connection, clock: Clock) -> None:
    """Wait until the end of the connection is near, whenever and however often the provider says when that is."""
    while True:
        connection.expiry_moved.clear()
        expires_at = connection.expires_at
        if connection.is_leaving:
            return
        if expires_at is None:
            await connection.expiry_moved.wait()
            continue
        lead = min(_LEAD_SECONDS, (expires_at - connection.opened_at) / 2)
        try:
            async with Deadline(clock, expires_at - lead):
                await connection.expiry_moved.wait()
        except TimeoutError:
            return
