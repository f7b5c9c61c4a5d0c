"""WHIP (RFC 9725), with a plain HTTP client and aiortc as the sender."""

from __future__ import annotations

import asyncio

import pytest
from aiortc import RTCSessionDescription

from realtime.pipelines.clock import SystemClock
from realtime.testing import FakeTrack, ManualClock
from realtime.testing.loopback import connected, make_peer, on_loopback
from realtime.web import IceServer, WebLimits

SDP = {"Content-Type": "application/sdp"}
FRAGMENT = {"Content-Type": "application/trickle-ice-sdpfrag"}


@pytest.fixture
async def sender():
    """An encoder: sends sound and pictures, wants nothing."""
    pc = make_peer()
    clock = SystemClock()
    tracks = [FakeTrack.audio(bytes(96_000 * 60), clock=clock), FakeTrack.video(seconds=600, fps=10, clock=clock)]
    for track in tracks:
        pc.addTransceiver(track, direction="sendonly")
    with on_loopback():
        await pc.setLocalDescription(await pc.createOffer())
    yield pc
    for track in tracks:
        track.stop()
    await pc.close()


async def test_a_sender_publishes_is_heard_and_hangs_up(serve, http, model, sender):
    served = await serve()
    created = await http.post(f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP)
    assert created.status_code == 201
    assert created.headers["content-type"].startswith("application/sdp")
    assert created.headers["accept-patch"] == "application/trickle-ice-sdpfrag"
    assert created.headers["etag"].startswith('"')
    location = created.headers["location"]
    await sender.setRemoteDescription(RTCSessionDescription(created.text, "answer"))
    async with asyncio.timeout(60):
        await connected(sender)
        await model.hears_audio(24_000)
    (running,) = served.bot.calls.values()
    assert set(running.session.statistics().tracks) == {"microphone", "camera"}
    assert (await http.delete(served.url + location)).status_code == 200
    assert len(served.bot.calls) == 0
    assert (await http.delete(served.url + location)).status_code == 404


async def test_candidates_are_trickled_in_by_patch(serve, http, sender):
    served = await serve()
    lines = sender.localDescription.sdp.splitlines(keepends=True)
    bare = "".join(line for line in lines if "candidate" not in line)
    created = await http.post(f"{served.url}/whip", content=bare, headers=SDP)
    await sender.setRemoteDescription(RTCSessionDescription(created.text, "answer"))
    url = served.url + created.headers["location"]
    candidates = [line for line in dict.fromkeys(lines) if line.startswith("a=candidate")]
    ufrag = next(line for line in lines if line.startswith("a=ice-ufrag"))
    fragment = ufrag + "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n" + "".join(candidates) + "a=end-of-candidates\r\n"
    patched = await http.patch(url, content=fragment, headers=FRAGMENT | {"If-Match": created.headers["etag"]})
    assert patched.status_code == 204
    async with asyncio.timeout(60):
        await connected(sender)


async def test_what_cannot_be_patched_is_refused(serve, http, sender):
    served = await serve()
    created = await http.post(f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP)
    url = served.url + created.headers["location"]
    tagged = FRAGMENT | {"If-Match": created.headers["etag"]}
    assert (await http.patch(url, content="a=x", headers=tagged | SDP)).status_code == 415
    assert (await http.patch(url, content="a=x", headers=FRAGMENT)).status_code == 428
    assert (await http.patch(url, content="a=x", headers=FRAGMENT | {"If-Match": '"other"'})).status_code == 412
    several = FRAGMENT | {"If-Match": f'"other", {created.headers["etag"]}'}
    assert (await http.patch(url, content="a=x", headers=several)).status_code == 204
    for malformed in ("", "nonsense", '{"candidate": 1}', "a=x\r\nnonsense"):
        assert (await http.patch(url, content=malformed, headers=tagged)).status_code == 400
    known = next(line for line in sender.localDescription.sdp.splitlines() if line.startswith("a=ice-ufrag"))
    other = f"{known}\r\na=ice-pwd:{'x' * 24}\r\n"
    assert (await http.patch(url, content=other, headers=tagged)).status_code == 422
    assert (await http.patch(f"{served.url}/whip/wrong", content="", headers=tagged)).status_code == 404
    many = "a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n" * 100
    assert (await http.patch(url, content=many, headers=tagged)).status_code == 413


@pytest.mark.parametrize("any_session", [True, False])
async def test_an_ice_restart_is_refused_and_the_call_goes_on(serve, http, model, sender, any_session):
    """RFC 9725: 422, since candidates can be trickled and ICE cannot be restarted; the ICE session stays as it is."""
    served = await serve()
    created = await http.post(f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP)
    await sender.setRemoteDescription(RTCSessionDescription(created.text, "answer"))
    url = served.url + created.headers["location"]
    known = next(line for line in sender.localDescription.sdp.splitlines() if line.startswith("a=ice-ufrag"))
    tag = "*" if any_session else created.headers["etag"]
    fragment = f"{known[:-1]}\r\na=ice-pwd:{'x' * 24}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
    refused = await http.patch(url, content=fragment, headers=FRAGMENT | {"If-Match": tag})
    assert refused.status_code == 422
    assert "etag" not in refused.headers
    async with asyncio.timeout(60):
        await connected(sender)
        await model.hears_audio(24_000)
    assert (await http.delete(url, headers={"If-Match": '"any"'})).status_code == 200


async def test_what_an_address_takes_is_said(serve, http, sender):
    """RFC 9110: a method that is not there is told with those that are; RFC 5789: and a PATCH with its types."""
    served = await serve()
    created = await http.post(f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP)
    endpoint, session = f"{served.url}/whip", served.url + created.headers["location"]
    for url, allowed, refused in (
        (endpoint, {"POST", "OPTIONS"}, ("GET", "HEAD", "PUT", "PATCH", "DELETE")),
        (session, {"PATCH", "DELETE", "OPTIONS"}, ("GET", "HEAD", "PUT", "POST")),
    ):
        for method in refused:
            answer = await http.request(method, url)
            assert answer.status_code == 405
            assert set(answer.headers["allow"].split(", ")) == allowed
        asked = await http.request("OPTIONS", url)
        assert asked.status_code == 204
        assert set(asked.headers["allow"].split(", ")) == allowed
        assert ("accept-post" in asked.headers, "accept-patch" in asked.headers) == (url == endpoint, url == session)


async def test_what_cannot_be_published_is_refused_and_leaves_no_call(serve, http):
    served = await serve()
    for content, headers, status in (
        ("v=0\r\n", {"Content-Type": "text/plain"}, 415),
        ("nonsense", SDP, 400),
        ("v=0\r\n", SDP, 400),
        ("v=0\r\n" + "a=x\r\n" * 20_000, SDP, 413),
        ("v=0\r\n", SDP | {"Origin": "http://evil.example"}, 403),
    ):
        assert (await http.post(f"{served.url}/whip", content=content, headers=headers)).status_code == status
    await served.until_calls(0)
    assert (await http.put(f"{served.url}/whip")).status_code == 405


async def test_options_say_what_may_be_posted_and_the_ice_servers_to_who_may_call(serve, http, monkeypatch):
    monkeypatch.setattr("realtime.web.ice.is_loopback", lambda _: False)
    turn = IceServer(urls=("turn:t.example",), username='a"b', credential="c")
    served = await serve(token="right", ice_servers=[IceServer(urls=("stun:s.example",)), turn])
    closed = await http.request("OPTIONS", f"{served.url}/whip")
    assert (closed.status_code, closed.headers["accept-post"]) == (204, "application/sdp")
    assert "link" not in closed.headers
    opened = await http.request("OPTIONS", f"{served.url}/whip", headers={"Authorization": "Bearer right"})
    links = opened.headers.get_list("link")
    assert links[0] == '<stun:s.example>; rel="ice-server"'
    assert 'username="a\\"b"' in links[1]
    assert 'credential-type="password"' in links[1]


async def test_options_are_no_way_to_try_tokens_and_say_when_the_servers_cannot_be_found_out(serve, http, monkeypatch):
    monkeypatch.setattr("realtime.web.ice.is_loopback", lambda _: False)

    def fail():
        raise ConnectionError

    served = await serve(token="right", ice_servers=fail, limits=WebLimits(requests_per_minute=3), clock=ManualClock())
    right = {"Authorization": "Bearer right"}
    assert (await http.request("OPTIONS", f"{served.url}/whip", headers=right)).status_code == 502
    found = [(await http.request("OPTIONS", f"{served.url}/whip")).status_code for _ in range(3)]
    assert found == [204, 204, 429]
    assert (await http.request("OPTIONS", f"{served.url}/whip", headers=right)).status_code == 429


async def test_a_sender_that_has_gone_ends_its_call(serve, http, sender):
    served = await serve(limits=WebLimits(grace_seconds=600))
    created = await http.post(f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP)
    await sender.setRemoteDescription(RTCSessionDescription(created.text, "answer"))
    async with asyncio.timeout(60):
        await connected(sender)
    await sender.close()
    await served.until_calls(0)


async def test_a_wrong_token_publishes_nothing(serve, http, sender):
    served = await serve(token="right")
    refused = await http.post(f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP)
    assert refused.status_code == 401
    taken = await http.post(
        f"{served.url}/whip", content=sender.localDescription.sdp, headers=SDP | {"Authorization": "Bearer right"}
    )
    assert taken.status_code == 201
