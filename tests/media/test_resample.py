"""One stream from one rate to another (behaviour.md A1, B51)."""

import threading

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ArgumentError
from realtime.media.resample import Resampler

RATES = [
    (48_000, 24_000), (48_000, 16_000), (24_000, 48_000), (16_000, 48_000), (8_000, 48_000), (48_000, 8_000), (24_000, 16_000),
    (16_000, 24_000), (44_100, 16_000), (22_050, 48_000), (44_100, 48_000), (48_000, 44_100), (11_025, 24_000), (8_000, 24_000),
]  # fmt: skip
ODD_RATES = [(48_000, 44_099), (44_101, 48_000)]


def tone(rate: int, hertz: float, seconds: float = 1.0, level: float = 10_000.0) -> np.ndarray:
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


def through(samples: np.ndarray, rates: tuple[int, int], chunk: int) -> np.ndarray:
    resampler = Resampler(*rates)
    parts = [resampler.push(samples[at : at + chunk]) for at in range(0, len(samples), chunk)]
    return np.concatenate([*parts, resampler.flush()])


@pytest.mark.parametrize("rates", RATES + ODD_RATES)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_a_tone_stays_that_tone_at_its_place(rates, share):
    """B51: no clicks, no shift in time: within 60 dB of the tone itself."""
    source, target = rates
    hertz = share * min(rates) / 2
    got = through(tone(source, hertz), rates, 160)
    wanted = tone(target, hertz)
    assert len(got) == len(wanted) == target
    middle = slice(target // 20, -target // 20)
    error = np.mean((got[middle] - wanted[middle]) ** 2) / np.mean(wanted[middle] ** 2)
    assert 10 * np.log10(error) < -60


@pytest.mark.parametrize("rates", [rates for rates in RATES if rates[0] > rates[1]])
@pytest.mark.parametrize("share", [1.1, 1.5])
def test_what_the_new_rate_cannot_carry_is_not_folded_down(rates, share):
    source, target = rates
    hertz = share * target / 2
    if hertz < source / 2:
        got = through(tone(source, hertz), rates, 960)[target // 20 : -target // 20]
        assert 20 * np.log10(np.sqrt(np.mean(got**2)) / 7071) < -60


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("chunk", [1, 7, 80, 160, 441, 960, 100_000])
def test_the_size_of_chunks_changes_nothing(rates, chunk):
    """A1, B51."""
    samples = np.random.default_rng(2).normal(0, 5000, 3000).astype(np.float32)
    whole = through(samples, rates, len(samples))
    assert np.abs(through(samples, rates, chunk) - whole).max() < 0.01


@given(st.sampled_from(RATES + ODD_RATES), st.lists(st.integers(0, 2000), max_size=12))
def test_the_length_is_kept_to_half_a_sample(rates, chunks):
    """A1: total length within 1 ms after flush."""
    resampler = Resampler(*rates)
    got = sum(len(resampler.push(np.ones(chunk, np.float32))) for chunk in chunks) + len(resampler.flush())
    assert abs(got - sum(chunks) * rates[1] / rates[0]) <= 0.5


@pytest.mark.parametrize("rates", RATES)
def test_less_than_a_frame_is_ever_held_back(rates):
    """Latency: soxr holds 20–40 ms back; this at most 3 ms at speech rates, 14 ms where the rates share little."""
    source, target = rates
    resampler = Resampler(*rates)
    given_out = sum(len(resampler.push(np.zeros(source // 50, np.float32))) for _ in range(50))
    limit = 14 if {source, target} & {44_100, 22_050, 11_025} else 6.5 if min(rates) == 8_000 else 3
    assert (target - given_out) / target * 1000 <= limit


@pytest.mark.parametrize("rates", RATES)
def test_it_agrees_with_soxr(rates):
    """B51: close to a one-shot conversion by another's hand; RMS kept."""
    source, target = rates
    speech = tone(source, 440) + tone(source, 1234, level=3000)
    got, wanted = through(speech, rates, 160), soxr.resample(speech, source, target, "VHQ")
    middle = slice(target // 20, -target // 20)
    assert np.sqrt(np.mean((got[middle] - wanted[middle]) ** 2)) < 10
    assert np.sqrt(np.mean(got[middle] ** 2)) == pytest.approx(np.sqrt(np.mean(wanted[middle] ** 2)), rel=0.01)
    assert np.abs(np.diff(got)).max() < 1.1 * np.abs(np.diff(wanted)).max()


@pytest.mark.parametrize("rates", RATES)
def test_a_level_stays_that_level(rates):
    """Silence stays silence, exactly; a constant stays that constant."""
    assert not through(np.zeros(5000, np.float32), rates, 333).any()
    level = through(np.full(20_000, 1000.0, np.float32), rates, 333)
    assert np.abs(level[len(level) // 4 : -len(level) // 4] - 1000).max() < 0.01


@pytest.mark.parametrize("rates", [RATES[0], ODD_RATES[0]])
def test_push_after_flush_starts_a_new_stream(rates):
    """A1."""
    resampler = Resampler(*rates)
    first = np.concatenate([resampler.push(tone(rates[0], 300, 0.1)), resampler.flush()])
    assert len(resampler.flush()) == 0
    second = np.concatenate([resampler.push(tone(rates[0], 300, 0.1)), resampler.flush()])
    assert np.array_equal(first, second)


@pytest.mark.parametrize("rate", [0, 999, -8000, 16_000.0, True, None, 10**9])
@pytest.mark.parametrize("name", ["from_rate_hz", "to_rate_hz"])
def test_a_rate_that_is_none_is_refused_by_name(rate, name):
    with pytest.raises(ArgumentError, match=f"{name} must be a sample rate"):
        Resampler(**{"from_rate_hz": 48_000, "to_rate_hz": 48_000, name: rate})


def test_it_starts_no_thread():
    """av.AudioResampler starts one per processor."""
    before = threading.active_count()
    resamplers = [Resampler(48_000, 16_000) for _ in range(20)]
    for resampler in resamplers:
        resampler.push(np.zeros(960, np.float32))
    assert threading.active_count() == before
