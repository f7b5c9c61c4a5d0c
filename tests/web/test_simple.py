"""``POST /offer``: one offer, one answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiortc import RTCPeerConnection, RTCSessionDescription

from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack
from realtime.testing.loopback import connected, make_peer, on_loopback
from realtime.web import WebLimits


@pytest.fixture
async def sender():
    """A peer with a microphone, and its offer."""
    pc = make_peer()
    track = FakeTrack.audio(bytes(96_000 * 60), clock=SystemClock())
    pc.addTrack(track)
    with on_loopback():
        await pc.setLocalDescription(await pc.createOffer())
    yield pc
    track.stop()
    await pc.close()


async def post(http: Any, served: Any, pc: RTCPeerConnection, **more: Any) -> Any:
    return await http.post(f"{served.url}/offer", json={"sdp": pc.localDescription.sdp, "type": "offer"} | more)


async def test_an_offer_is_answered_and_the_call_runs(serve, http, model, sender):
    served = await serve()
    answer = (await post(http, served, sender)).json()
    assert answer["type"] == "answer"
    await sender.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
    async with asyncio.timeout(60):
        await connected(sender)
        await model.hears_audio(24_000)
    assert list(served.bot.calls) == [answer["call"]]


async def test_a_caller_comes_back_with_its_secret_and_to_no_other_call(serve, http, sender):
    served = await serve()
    answer = (await post(http, served, sender)).json()
    again = await post(http, served, sender, call=answer["call"], secret=answer["secret"])
    assert again.json()["call"] == answer["call"]
    assert len(served.bot.calls) == 1
    refused = await post(http, served, sender, call=answer["call"], secret="wrong")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "gone")
    body = '{"sdp": "v=0", "call": "x", "secret": "\\ud800"}'
    assert (await http.post(f"{served.url}/offer", content=body)).status_code == 404


async def test_a_call_whose_peer_never_came_ends_by_itself(serve, http, sender):
    served = await serve(limits=WebLimits(connect_seconds=0.1, grace_seconds=0.1))
    await post(http, served, sender)
    await served.until_calls(0)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad_message"),
        (b"nonsense", 400, "bad_message"),
        (b"[]", 400, "bad_message"),
        (b"[" * 50_000, 400, "bad_message"),
        (b'{"type": "answer", "sdp": "v=0"}', 400, "bad_message"),
        (b'{"type": "offer"}', 400, "bad_message"),
        (b'{"type": "offer", "sdp": "v=0\\r\\n"}', 400, "bad_message"),
        (b"x" * 200_000, 413, "too_large"),
    ],
)
async def test_what_is_no_offer_is_refused_and_leaves_no_call(serve, http, body, status, code):
    served = await serve()
    refused = await http.post(f"{served.url}/offer", content=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
    await served.until_calls(0)


async def test_a_body_of_no_told_length_is_read_to_the_limit_only(serve, http):
    served = await serve()

    async def endless():
        for _ in range(1_000):
            yield b"x" * 1_000

    refused = await http.post(f"{served.url}/offer", content=endless())
    assert refused.status_code == 413


async def test_pages_from_elsewhere_and_wrong_tokens_are_refused(serve, http, sender):
    served = await serve(token="right")
    headers = {"Origin": "http://evil.example"}
    refused = await http.post(f"{served.url}/offer", content=b"{}", headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "bad_origin")
    for given in ({}, {"Authorization": "Bearer wrong"}):
        refused = await http.post(f"{served.url}/offer", content=b"{}", headers=given)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
    sdp = {"sdp": sender.localDescription.sdp, "type": "offer"}
    taken = await http.post(f"{served.url}/offer", json=sdp, headers={"Authorization": "Bearer right"})
    assert taken.status_code == 200


async def test_a_full_house_says_when_to_call_again(serve, http, sender):
    served = await serve(limits=WebLimits(max_sessions=1))
    await post(http, served, sender)
    refused = await post(http, served, sender)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
