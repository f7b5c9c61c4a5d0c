"""Everything of aiortc that is not its public interface, in one place.

Owns: `take_over`, which puts a receiver of ours in the place of aiortc's for one transceiver, and `unsupported`, which says
why that cannot be done. Used at run time only where everything that is needed is there as expected: with any other aiortc the
stock receiver stays, and a test of this package fails. Touches, of aiortc 1.15 and 1.16:

- `receiver`: `RTCDtlsTransport._register_rtp_receiver`, `_unregister_rtp_receiver`, `_send_rtp`, `_stats_id`; what that
  transport calls of a receiver: `_handle_rtp_packet`, `_handle_rtcp_packet`, `_handle_disconnect`; `RTCRtpSender._ssrc`,
  `RTCRtpReceiver._enabled` (negotiation can close a direction) and `__started`, and `RemoteStreamTrack._queue`;
- `short_way`, which is left out where it cannot be: `RTCIceTransport._connection` and its `data_received`,
  `RTCDtlsTransport._rx_srtp`, `_rtp_header_extensions_map`, `__rx_bytes` and `__rx_packets`.

aiortc's own receiver object stays in its transceiver, never started: it has no thread and no buffer. Only its public methods
`receive`, `stop`, `getStats` and `getSynchronizationSources` are answered by ours.
"""

from realtime.tracks.aiortc_internals.receiver import PacketHandler, ReceiverPort, take_over, unsupported

__all__ = ["PacketHandler", "ReceiverPort", "take_over", "unsupported"]
