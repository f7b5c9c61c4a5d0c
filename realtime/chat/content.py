"""What is heard and seen in a message: recordings and pictures (behaviour.md V1, V3, V7; field cases B16, B18, B23).

Owns: `ImageContent` and `AudioContent`, the only holders of their bytes. Both are frozen, hold their bytes once, compare by
content, can be weakly referenced, and never show their content in a repr. Driven by `messages`, which hands them out.
Never decodes a pixel; `from_frame` asks `realtime.media` to encode, and only then is that loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

from realtime import pcm
from realtime.chat import data_url as data_urls
from realtime.chat.image_header import image_size, image_type
from realtime.errors import ArgumentError, ImageError

__all__ = ["AudioContent", "ImageContent", "check_images"]

_DETAILS = frozenset({"auto", "low", "high", "original"})
_TYPE_OF_SUFFIX = {
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
}


class _Picture:
    """Where `ImageContent` holds what its fields are made of."""

    __slots__ = ("__weakref__", "_address", "_data", "_mime_type", "_size")

    _address: str
    _data: bytes
    _mime_type: str
    _size: tuple[int, int] | None
    """Read once: it is asked for with every count of tokens."""

    @property
    def data(self) -> bytes:
        """The encoded picture; empty if it is only an address."""
        return self._data

    @property
    def mime_type(self) -> str:
        """What the bytes are; for an address, what its ending says; empty if that says nothing."""
        return self._mime_type

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height in pixels, from the header, without decoding; None if unknown."""
        return self._size

    @property
    def byte_length(self) -> int:
        """Bytes held; 0 for an address."""
        return len(self._data)

    @property
    def is_embedded(self) -> bool:
        """Whether the bytes are here, and not only an address."""
        return bool(self._data)

    def _write_url(self) -> str:
        return data_urls.make_data_url(self._data, self._mime_type) if self._data else self._address


class _AddressOf:
    """The field `ImageContent.url`: written anew from the bytes each time, so that the picture is held once."""

    def __get__(self, instance: _Picture | None, owner: type[_Picture] | None = None) -> str:
        if instance is None:
            return ""  # the field's default
        return instance._write_url()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001  # a part of that class

    def __set__(self, instance: _Picture, value: str) -> None:
        raise FrozenInstanceError("cannot assign to field 'url'")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ImageContent(_Picture):
    """A picture in a message: its bytes, or an address where it is.

    JPEG, PNG, GIF and WEBP are pictures here, the kinds that providers take (Gemini no GIF); `realtime.encode` makes one of
    anything else. Equal if content and `detail` are. Weakly referenceable. Bytes are held as bytes, once; `url` is made of them on
    demand (about a millisecond per 5 MB).
    """

    __slots__ = ("detail", "type")

    type: str
    """Always ``image``."""
    url: _AddressOf = _AddressOf()  # a descriptor: it holds nothing itself
    """An http(s) URL, or a ``data:`` URL with the bytes in base64."""
    detail: str  # type: ignore[misc]  # the order matters only to a generated __init__
    """How closely the model shall look: ``auto``, ``low``, ``high``, or ``original``."""

    def __init__(self, type: str = "image", url: str = "", detail: str = "auto") -> None:
        """Refer to a picture.

        Args:
            type: ``image``.
            url: An http(s) or ``data:`` URL. Empty: no picture; converters leave it out and `add_*` refuses it.
            detail: ``auto``, ``low``, ``high`` or ``original``.

        Raises:
            ImageError: The URL is neither, or what it carries is none of the four kinds of picture.
            ArgumentError: Another type or detail.
        """
        if type != "image":
            raise ArgumentError("type", type, "'image' (the URL is the second argument: url=…)")
        if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ImageError("url", url, "an http(s) or data: URL; bytes go to ImageContent.from_bytes")
        if data_urls.is_data_url(url):
            declared, data = data_urls.parse_data_url(url)
            self._set(data=_checked(data, "url", declared), address="", detail=detail)
        else:
            self._set(data=b"", address=_checked_address(url) if url else "", detail=detail)

    def _set(self, *, data: bytes, address: str, detail: str) -> None:
        if not isinstance(detail, str) or detail not in _DETAILS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("detail", detail, "'auto', 'low', 'high' or 'original'")
        put = object.__setattr__
        put(self, "type", "image")
        put(self, "_data", data)
        put(self, "_mime_type", (image_type(data) or "") if data else _type_of_path(address))
        put(self, "_size", image_size(data) if data else None)
        put(self, "_address", address)
        put(self, "detail", detail)

    @classmethod
    def _of(cls, data: bytes, address: str, detail: str) -> ImageContent:
        image = cls.__new__(cls)
        image._set(data=data, address=address, detail=detail)  # noqa: SLF001  # its own constructor
        return image

    # -- constructors -------------------------------------------------------------------------------------------------

    @classmethod
    def from_url(cls, url: str, detail: str = "auto") -> ImageContent:
        """Refer to a picture by its http(s) URL (a ``data:`` URL is taken apart as by `from_data_url`).

        Raises:
            ImageError: It is no such URL.
        """
        if not url:
            raise ImageError("url", url, "an http(s) or data: URL")
        return cls(url=url, detail=detail)

    @classmethod
    def from_data_url(cls, data_url: str, detail: str = "auto") -> ImageContent:
        """Take a picture out of a ``data:`` URL (behaviour.md V7).

        Raises:
            ImageError: It is no such URL, or its payload no picture.
        """
        if not isinstance(data_url, str) or data_url.lstrip()[:5].lower() != "data:":  # pyright: ignore[reportUnnecessaryIsInstance]
            shown = f"{data_url[:12]}…" if isinstance(data_url, str) else data_url  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ImageError("data_url", shown, "a data: URL; from_url takes an address")
        return cls(url=data_url, detail=detail)

    @classmethod
    def from_base64(cls, base64_str: str, mime_type: str, detail: str = "auto") -> ImageContent:
        """Take a picture out of base64 text. Its bytes tell its type, whatever `mime_type` says.

        Raises:
            ImageError: It is no base64, or no picture.
        """
        if not isinstance(base64_str, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ImageError(
                "base64_str", type(base64_str).__name__, "base64 as text; bytes of it need .decode('ascii')"
            )
        if data_urls.is_data_url(base64_str):
            return cls.from_data_url(base64_str, detail)
        data = data_urls.decode_base64(base64_str)
        return cls._of(_checked(data, "base64_str", mime_type), "", detail)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, mime_type: str, detail: str = "auto") -> ImageContent:
        """Hold an encoded picture. Its bytes tell its type, whatever `mime_type` says.

        Args:
            data: The encoded picture; a buffer that may change is copied.
            mime_type: Its type, such as ``image/jpeg``.
            detail: How closely the model shall look.

        Raises:
            ImageError: It is no picture.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ImageError("data", data, "the bytes of an encoded picture; a frame goes to ImageContent.from_frame")
        return cls._of(_checked(bytes(data), "data", mime_type), "", detail)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], mime_type: str | None = None, detail: str = "auto"
    ) -> ImageContent:
        """Read a picture from disk. Its bytes tell its type, whatever `mime_type` or the name's ending say.

        Raises:
            ImageError: The file is no picture.
            OSError: It cannot be read.
        """
        try:
            name = os.fspath(path)  # open takes a number, too: somebody's open file, which it would close
            with open(name, "rb") as file:  # noqa: PTH123  # pathlib costs an import for what open does
                data = file.read()
        except (TypeError, ValueError):  # a NUL or a lone surrogate is in no file's name
            raise ImageError("path", path, "the path of a picture's file") from None
        return cls._of(
            _checked(data, "path", mime_type or _type_of_path(os.fsdecode(name)) or "image/jpeg"), "", detail
        )

    @classmethod
    def from_frame(cls, frame: Any, detail: str = "auto") -> ImageContent:
        """Make a picture of a frame.

        Args:
            frame: A mapping with `data` (bytes, base64 text or a frame) and perhaps `mime_type` or `mimeType`; the bytes
                of an encoded picture; or anything that `coerce_image_to_jpeg_bytes` takes: an av frame, a Pillow image,
                an array. Frames are encoded now, so that a later change of theirs does not reach the message.
            detail: How closely the model shall look.

        Raises:
            ImageError: It is no picture.
        """
        if isinstance(frame, ImageContent):
            data, address = frame._data, frame._address  # noqa: SLF001  # another of this class
            return frame if frame.detail == detail else cls._of(data, address, detail)
        if isinstance(frame, Mapping):
            given = cast("Mapping[str, Any]", frame)
            if "data" not in given:
                raise ImageError("frame", sorted(map(str, given)), "a mapping with the key 'data'")
            mime_type: str = given.get("mime_type") or given.get("mimeType") or "image/jpeg"
            frame = given["data"]
            if isinstance(frame, str):
                return cls.from_base64(frame, mime_type, detail)
        else:
            mime_type = "image/jpeg"
        if isinstance(frame, (bytes, bytearray, memoryview)):
            return cls.from_bytes(cast("bytes", frame), mime_type, detail)
        from realtime.media.image import coerce_image_to_jpeg_bytes  # noqa: PLC0415  # av and numpy only for a frame

        return cls.from_bytes(coerce_image_to_jpeg_bytes(frame), "image/jpeg", detail)

    # -- a value --------------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """By content and detail."""
        if not isinstance(other, ImageContent):
            return NotImplemented
        return self.detail == other.detail and self._data == other._data and self._address == other._address

    def __hash__(self) -> int:
        return hash((self._data, self._address, self.detail))

    def __repr__(self) -> str:
        """Type, size and bytes, or the address without its query: never the picture."""
        if not self._data:
            return f"ImageContent({self._address.partition('?')[0][:80]!r}, detail={self.detail!r})"
        size = self.size
        shown = "size unknown" if size is None else f"{size[0]}x{size[1]}"
        return f"ImageContent({self._mime_type}, {shown}, {len(self._data)} bytes, detail={self.detail!r})"

    def __copy__(self) -> ImageContent:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ImageContent:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self)._of, (self._data, self._address, self.detail))  # noqa: SLF001  # its own constructor


def check_images(images: Iterable[ImageContent] | None) -> tuple[ImageContent, ...]:
    """The pictures of a message, as they were given.

    Raises:
        ImageError: They are none, or one is empty.
    """
    if images is not None and not isinstance(images, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ImageError("images", images, "an iterable of ImageContent, such as a list")
    found = () if images is None else tuple(images)
    for image in found:
        if not isinstance(image, ImageContent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ImageError("images", type(image).__name__, "made of ImageContent only (ImageContent.from_bytes, …)")
        if not image.byte_length and not image.url:
            raise ImageError("images", image, "pictures with bytes or an address")
    return found


def _checked(data: bytes, argument: str, declared: str) -> bytes:
    if image_type(data) is None:
        raise ImageError(
            argument,
            f"{len(data)} bytes declared as {declared if isinstance(declared, str) and declared else 'nothing'}",  # pyright: ignore[reportUnnecessaryIsInstance]
            "a JPEG, PNG, GIF or WEBP (realtime.encode makes one of a frame, an array or a Pillow image)",
        )
    return data


def _checked_address(url: str) -> str:
    address = url.strip()
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web:
        shown = address if len(address) <= 40 else f"{address[:12]}…"  # it may be a picture's base64
        raise ImageError("url", shown, "an http(s) or data: URL")
    return address


def _type_of_path(path: str) -> str:
    name = path.partition("?")[0].partition("#")[0]
    return _TYPE_OF_SUFFIX.get(name.rpartition(".")[2].lower(), "")


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class AudioContent:
    """A recording in a message: a WAV file, and what is said in it."""

    data: bytes
    """The WAV file."""
    transcript: str = ""
    """Its words; empty if unknown."""
    duration_ms: int = field(init=False, compare=False)
    """Its length in whole milliseconds, from the header."""
    rate_hz: int = field(init=False, compare=False)
    """Its sample rate, from the header."""

    def __post_init__(self) -> None:
        """Copy the bytes in and read the header.

        Raises:
            ArgumentError: It is no WAV file.
        """
        if not isinstance(self.data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("data", type(self.data).__name__, "the bytes of a WAV file")
        if not isinstance(self.transcript, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("transcript", self.transcript, "text")
        data = bytes(self.data)
        samples, rate_hz, channels = pcm.read_wav(data)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "rate_hz", rate_hz)
        object.__setattr__(self, "duration_ms", pcm.bytes_to_ms(len(samples), rate_hz, channels))

    @classmethod
    def from_wav(cls, data: bytes | bytearray | memoryview, transcript: str = "") -> AudioContent:
        """Hold a WAV file.

        Raises:
            ArgumentError: It is none.
        """
        return cls(data, transcript)  # type: ignore[arg-type]  # copied in when it is made

    @classmethod
    def from_pcm(
        cls, data: bytes | bytearray | memoryview, rate_hz: int, *, channels: int = 1, transcript: str = ""
    ) -> AudioContent:
        """Put PCM16 into a WAV file and hold it.

        Raises:
            ArgumentError: The samples are not whole, or a number is out of range.
        """
        return cls(pcm.wav_bytes(data, rate_hz, channels), transcript)

    @property
    def byte_length(self) -> int:
        """Bytes held."""
        return len(self.data)

    def __repr__(self) -> str:
        """Length and rate: never the sound, never the words."""
        return f"AudioContent({self.duration_ms} ms, {self.rate_hz} Hz, {len(self.data)} bytes)"

    def __copy__(self) -> AudioContent:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> AudioContent:
        return self
