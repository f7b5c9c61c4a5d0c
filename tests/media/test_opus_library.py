"""Where libopus is found: what is not it, or cannot be loaded, is passed over."""

import ctypes.util
from typing import Any

import pytest

from realtime.media import opus_library


@pytest.fixture
def found():
    [first, *_] = opus_library._candidates()
    return first


def test_what_cannot_be_loaded_or_is_another_library_is_passed_over(found, monkeypatch, tmp_path):
    damaged = tmp_path / "libopus.so"
    damaged.write_bytes(b"no library")
    another = ctypes.util.find_library("c")
    candidates = [str(tmp_path / "gone.so"), str(damaged), *([another] if another else []), found]
    monkeypatch.setattr(opus_library, "_candidates", lambda: iter(candidates))
    library: Any = opus_library._load()
    assert library._name == found
    candidates.pop()
    assert opus_library._load() is None


def test_where_the_wheel_brings_none_the_systems_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(opus_library.av, "__file__", str(tmp_path / "av" / "__init__.py"))
    monkeypatch.setattr(ctypes.util, "find_library", {"opus": "libopus.so.0"}.get)
    assert list(opus_library._candidates()) == ["libopus.so.0"]
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: None)
    assert list(opus_library._candidates()) == []
