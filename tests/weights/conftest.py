"""The tests of the main environment leave these alone: the weights that they need have lines of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Run them only when they are asked for."""
    return True if config.rootpath != HERE and collection_path.suffix == ".py" else None
