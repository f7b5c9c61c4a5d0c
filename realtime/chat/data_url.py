"""One parser and one writer of ``data:`` URLs (behaviour.md V7, field case B23).

Owns: `parse_data_url`, `decode_base64`, `make_data_url`. Driven by `messages`. Understands what browsers, SDKs and people
really write: any case of scheme, type and flag; parameters, which it ignores; white space; the URL-safe alphabet; missing
padding; the percent form (RFC 2397). Never looks at what the bytes are (`image_header` does), never puts the payload into
an error's text.
"""

from __future__ import annotations

import binascii
from urllib.parse import unquote_to_bytes

from realtime.errors import ImageError

__all__ = ["decode_base64", "is_data_url", "make_data_url", "normalize_mime_type", "parse_data_url"]

_URL_SAFE_TO_STANDARD = str.maketrans("-_", "+/")
_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


def is_data_url(url: str) -> bool:
    """Whether a URL carries its bytes itself, in any case of the scheme."""
    return url.lstrip()[:5].lower() == "data:"


def normalize_mime_type(mime_type: str) -> str:
    """A type in lower case, without parameters; ``image/jpg`` is ``image/jpeg``."""
    bare = mime_type.partition(";")[0].strip().lower()
    return _ALIASES.get(bare, bare)


def make_data_url(data: bytes, mime_type: str) -> str:
    """Write bytes as a ``data:`` URL in base64, without line breaks."""
    return f"data:{mime_type};base64,{binascii.b2a_base64(data, newline=False).decode('ascii')}"


def parse_data_url(url: str) -> tuple[str, bytes]:
    """Take a ``data:`` URL apart.

    Args:
        url: The URL, in any of the forms named above.

    Returns:
        ``(mime_type, data)``: the declared type in lower case (empty if none is declared), and the bytes.

    Raises:
        ImageError: It is no ``data:`` URL, has no comma, no bytes, or a payload that is no base64.
    """
    text = url.strip()
    if text[:5].lower() != "data:":
        raise ImageError("url", f"{text[:12]}…", "a data: URL")
    header, comma, payload = text[5:].partition(",")
    if not comma:
        raise ImageError("url", f"a data: URL of {len(text)} characters", "a data: URL with a comma before its payload")
    declared, *parameters = header.split(";")
    if any(parameter.strip().lower() == "base64" for parameter in parameters):
        if "%" in payload:
            payload = _unquoted(payload).decode("latin-1")
        data = decode_base64(payload, argument="url")
    else:
        data = _unquoted("".join(payload.split()))
        if not data:
            raise ImageError("url", "a data: URL without a payload", "a data: URL with bytes in it")
    return normalize_mime_type(declared), data


def _unquoted(text: str) -> bytes:
    """The percent form decoded; a lone surrogate, which has no bytes, becomes a question mark."""
    return unquote_to_bytes(text.encode("utf-8", "replace"))


def decode_base64(text: str, *, argument: str = "base64_str") -> bytes:
    """Decode base64 as it is really written: white space, the URL-safe alphabet and missing padding are understood.

    Args:
        text: The base64 text, without a header.
        argument: What the caller calls it, for the error.

    Raises:
        ImageError: It is empty or no base64.
    """
    compact = "".join(text.split()).translate(_URL_SAFE_TO_STANDARD).rstrip("=")
    if not compact:
        raise ImageError(argument, "an empty payload", "base64 of an image's bytes")
    try:
        return binascii.a2b_base64(compact + "=" * (-len(compact) % 4), strict_mode=True)
    except ValueError as error:  # binascii.Error is one, too; neither text holds the payload
        raise ImageError(argument, f"{len(compact)} characters ({error})", "base64 of an image's bytes") from None
