"""What the provider's conversation holds, apart from what we keep: behaviour.md W5, P2."""

from __future__ import annotations

from realtime.core.ledger import Ledger


def test_item_that_was_deleted_before_it_was_reported_is_not_there():
    ledger = Ledger()
    ledger.delete("a")
    ledger.add("a")
    assert "a" not in ledger
    ledger.remove("a")  # the provider has confirmed it
    ledger.add("a")
    assert "a" in ledger


def test_deletions_that_no_provider_confirms_are_forgotten():
    ledger = Ledger()
    for number in range(5_000):
        ledger.add(f"i{number}")
        ledger.delete(f"i{number}")
    assert len(ledger) == 0
    assert len(ledger._deleting) <= 1_024


def test_oldest_items_of_an_endless_conversation_are_forgotten():
    ledger = Ledger()
    for number in range(25_000):
        ledger.add(f"i{number}")
    assert len(ledger) == 20_000
    assert "i0" not in ledger
    assert "i24999" in ledger


def test_what_is_gone_here_counts_until_it_is_gone_there():
    ledger = Ledger()
    ledger.add("frame")
    ledger.add("words")
    ledger.mark_gone("frame", 100)
    ledger.mark_gone("frame", 100)
    ledger.lost_picture("words", 50)
    ledger.mark_gone("unknown", 999)
    assert (ledger.gone_tokens, ledger.gone_count, ledger.oldest_gone()) == (150, 1, "frame")
    ledger.delete("frame")
    assert (ledger.gone_tokens, ledger.gone_count) == (50, 0)
    ledger.delete("words")
    assert ledger.gone_tokens == 0


def test_restored_item_is_text_whatever_it_was():
    ledger = Ledger()
    ledger.add("spoken")
    ledger.add("told", is_restored=True)
    assert ledger.is_spoken("spoken")
    assert not ledger.is_spoken("told")
    ledger.clear()
    assert not ledger.is_spoken("spoken")
