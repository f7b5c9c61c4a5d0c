"""Two peers of one machine, and no network: what cannot be is an error, and nothing stays changed."""

from __future__ import annotations

import asyncio

import aioice.ice
import pytest

from realtime.testing.loopback import connect, make_peer, on_loopback


async def test_a_peer_that_closes_is_an_error_not_a_wait_for_ever() -> None:
    user, bot = make_peer(), make_peer()
    user.createDataChannel("nothing")
    connecting = asyncio.get_running_loop().create_task(connect(user, bot))
    await asyncio.sleep(0)
    await bot.close()
    with pytest.raises(Exception, match="closed"):
        await connecting
    await user.close()


def test_addresses_are_as_before_once_gathered() -> None:
    before = aioice.ice.get_host_addresses
    with on_loopback():
        assert aioice.ice.get_host_addresses(True, True) == ["127.0.0.1"]
    assert aioice.ice.get_host_addresses is before
