"""The names that we import of aiortc and aioice beside those that they make public.

Owns: these names, and `missing`, which says the first of them that is not there. Nothing else in the package imports any, so that
a later aiortc without one breaks no import: `expected.difference` asks here first, and all is received and sent by aiortc. What is
private of the objects themselves is looked for where it is used (`aiortc_internals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

__all__ = [
    "RTCP_PSFB_APP",
    "RTCP_PSFB_PLI",
    "RTCP_RTPFB_NACK",
    "RTP_HISTORY_SIZE",
    "HeaderExtensions",
    "HeaderExtensionsMap",
    "RemoteStreamTrack",
    "RtcpByePacket",
    "RtcpPsfbPacket",
    "RtcpReceiverInfo",
    "RtcpRrPacket",
    "RtcpRtpfbPacket",
    "RtcpSrPacket",
    "RtpPacket",
    "State",
    "StunProtocol",
    "clamp_packets_lost",
    "current_datetime",
    "current_ntp_time",
    "datetime_from_ntp",
    "h264_depayload",
    "is_rtx",
    "missing",
    "pack_remb_fci",
    "random32",
    "random_sequence_number",
]

missing = ""
"""What is not there, for a log line; empty if all is."""

try:
    from aioice.ice import StunProtocol
    from aiortc.clock import current_datetime, current_ntp_time, datetime_from_ntp
    from aiortc.codecs import is_rtx
    from aiortc.codecs.h264 import h264_depayload
    from aiortc.rtcdtlstransport import State
    from aiortc.rtcrtpreceiver import RemoteStreamTrack
    from aiortc.rtcrtpsender import random_sequence_number
    from aiortc.rtp import (
        RTCP_PSFB_APP,
        RTCP_PSFB_PLI,
        RTCP_RTPFB_NACK,
        RTP_HISTORY_SIZE,
        HeaderExtensions,
        HeaderExtensionsMap,
        RtcpByePacket,
        RtcpPsfbPacket,
        RtcpReceiverInfo,
        RtcpRrPacket,
        RtcpRtpfbPacket,
        RtcpSrPacket,
        RtpPacket,
        clamp_packets_lost,
        pack_remb_fci,
    )
    from aiortc.utils import random32
except ImportError as error:
    missing = str(error)

if missing and not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """What stands for a name that did not come, so that it can be imported; whoever calls it has not asked `missing`."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise ImportError(f"{name} is not to be had: {missing}")

        return refuse
