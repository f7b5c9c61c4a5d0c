"""The user of a benchmark of calls, in a process of its own: sends Opus and VP8 720p30 that were encoded before, and listens.

Offers each call on the standard output and takes the answer from the standard input. Every call has a data channel, because FastRTC
waits for one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from aiortc import RTCPeerConnection, RTCRtpSender, RTCSessionDescription

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_receive import CASES, PacketTrack, answer_requests, drain, encode_clip, encode_opus

from realtime.testing.loopback import connected, make_peer, on_loopback

VIDEO = next(case for case in CASES if case.name == "VP8 720p30")


async def main() -> None:
    lines = asyncio.StreamReader(limit=1 << 22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    opus, clip = encode_opus(4), encode_clip(VIDEO)
    peers: list[RTCPeerConnection] = []
    drains: set[asyncio.Task[None]] = set()
    for _ in range(int(sys.argv[1])):
        peer = make_peer()
        peers.append(peer)
        peer.createDataChannel("text")
        peer.addTransceiver(PacketTrack("audio", opus, 50, 48_000), direction="sendrecv")
        peer.on("track", lambda track: drains.add(asyncio.get_running_loop().create_task(drain(track))))
        track = PacketTrack("video", clip, VIDEO.fps, 90_000)
        transceiver = peer.addTransceiver(track, direction="sendonly")
        codecs = RTCRtpSender.getCapabilities("video").codecs
        transceiver.setCodecPreferences([c for c in codecs if c.mimeType in {"video/VP8", "video/rtx"}])
        answer_requests(transceiver.sender, track)
        with on_loopback():
            await peer.setLocalDescription(await peer.createOffer())
        print(json.dumps({"sdp": peer.localDescription.sdp}), flush=True)
        answer = json.loads(await lines.readline())
        await peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
    await connected(*peers)
    print(json.dumps({"connected": len(peers)}), flush=True)
    await lines.read()
    os._exit(0)


asyncio.run(main())
