"""libopus itself: where it is, and how its functions are called.

Owns: the search, once for the process, and `OpusError`. Driven by the decoder and the encoder of voices. The library is the one
that PyAV's wheels bring along, else the system's. It keeps no stream.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import av

from realtime.errors import RealtimeError

__all__ = ["OPUS_RATES", "OpusError", "find_opus"]

OPUS_RATES: Final = (8_000, 12_000, 16_000, 24_000, 48_000)
"""What libopus decodes to and encodes from, in samples a second."""


class OpusError(RealtimeError):
    """libopus refuses: what it was given is no Opus, or it cannot work here."""


def find_opus() -> Any | None:
    """The library, its functions declared; None if this machine has none that can be used."""
    return _LIBRARY


def _load() -> Any | None:
    for candidate in _candidates():
        try:
            # PyDLL: a call of 30 µs on the loop had better keep the GIL than wait for it afterwards.
            library = ctypes.PyDLL(candidate)
            _declare(library)
        except (OSError, AttributeError):  # not there, not for this machine, or another library of that name
            continue
        return library
    return None


def _candidates() -> Iterator[str]:
    """Paths to try: beside PyAV (Linux and Windows wheels: av.libs; macOS: av/.dylibs), then the system's."""
    package = Path(av.__file__).parent
    for folder in (package.parent / "av.libs", package / ".dylibs"):
        yield from map(str, sorted(folder.glob("libopus*")))
    system = ctypes.util.find_library("opus")
    if system:
        yield system


def _declare(library: Any) -> None:
    state, pointer, number, size = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int32
    data, error = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)
    declarations: dict[str, tuple[list[Any], Any]] = {
        "opus_decoder_create": ([size, number, error], state),
        "opus_decoder_destroy": ([state], None),
        "opus_decode": ([state, data, size, pointer, number, number], number),
        "opus_encoder_create": ([size, number, number, error], state),
        "opus_encoder_destroy": ([state], None),
        # The rest of its arguments depend on the request. Those that are declared say where they begin: on some machines
        # (arm64 macOS) they are passed another way.
        "opus_encoder_ctl": ([state, number], number),
        "opus_encode": ([state, data, number, pointer, size], size),
    }
    for name, (arguments, result) in declarations.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result


_LIBRARY = _load()
"""Found when this module is loaded: looking through folders has no place on a running loop."""
