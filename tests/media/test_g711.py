"""G.711, checked against the numbers of ITU-T G.711."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.media import g711


@pytest.mark.parametrize(
    ("code", "value"),
    [(0xFF, 0), (0x7F, 0), (0x80, 32124), (0x00, -32124), (0xFE, 8), (0x7E, -8), (0xF0, 120), (0xC0, 1884)],
)
def test_mu_law_values(code: int, value: int) -> None:
    assert g711.decode_table("mu")[code] == value
    assert g711.decode(bytes([code])) == value.to_bytes(2, "little", signed=True)


@pytest.mark.parametrize(
    ("code", "value"), [(0xD5, 8), (0x55, -8), (0xAA, 32256), (0x2A, -32256), (0xD4, 24), (0xC5, 264), (0x85, 4224)]
)
def test_a_law_values(code: int, value: int) -> None:
    assert g711.decode_table("a")[code] == value
    assert g711.decode(bytes([code]), "a") == value.to_bytes(2, "little", signed=True)


@pytest.mark.parametrize("law", ["mu", "a"])
def test_every_code_is_its_own_after_a_round_trip(law: g711.Law) -> None:
    table = g711.decode_table(law)
    again = np.frombuffer(g711.encode(table.astype("<i2").tobytes(), law), np.uint8)
    np.testing.assert_array_equal(table[again], table)


@pytest.mark.parametrize("law", ["mu", "a"])
def test_no_sample_is_further_from_its_code_than_half_a_step(law: g711.Law) -> None:
    samples = np.arange(-32_124, 32_125, 7, dtype=np.int16)
    heard = np.frombuffer(g711.decode(g711.encode(samples.astype("<i2").tobytes(), law), law), "<i2")
    error = np.abs(heard.astype(int) - samples)
    assert (error <= np.maximum(8, np.abs(samples.astype(int)) // 16 + 4)).all()


def test_an_odd_byte_is_no_sample_and_nothing_is_nothing() -> None:
    assert len(g711.encode(b"\0\0\0")) == 1
    assert g711.encode(b"") == g711.decode(b"") == b""
    assert g711.decode(g711.MU_LAW_SILENCE) == b"\0\0"
