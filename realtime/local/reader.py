"""The reader: finds the words in pictures, in a process of its own.

Owns: `RapidReader`, and the loop of the process: a picture on standard input (four bytes of length, then its bytes), its
lines as one line of JSON on standard output. Driven by `reader_process.py`. It is apart because what it is built of takes
seconds to load and would hold up every session meanwhile; it ends with its standard input. Models come from inside the
`rapidocr` package, by path: nothing is ever downloaded.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import warnings
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
from PIL import Image

from realtime.errors import RealtimeError
from realtime.local.engines import load_engine
from realtime.local.pictures import open_picture
from realtime.local.weights import check_sha256, package_dir

__all__ = ["LENGTH", "RapidReader", "main", "serve"]

LENGTH: Final = struct.Struct(">I")
"""How a picture's length goes before it."""
DETECTOR = ("PP-OCRv6_det_small.onnx", "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f")
RECOGNIZER = ("PP-OCRv6_rec_small.onnx", "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884")
"""Files and SHA-256 of the models in `rapidocr==3.10.0`."""
READ_SIDE = 1280
"""Pictures are scaled down to this before they are read."""
DETECT_SIDE = 736
"""… and to this to find where text is."""
NICENESS = 5
"""Speech goes before pictures."""


class RapidReader:
    """RapidOCR, small models, one thread."""

    def __init__(self) -> None:
        """Load it. Takes a second or more.

        Raises:
            MissingExtraError: It is not installed.
            UserError: A model is not the one that was meant.
        """
        models = package_dir("rapidocr", what="reading pictures", package="rapidocr") / "models"
        for name, sha256 in (DETECTOR, RECOGNIZER):
            check_sha256(models / name, sha256)
        rapidocr = load_engine("rapidocr", what="reading pictures", package="rapidocr")
        self._engine: Any = rapidocr.RapidOCR(params=_parameters(models))

    def read(self, picture: bytes) -> list[str]:
        """The lines of text in a picture, from top to bottom.

        Raises:
            ImageError: It cannot be decoded.
        """
        image = open_picture(picture)
        image.thumbnail((READ_SIDE, READ_SIDE), Image.Resampling.BILINEAR)
        bgr = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pictures without a word
            found = self._engine(bgr, use_cls=False)
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


def serve(pictures: BinaryIO, answers: BinaryIO) -> None:
    """Read pictures until there are no more. The first answer says that the reader is ready, or why it will not be."""

    def say(**answer: object) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    try:
        reader = RapidReader()
    except RealtimeError as error:
        say(fatal=str(error))
        return
    say(ready=True)
    while len(head := pictures.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(head)
        try:
            say(lines=reader.read(pictures.read(length)))
        except RealtimeError as error:
            say(error=str(error))


def main() -> int:
    """Run the process. Returns its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for the server, which ends its reader
    os.nice(NICENESS)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library that prints does not answer
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main())  # taking apart what was loaded takes seconds on a busy machine, and keeps nothing
