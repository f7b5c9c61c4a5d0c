"""Planes brought to BT.601 in whole numbers, where they are: nothing wraps, whatever a decoder gives."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.media import planes


@pytest.mark.parametrize("matrix", sorted(planes._LUMA_WEIGHTS))
@pytest.mark.parametrize(("lowest", "highest"), [(0, 255), (60, 180), (0, 0), (255, 255)])
@pytest.mark.parametrize("beyond", [0, 6])
def test_what_is_out_of_range_is_clipped(monkeypatch, matrix, lowest, highest, beyond):
    """I3: a damaged or synthetic picture has luma and chroma that no color has."""
    monkeypatch.setattr(planes, "_STRIPE", 500)  # several, and a rest
    rng = np.random.default_rng(matrix)
    memory = rng.integers(lowest, highest + 1, (48, 64 + beyond), dtype=np.uint8)
    luma = memory[:, :64]
    blue, red = (rng.integers(0, 256, (24, 32), dtype=np.uint8) for _ in range(2))
    before, outside = luma.astype(int), memory[:, 64:].copy()
    u, v = blue.astype(int) - 128, red.astype(int) - 128
    to_luma, to_blue, to_red = ((u * a + v * b + 64) >> 7 for a, b in planes._shares_of_chroma(matrix))
    planes._to_bt601((luma, blue, red), matrix)
    assert np.array_equal(luma, np.clip(before + np.kron(to_luma, np.ones((2, 2), int)), 0, 255))
    assert np.array_equal(blue, np.clip(u + 128 + to_blue, 0, 255))
    assert np.array_equal(red, np.clip(v + 128 + to_red, 0, 255))
    assert np.array_equal(memory[:, 64:], outside)
