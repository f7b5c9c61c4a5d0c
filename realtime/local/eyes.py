"""Pictures to words: size, brightness and color by Pillow, text by RapidOCR.

Owns: `PictureEyes`. Driven by a responder, on the server's worker pool. The reader is loaded with the first picture
that is to be read, so that a server that is never shown one does not hold it; what was found in a picture is remembered
as long as the picture lives. Models come from inside the `rapidocr` package, by path: nothing is ever downloaded.
"""

from __future__ import annotations

import asyncio
import io
import warnings
import weakref
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from realtime.chat.messages import ImageContent
from realtime.errors import ImageError
from realtime.local.colors import main_color
from realtime.local.engines import load_engine
from realtime.local.parts import Sight
from realtime.local.weights import check_sha256, package_dir
from realtime.local.workers import FairPool

__all__ = ["PictureEyes", "WordReader"]

DETECTOR = ("PP-OCRv6_det_small.onnx", "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f")
RECOGNIZER = ("PP-OCRv6_rec_small.onnx", "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884")
"""Files and SHA-256 of the models in `rapidocr==3.10.0`."""

MAX_PIXELS = 50_000_000
"""Larger pictures are refused before they are decoded."""
READ_SIDE = 1280
"""Pictures are scaled down to this before they are read."""
DETECT_SIDE = 736
"""… and to this to find where text is."""

Rgb = npt.NDArray[np.uint8]


class WordReader(Protocol):
    """Finds the lines of text in a picture."""

    def __call__(self, rgb: Rgb) -> list[str]:
        """The lines, from top to bottom."""
        ...


class PictureEyes:
    """The embedded `Eyes`."""

    def __init__(self, pool: FairPool, *, reader: WordReader | None = None) -> None:
        """Open them. Nothing is loaded yet.

        Args:
            pool: Where the work is done.
            reader: Finds text; None: RapidOCR.

        Raises:
            MissingExtraError: A package of the extra `local` is missing.
        """
        if reader is None:
            package_dir("rapidocr", what="reading pictures", package="rapidocr")
        self._pool = pool
        self._reader = reader
        self._reading = asyncio.Lock()  # one at a time: the reader's pipeline has state
        self._seen: dict[int, tuple[weakref.ref[ImageContent], Sight, bool]] = {}

    async def look(self, picture: ImageContent, *, owner: str, read: bool = True) -> Sight:
        """Say what a picture shows; twice the same picture costs once."""
        known = self._recall(picture, read=read)
        if known is not None:
            return known
        if not read:
            sight = await self._pool.run(owner, "now", _glance, picture.data)
            return self._remember(picture, sight, read=False)
        async with self._reading:
            known = self._recall(picture, read=True)
            if known is not None:
                return known
            sight = await self._pool.run(owner, "now", self._read, picture.data)
            return self._remember(picture, sight, read=True)

    async def prepare(self) -> None:
        """Load the reader now, when there is time, rather than when somebody waits for it."""
        async with self._reading:
            if self._reader is None:
                await self._pool.run("", "maybe", self._load)

    def _recall(self, picture: ImageContent, *, read: bool) -> Sight | None:
        entry = self._seen.get(id(picture))
        if entry is None or entry[0]() is not picture or (read and not entry[2]):
            return None
        return entry[1]

    def _remember(self, picture: ImageContent, sight: Sight, *, read: bool) -> Sight:
        key = id(picture)
        seen = self._seen

        def forget(reference: weakref.ref[ImageContent]) -> None:
            if key in seen and seen[key][0] is reference:
                del seen[key]

        seen[key] = (weakref.ref(picture, forget), sight, read)
        return sight

    def _read(self, data: bytes) -> Sight:
        image = _open(data)
        facts = _facts(image)
        image.thumbnail((READ_SIDE, READ_SIDE), Image.Resampling.BILINEAR)
        lines = self._load()(np.asarray(image))
        return Sight(
            lines=tuple(lines),
            width=facts.width,
            height=facts.height,
            brightness=facts.brightness,
            color=facts.color,
        )

    def _load(self) -> WordReader:
        if self._reader is None:
            self._reader = _RapidReader()
        return self._reader


class _RapidReader:
    """RapidOCR, small models, one thread."""

    def __init__(self) -> None:
        models = package_dir("rapidocr", what="reading pictures", package="rapidocr") / "models"
        for name, sha256 in (DETECTOR, RECOGNIZER):
            check_sha256(models / name, sha256)
        rapidocr = load_engine("rapidocr", what="reading pictures", package="rapidocr")
        self._engine: Any = rapidocr.RapidOCR(params=_parameters(models))

    def __call__(self, rgb: Rgb) -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of empty pictures
            found = self._engine(np.ascontiguousarray(rgb[:, :, ::-1]), use_cls=False)
        return [line for line in cast("tuple[str, ...]", found.txts or ()) if line.strip()]


def _parameters(models: Path) -> dict[str, object]:
    threads = "EngineConfig.onnxruntime"
    return {
        "Global.use_cls": False,
        "Global.log_level": "critical",
        "Det.model_path": str(models / DETECTOR[0]),
        "Det.limit_type": "max",
        "Det.limit_side_len": DETECT_SIDE,
        "Rec.model_path": str(models / RECOGNIZER[0]),
        f"{threads}.intra_op_num_threads": 1,
        f"{threads}.inter_op_num_threads": 1,
    }


def _open(data: bytes) -> Image.Image:
    """Decode a picture upright, as RGB."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ImageError("picture", f"{image.width}×{image.height}", f"at most {MAX_PIXELS:,} pixels")
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError("picture", f"{len(data)} bytes", f"an image that can be decoded ({error})") from None


def _glance(data: bytes) -> Sight:
    return _facts(_open(data))


def _facts(image: Image.Image) -> Sight:
    small = np.asarray(image.resize((48, 48), Image.Resampling.BOX))
    luma = small @ np.array([0.299, 0.587, 0.114])
    return Sight(width=image.width, height=image.height, brightness=float(luma.mean()) / 255.0, color=main_color(small))
