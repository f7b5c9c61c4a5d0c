"""Everything of aiortc that is not its public interface, in one place.

Owns: `take_over`, which puts a receiver of ours in the place of aiortc's for one transceiver, `take_over_sender`, which puts a
loop of ours into a sender, and `unsupported` and `unsupported_sender`, which say why that cannot be done. Used at run time only where
everything that is needed is there as expected: with any other aiortc the stock receiver and sender stay, and a test of this
package fails. The names that are imported stand in `realtime.tracks.aiortc_names`; of their objects it touches, in aiortc 1.15
and 1.16:

- `receiver`: `RTCDtlsTransport._register_rtp_receiver`, `_unregister_rtp_receiver`, `_send_rtp`, `_stats_id`; what that
  transport calls of a receiver: `_handle_rtp_packet`, `_handle_rtcp_packet`, `_handle_disconnect`; `RTCRtpSender._ssrc`,
  `RTCRtpReceiver._enabled` (negotiation can close a direction) and `__started`, and `RemoteStreamTrack._queue`;
- `short_way`, which is left out where it cannot be: `RTCIceTransport._connection` and its `data_received`,
  `RTCDtlsTransport._rx_srtp`, `__rx_bytes` and `__rx_packets`; of aioice `Connection._protocols` and what a `StunProtocol`
  is handed (`datagram_received`);
- `socket_reader`, the same: asyncio's `_SelectorDatagramTransport` with its `_sock`, `_sock_fd` and `_loop`, and the loop's
  `_add_reader`;
- `srtp` and `sealing`, the same: pylibsrtp's `Session._srtp` and `_binding`;
- `sender`: `RTCRtpSender._run_rtp`, `_next_encoded_frame`, `_retransmit`, `_ssrc`, `_enabled`, `__started`, its counts, its history,
  its header extensions, `__mid`, `__encoder`, `__track` and the two events that `stop` waits for; `RTCDtlsTransport._state`,
  `_tx_srtp`, `__tx_bytes` and `__tx_packets`; `RTCIceTransport._connection`; of aioice `Connection._nominated` with
  the transport of a pair's protocol; and of asyncio that transport's `_sock` and `_buffer`, where it has them.

aiortc's own receiver object stays in its transceiver, never started: it has no thread and no buffer. Only its public methods
`receive`, `stop`, `getStats` and `getSynchronizationSources` are answered by ours.
"""

from realtime.tracks.aiortc_internals.receiver import PacketHandler, ReceiverPort, take_over, unsupported
from realtime.tracks.aiortc_internals.sender import (
    PacketFeed,
    SenderPort,
    port_of,
    take_over_sender,
    unsupported_sender,
)

__all__ = [
    "PacketFeed",
    "PacketHandler",
    "ReceiverPort",
    "SenderPort",
    "port_of",
    "take_over",
    "take_over_sender",
    "unsupported",
    "unsupported_sender",
]
