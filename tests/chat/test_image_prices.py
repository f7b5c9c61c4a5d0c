"""What pictures cost, by the providers' own examples (W1, B16)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.image_prices import IMAGE_PRICES, OpenAIPatches, OpenAITiles, image_price
from realtime.errors import ArgumentError

PUBLISHED = [
    # OpenAI, images and vision: examples of the section on calculating costs
    ("openai-tiles", (1024, 1024), "high", 765),
    ("openai-tiles", (2048, 4096), "high", 1105),
    ("openai-tiles", (4096, 8192), "low", 85),
    ("openai-patches", (1024, 1024), "high", 1024),
    ("openai-patches", (1800, 2400), "high", 1452),
    ("openai-patches-mini", (1800, 2400), "high", 2352),
    # billed by the service, reported in its forum
    ("openai-tiles", (128, 64), "high", 255),
    ("openai-tiles", (2049, 513), "high", 1445),
    ("openai-tiles", (2050, 513), "high", 765),
    ("openai-patches-mini", (4000, 1474), "high", 2488),
    # Anthropic, vision: the table of image costs
    ("anthropic-area", (200, 200), "auto", 54),
    ("anthropic-area", (1000, 1000), "auto", 1334),
    ("anthropic-area", (1092, 1092), "auto", 1590),
    ("anthropic-area", (4000, 3000), "auto", 1600),
    # Google, tokens: up to 384 pixels one tile, then one for each 768×768
    ("gemini-tiles", (384, 384), "auto", 258),
    ("gemini-tiles", (385, 384), "auto", 258),
    ("gemini-tiles", (1024, 1024), "auto", 4 * 258),
    ("gemini-tiles", (1920, 1080), "low", 258),
    ("gemini-tiles", (6144, 6144), "auto", 16 * 258),
    # Google, media resolution
    ("gemini-3", (4000, 3000), "auto", 1120),
    ("gemini-3", (64, 64), "low", 280),
]


@pytest.mark.parametrize(("name", "size", "detail", "tokens"), PUBLISHED)
def test_published_examples(name, size, detail, tokens):
    assert image_price(name).tokens(size, detail) == tokens


def test_families_of_tiles_differ_in_base_and_tile():
    sizes = {name: image_price(name).tokens((1024, 1024), "auto") for name in IMAGE_PRICES if "tiles" in name}
    assert sizes == {
        "openai-tiles": 85 + 4 * 170,
        "openai-tiles-gpt-5": 70 + 4 * 140,
        "openai-tiles-gpt-4o-mini": 2833 + 4 * 5667,
        "openai-tiles-o-series": 75 + 4 * 150,
        "gemini-tiles": 4 * 258,
    }


def test_patch_budgets_grow_with_detail():
    price = OpenAIPatches(patches=2500, original_patches=10_000)
    low, high, original = (price.tokens((4000, 3000), detail) for detail in ("low", "high", "original"))
    assert low == 16 * 12
    assert low < high <= 2500 < original <= 10_000
    assert price.tokens((4000, 3000), "auto") == high
    assert (
        OpenAIPatches(patches=2500, original_patches=10_000, auto_is_original=True).tokens((4000, 3000), "auto")
        == original
    )
    assert OpenAIPatches().tokens((4000, 3000), "original") == OpenAIPatches().tokens((4000, 3000), "high")


@given(
    st.sampled_from(sorted(IMAGE_PRICES)),
    st.none()
    | st.tuples(st.integers(1, 20_000), st.integers(1, 20_000))
    | st.tuples(st.integers(1, 2**32), st.integers(1, 2**32)),
    st.sampled_from(["auto", "low", "high", "original"]),
)
def test_every_price_is_positive_and_bounded_and_low_is_never_dearer(name, size, detail):
    """B16: never zero, whatever the size."""
    tokens = image_price(name).tokens(size, detail)
    assert isinstance(tokens, int)
    assert tokens >= 1
    assert tokens <= 100_000  # a header may claim any size
    assert image_price(name).tokens(size, "low") <= max(tokens, image_price(name).tokens(size, "high"))


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_a_turned_picture_costs_the_same(width, height):
    for name in IMAGE_PRICES:
        assert image_price(name).tokens((width, height), "high") == image_price(name).tokens((height, width), "high")


def test_a_picture_of_unknown_size_is_priced_as_1024_by_1024():
    for price in IMAGE_PRICES.values():
        assert price.tokens(None, "auto") == price.tokens((1024, 1024), "auto")


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(ArgumentError, match="anthropic-area"):
        image_price("openai")
    assert image_price("openai-tiles") == OpenAITiles(base=85, tile=170)


def test_every_capability_names_a_rule_that_exists():
    from realtime.core.capabilities import ModelCapabilities

    assert ModelCapabilities().image_price in IMAGE_PRICES
