"""Pillow images of every mode, brought to 8 bit, turned upright, scaled, laid on a background and encoded.

Owns: what a picture of each mode looks like, and PNG. Driven by `realtime.media.image`. Never changes the image it is
given; no metadata of the source gets through (behaviour.md I3: orientation is applied, EXIF with its GPS position is left
out).
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, cast

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from realtime.errors import ImageError
from realtime.media.arrays import depth_to_8bit
from realtime.media.geometry import Placement, place
from realtime.media.options import EncodeOptions
from realtime.media.planes import rgb_to_jpeg

__all__ = ["BACKGROUND", "decode_bytes", "encode_image", "rotate_quarters", "upright"]

BACKGROUND = (255, 255, 255)
"""What shows through where a picture is transparent, when its format has no transparency: white, as a page is."""

_BORDER = (0, 0, 0)
_PROGRAMS = frozenset({"EPS", "WMF"})
"""Formats that Pillow hands to an interpreter outside it (Ghostscript, the system's own)."""
_PLAIN_MODES = frozenset({"L", "LA", "RGB", "RGBA"})
_WIDE_MODES = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_QUARTERS = {1: Image.Transpose.ROTATE_90, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_270}


def decode_bytes(data: bytes) -> Image.Image:
    """Open an encoded picture (JPEG, PNG, WebP, GIF, … what Pillow reads by itself).

    Raises:
        ImageError: The bytes are no picture, a broken one, or one too large to be decoded safely.
    """
    try:
        image = Image.open(io.BytesIO(data))
        if image.format in _PROGRAMS:
            raise UnidentifiedImageError
        image.load()
    except Image.DecompressionBombError as error:
        raise ImageError("frame", f"{len(data)} bytes", f"a picture of a safe size ({error})") from error
    except UnidentifiedImageError as error:  # its words name an address in memory
        raise ImageError("frame", f"{len(data)} bytes", "a picture of a known kind") from error
    except Exception as error:  # decoders of many formats, fed with anything, raise anything
        raise ImageError("frame", f"{len(data)} bytes", f"a picture that can be decoded ({error})") from error
    return image


def rotate_quarters(image: Image.Image, quarters: int) -> Image.Image:
    """Turn counter-clockwise by `quarters` × 90 degrees (0–3)."""
    return image.transpose(_QUARTERS[quarters]) if quarters else image


def upright(image: Image.Image) -> Image.Image:
    """Apply the EXIF orientation. An unreadable EXIF block orients nothing."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a parser of others, fed with anything; it may also warn, and warnings may be errors
        return image


def encode_image(image: Image.Image, options: EncodeOptions) -> bytes:
    """Encode a Pillow image of any mode.

    A JPEG always has three channels and goes by way of planes (`realtime.media.planes`); a PNG is scaled with Lanczos and
    keeps transparency.

    Raises:
        ImageError: The mode is unknown, the image is empty, or its file is broken.
    """
    if image.width < 1 or image.height < 1:
        raise ImageError("frame", f"a Pillow image of {image.width}x{image.height}", "at least one pixel large")
    try:
        picture = _plain(upright(image))
    except ImageError:
        raise
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError("frame", f"a Pillow image of mode {image.mode!r}", f"a readable one ({error})") from error
    plan = place(picture.size, options.resize_options)
    if options.format == "JPEG":
        return _to_jpeg(_flat(picture), plan, options.quality)
    out = io.BytesIO()
    _placed(picture, plan).save(out, "PNG")
    return out.getvalue()


def _to_jpeg(image: Image.Image, plan: Placement, quality: int) -> bytes:
    if not plan.is_wasteful:
        with contextlib.suppress(ImageError):  # swscale has no filter for some extreme shapes
            return rgb_to_jpeg(np.asarray(cast("Any", image)), plan, quality)
    placed = _placed(image, plan)
    return rgb_to_jpeg(np.asarray(cast("Any", placed)), place(placed.size, None), quality)


def _plain(image: Image.Image) -> Image.Image:
    """The same picture as L, LA, RGB or RGBA, with no metadata."""
    mode = image.mode
    if "transparency" in image.info and mode in {"1", "L", "RGB", "P"}:
        plain = image.convert("RGBA")
    elif mode in _PLAIN_MODES:
        plain = image.copy()
    elif mode in _WIDE_MODES:
        plain = Image.fromarray(depth_to_8bit(np.asarray(cast("Any", image))))
    elif mode == "1":
        plain = image.convert("L")
    elif mode in {"P", "RGBX", "CMYK", "YCbCr", "HSV"}:
        plain = image.convert("RGB")
    elif mode in {"PA", "RGBa"}:
        plain = image.convert("RGBA")
    elif mode == "La":
        plain = image.convert("LA")
    elif mode == "LAB":
        plain = _from_lab(image)
    else:
        raise ImageError("frame", f"a Pillow image of mode {mode!r}", "of a mode that Pillow can convert to RGB")
    plain.info = {}
    return plain


def _from_lab(image: Image.Image) -> Image.Image:
    cms: Any = ImageCms  # its annotations leave the profile's type open
    converted = cms.profileToProfile(image, cms.createProfile("LAB"), cms.createProfile("sRGB"), outputMode="RGB")
    return cast("Image.Image", converted)


def _flat(image: Image.Image) -> Image.Image:
    """The picture as RGB, laid on the background where it is transparent."""
    if image.mode in {"LA", "RGBA"}:
        rgba = image.convert("RGBA")
        page = Image.new("RGBA", rgba.size, (*BACKGROUND, 255))
        return Image.alpha_composite(page, rgba).convert("RGB")
    return image.convert("RGB") if image.mode != "RGB" else image


def _placed(image: Image.Image, plan: Placement) -> Image.Image:
    """Scale, cut and border as planned."""
    inside = (min(plan.scaled[0], plan.size[0]), min(plan.scaled[1], plan.size[1]))
    if plan.scaled != image.size or inside != plan.scaled:
        image = image.resize(inside, Image.Resampling.LANCZOS, box=plan.kept(image.size))
    if plan.size == inside:
        return image
    page = Image.new(image.mode, plan.size, _border(image.mode))
    page.paste(image, (max(0, plan.offset[0]), max(0, plan.offset[1])))
    return page


def _border(mode: str) -> int | tuple[int, ...]:
    borders: dict[str, int | tuple[int, ...]] = {"L": 0, "LA": (0, 255), "RGB": _BORDER, "RGBA": (*_BORDER, 255)}
    return borders[mode]
