"""Synchronous work on frames and samples: pictures to JPEG, audio to PCM.

A leaf: below the session, with `realtime.tracks` the only room that knows av, numpy and Pillow. Names are resolved when
they are asked for, so that holding an `EncodeOptions` loads none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.lazy import lazy_names

if TYPE_CHECKING:
    from realtime.media.audio import AudioConverter, PcmConverter
    from realtime.media.frame import frame_size, pts_ms, thumbprint
    from realtime.media.image import coerce_image_to_jpeg_bytes, encode
    from realtime.media.options import DEFAULT_REALTIME_ENCODE_OPTIONS, EncodeOptions, ResizeOptions
    from realtime.media.vad import VoiceDetector

_HOMES = {
    "DEFAULT_REALTIME_ENCODE_OPTIONS": "realtime.media.options",
    "EncodeOptions": "realtime.media.options",
    "ResizeOptions": "realtime.media.options",
    "coerce_image_to_jpeg_bytes": "realtime.media.image",
    "encode": "realtime.media.image",
    "frame_size": "realtime.media.frame",
    "pts_ms": "realtime.media.frame",
    "thumbprint": "realtime.media.frame",
    "AudioConverter": "realtime.media.audio",
    "PcmConverter": "realtime.media.audio",
    "VoiceDetector": "realtime.media.vad",
}

__all__ = [
    "DEFAULT_REALTIME_ENCODE_OPTIONS",
    "AudioConverter",
    "EncodeOptions",
    "PcmConverter",
    "ResizeOptions",
    "VoiceDetector",
    "coerce_image_to_jpeg_bytes",
    "encode",
    "frame_size",
    "pts_ms",
    "thumbprint",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
