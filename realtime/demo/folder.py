"""What stays of a call: a folder with its context, its sound and its pictures.

Owns: `Shelf` (thumbnails of the kept frames, while the call goes on), `contact_sheet`, `write_folder`. Driven by
`demo/call.py`, on a worker thread. Never keeps a whole picture: what retention evicts is gone from here too, but for its
thumbnail.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from realtime.demo.log import KeptFrame
from realtime.errors import UserError
from realtime.pcm import wav_bytes
from realtime.testing.recording import RECORDED_RATE_HZ, Recording, stereo

__all__ = ["Record", "Shelf", "contact_sheet", "prepare_folder", "write_folder"]

_THUMB = 224
_LABEL = 46
_GAP = 12
_COLUMNS = 5
_MAX_THUMBS = 100
_PAPER, _INK, _FAINT = (250, 250, 248), (24, 24, 24), (150, 60, 30)


class Shelf:
    """Thumbnails of the newest frames that were kept, by message id."""

    def __init__(self) -> None:
        """Make an empty shelf."""
        self._thumbs: dict[str, bytes] = {}

    def put(self, message_id: str, picture: bytes) -> None:
        """Make a thumbnail of an encoded picture and keep that."""
        with Image.open(io.BytesIO(picture)) as image:
            image.draft("RGB", (_THUMB, _THUMB))
            small = image.convert("RGB")
        small.thumbnail((_THUMB, _THUMB))
        out = io.BytesIO()
        small.save(out, "JPEG", quality=85)
        self._thumbs[message_id] = out.getvalue()
        if len(self._thumbs) > _MAX_THUMBS:
            del self._thumbs[next(iter(self._thumbs))]

    def get(self, message_id: str) -> Image.Image | None:
        """The thumbnail of a message, if there is one."""
        data = self._thumbs.get(message_id)
        if data is None:
            return None
        with Image.open(io.BytesIO(data)) as image:
            return image.convert("RGB")


def contact_sheet(frames: Sequence[KeptFrame], shelf: Shelf) -> Image.Image:
    """Lay the kept frames out in rows, each with the time it was captured and why it was kept.

    A frame that has left the context since is marked so. A frame without a thumbnail is left out.
    """
    shown = [(frame, thumb) for frame in frames if (thumb := shelf.get(frame.message_id)) is not None]
    rows = max(1, -(-len(shown) // _COLUMNS))
    columns = min(_COLUMNS, max(1, len(shown)))
    size = (_GAP + columns * (_THUMB + _GAP), _GAP + rows * (_THUMB + _LABEL + _GAP))
    sheet = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=17)
    if not shown:
        draw.text((_GAP, _GAP), "no frame was kept", font=font, fill=_INK)
    for number, (frame, thumb) in enumerate(shown):
        x = _GAP + number % columns * (_THUMB + _GAP)
        y = _GAP + number // columns * (_THUMB + _LABEL + _GAP)
        sheet.paste(thumb, (x, y))
        draw.text((x, y + _THUMB + 3), f"{frame.at:.2f} s  {frame.reason}", font=font, fill=_INK)
        below = f"left: {frame.left}" if frame.left else f"{frame.source}  {frame.width} x {frame.height}"
        draw.text((x, y + _THUMB + 24), below, font=font, fill=_FAINT if frame.left else _INK)
    return sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is written down of a call."""

    context: Mapping[str, Any]
    """`ChatContext.to_dict()`."""
    frames: Sequence[KeptFrame]
    """The frames that were kept, in the order of capture."""
    shelf: Shelf
    """Their thumbnails."""
    user: Recording
    """The microphone."""
    reply: Recording
    """The reply track, as it came over the wire."""


def prepare_folder(out: Path) -> None:
    """Make the folder, so that one that cannot be is told before the call.

    Raises:
        UserError: It is a file, or cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"{out} is not a folder") from error
    except OSError as error:
        raise UserError(f"the folder {out} cannot be made ({error.strerror})") from error


def write_folder(out: Path, record: Record) -> list[Path]:
    """Write the record and give the files, in the order of writing.

    - ``context.json``: the context, as `ChatContext.to_dict` has it;
    - ``reply.wav``: what was heard of the model, mono, from its first sound to its last;
    - ``call.wav``: both sides, the user left and the model right, on one time line;
    - ``frames.png``: the contact sheet.

    Raises:
        UserError: A file cannot be written.
    """
    sheet = io.BytesIO()
    contact_sheet(record.frames, record.shelf).save(sheet, "PNG")
    files = {
        "context.json": (json.dumps(record.context, ensure_ascii=False, indent=1) + "\n").encode(),
        "reply.wav": wav_bytes(record.reply.sound(), RECORDED_RATE_HZ),
        "call.wav": wav_bytes(stereo(record.user, record.reply), RECORDED_RATE_HZ, 2),
        "frames.png": sheet.getvalue(),
    }
    written: list[Path] = []
    for name, data in files.items():
        path = out / name
        try:
            path.write_bytes(data)
        except OSError as error:
            raise UserError(f"{path} cannot be written ({error.strerror})") from error
        written.append(path)
    return written
