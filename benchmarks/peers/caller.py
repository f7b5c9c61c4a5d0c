"""The user of a benchmark of calls, in a process of its own: sends Opus and VP8 720p30 that were encoded before, and takes what it is sent.

Offers each call on the standard output and takes the answer from the standard input. Every call has a data channel, because FastRTC
waits for one. It does as little as can be: what it takes of the processors, the called side does not have.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from aiortc import RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_receive import CASES, encode_clip, encode_opus
from ready_sender import ReadySender, payloads_of

from realtime.testing.loopback import connected, make_peer, on_loopback

VIDEO = next(case for case in CASES if case.name == os.environ.get("BENCHMARK_VIDEO", "VP8 720p30"))


class Idle(MediaStreamTrack):
    """Stands for what a `ReadySender` sends."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    async def recv(self) -> NoReturn:
        raise MediaStreamError


async def ignore(packet: Any, arrival_time_ms: int) -> None:
    """The reply, as far as the socket: decoding it is not what is measured."""


async def main() -> None:
    lines = asyncio.StreamReader(limit=1 << 22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    opus = payloads_of("audio/opus", 48_000, encode_opus(4))
    clip = payloads_of(f"video/{VIDEO.codec}", 90_000, encode_clip(VIDEO))
    peers: list[RTCPeerConnection] = []
    for number in range(int(sys.argv[1])):
        peer = make_peer()
        peers.append(peer)
        peer.createDataChannel("text")
        voice = peer.addTransceiver(Idle("audio"), direction="sendrecv")
        voice.receiver._handle_rtp_packet = ignore
        camera = peer.addTransceiver(Idle("video"), direction="sendonly")
        codecs = RTCRtpSender.getCapabilities("video").codecs
        camera.setCodecPreferences([c for c in codecs if c.mimeType in {f"video/{VIDEO.codec}", "video/rtx"}])
        with on_loopback():
            await peer.setLocalDescription(await peer.createOffer())
        sdp = peer.localDescription.sdp
        for sender in (
            ReadySender(voice, opus, 50, 48_000, number),
            ReadySender(camera, clip, VIDEO.fps, 90_000, number),
        ):
            sender.extend(sdp)
        print(json.dumps({"sdp": sdp}), flush=True)
        answer = json.loads(await lines.readline())
        await peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
    await connected(*peers)
    print(json.dumps({"connected": len(peers)}), flush=True)
    await lines.read()
    os._exit(0)


asyncio.run(main())
