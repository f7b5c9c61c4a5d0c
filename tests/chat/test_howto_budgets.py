"""What the how-to on budgets prints and says is so."""

import re
from pathlib import Path

from realtime.chat.image_prices import image_price

PAGE = (Path(__file__).parents[2] / "docs" / "howto-budgets.md").read_text(encoding="utf-8")


def program():
    found = re.search(r"<!-- program: budgets -->\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    namespace = {"__name__": "budgets"}
    exec(compile(found[1], "howto-budgets.md", "exec"), namespace)
    return namespace


def test_the_program_prints_the_table(capsys):
    program()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 8
    for line in printed:
        assert line in PAGE


def test_the_prices_are_those_of_the_table():
    rows = re.findall(r"^\| [^|]+ \| `([\w.-]+)` \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for rule, high, low in rows:
        assert image_price(rule).tokens((1024, 1024), "high") == int(high)
        assert image_price(rule).tokens((1024, 1024), "low") == int(low)


def test_words_outlive_pictures_under_a_tight_budget():
    """All sentences are in the context of the last reply, beside a few pictures."""
    names = program()
    contexts = []
    real = names["ChatContext"]
    names["ChatContext"] = lambda messages: contexts.append(real(messages)) or contexts[-1]
    names["tokens_of_call"]("openai-tiles", "high", max_tokens=4000)
    (context,) = contexts
    spoken = [message for message in context.messages() if message.content == names["USER"]]
    assert len(spoken) == names["TURNS"]
    assert 2 <= sum(message.is_frame for message in context.messages()) < 5


def test_without_bounds_cost_grows_with_the_square_and_with_bounds_with_the_length():
    names = program()
    once, _ = names["tokens_of_call"]("openai-tiles", "high")
    bounded, most = names["tokens_of_call"]("openai-tiles", "high", max_tokens=8000)
    names["TURNS"] = 60
    twice, _ = names["tokens_of_call"]("openai-tiles", "high")
    bounded_twice, _ = names["tokens_of_call"]("openai-tiles", "high", max_tokens=8000)
    assert 3.7 < twice / once < 4.1
    assert bounded_twice / bounded < 2.1
    assert most <= 8000
    assert bounded <= 30 * 8000
