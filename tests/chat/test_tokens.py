"""Counting tokens (W1): by words, by script beside the true vocabulary, by the vocabulary."""

import functools
import subprocess
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.image_prices import image_price
from realtime.chat.messages import AudioContent, ChatMessage, FunctionCall, ImageContent
from realtime.chat.script_estimate import estimate_tokens
from realtime.chat.tokens import (
    DEFAULT_COUNTER,
    O200kCounter,
    ScriptCounter,
    TokenCounter,
    WordCounter,
    as_counter,
    message_tokens,
)
from realtime.errors import ArgumentError, MissingExtraError

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg")


@functools.cache
def vocabulary() -> Any:
    """The true vocabulary, which takes a second to load: only the processes that use it do."""
    with warnings.catch_warnings():  # the package opens its own files in a way that is going out of use
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        return bpe_openai.get_encoding("o200k_base")


def true_tokens(text: str) -> int:
    return len(vocabulary().encode_ordinary(text))


TEXTS = {
    "Chinese, ordering": "您好,我想订一张明天下午从上海到北京的高铁票,最好是靠窗的座位。如果下午的票已经卖完了,晚上的也可以,但是不要太晚,因为我后天早上还要参加一个重要的会议。",
    "Chinese, cooking": "先把鸡蛋打散,加少许盐,然后把番茄切成小块。锅里放油,油热以后倒入鸡蛋,炒熟后盛出来。再炒番茄,等出汁以后把鸡蛋倒回去,最后撒一点葱花。",
    "Chinese, news": "根据最新公布的数据,今年第一季度的出口总额比去年同期增长了百分之八。专家认为,主要原因是新能源汽车和电子产品的需求持续上升,但国际市场仍然存在很多不确定因素。",
    "Chinese, traditional": "各位旅客請注意,由於颱風接近,今天晚上所有往東部的列車全部停駛。已經購票的旅客可以在三十天之內辦理全額退費,造成不便,敬請見諒。",
    "Japanese, station": "次の電車は信号機の点検のため、およそ十五分遅れて到着する見込みです。お急ぎのところ大変申し訳ございませんが、しばらくお待ちください。なお、乗り換えのお客様は駅員にお尋ねください。",
    "Japanese, daily": "週末は家族と一緒に海へ行って、砂浜でスイカ割りをしました。天気がとても良くて、子どもたちは日が暮れるまで泳いでいました。帰り道では疲れて、みんな車の中で眠ってしまいました。",
    "Japanese, software": "アプリケーションを起動すると、ログイン画面が表示されます。メールアドレスとパスワードを入力して、ボタンをクリックしてください。パスワードを忘れた場合は、下のリンクから再設定できます。",
    "emoji, chat": "Happy birthday!! 🎂🎉🥳 Hope you have an amazing day 😍❤️ See you tonight 🍕🍻😂😂😂 can't wait 🙌🔥",
    "emoji, alone": "😀😎🤖👾🎮🎲🏆🥇🚀🌍🌈⭐🔥💧🌊🍀🌻🐶🐱🦄",
    "emoji, joined": "👩‍💻👨‍👩‍👧‍👦🏳️‍🌈👍🏽🙋🏿‍♀️🇫🇷🇧🇷 family and flags 👩‍🚀",
    "code, Python": '''class Ring:
    """Keeps the newest items."""

    def __init__(self, capacity: int) -> None:
        self._items = [None] * capacity
        self._next = 0

    def push(self, item: object) -> None:
        self._items[self._next % len(self._items)] = item
        self._next += 1

    def newest(self, count: int = 1) -> list[object]:
        if count > len(self._items):
            raise ValueError(f"only {len(self._items)} items are kept, not {count}")
        return [self._items[(self._next - 1 - i) % len(self._items)] for i in range(count)]
''',
    "code, C": """#include <stdio.h>

static int compare(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

int main(void) {
    int values[] = {5, 3, 9, 1};
    size_t count = sizeof(values) / sizeof(values[0]);
    qsort(values, count, sizeof(int), compare);
    for (size_t i = 0; i < count; ++i) printf("%d\\n", values[i]);
    return 0;
}
""",
    "code, JSON": '{"tool": "get_weather", "arguments": {"city": "San Francisco", "days": 5, "units": "celsius"}, "id": "call_8f3a21"}',
    "code, SQL": "SELECT o.id, c.name, SUM(i.price * i.quantity) AS total FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY o.id HAVING total > 100;",
    "English": "I would like to know whether the museum is open on public holidays, and if there is a discount for students and families with small children.",
    "German": "Könnten Sie mir bitte sagen, welche Unterlagen ich für die Anmeldung meines Fahrzeugs mitbringen muss und wie lange die Bearbeitung ungefähr dauert?",
    "Russian": "Подскажите, пожалуйста, как добраться до ближайшей станции метро и сколько времени это займёт, если идти пешком с чемоданом?",
    "Korean": "이번 주말에 친구들과 함께 제주도로 여행을 가려고 하는데, 렌터카를 미리 예약하는 것이 좋을까요? 추천해 주실 만한 곳이 있으면 알려 주세요.",
    "Arabic": "أود أن أحجز طاولة لأربعة أشخاص مساء يوم الجمعة بالقرب من النافذة إذا كان ذلك ممكنا، وشكرا جزيلا لكم.",
    "Hindi": "क्या आप मुझे बता सकते हैं कि यह दुकान कितने बजे खुलती है और यहाँ से रेलवे स्टेशन कितनी दूर है?",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_estimate_is_within_a_quarter_of_the_truth(name):
    truth = true_tokens(TEXTS[name])
    assert 0.75 * truth <= estimate_tokens(TEXTS[name]) <= 1.25 * truth


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith(("Chinese", "Japanese"))])
def test_words_fail_where_the_estimate_does_not(name):
    truth = true_tokens(TEXTS[name])
    assert WordCounter().count_text(TEXTS[name]) < 0.25 * truth


@given(st.text())
def test_estimate_takes_any_text_and_counts_something(text):
    tokens = estimate_tokens(text)
    assert isinstance(tokens, int)
    assert (tokens >= 1) == bool(text)


@given(st.text(alphabet=st.characters(), max_size=60))
def test_vocabulary_takes_any_text_even_lone_surrogates(text):
    assert O200kCounter().count_text(text) >= 0
    assert O200kCounter().count_text(text + "<|endoftext|>") > 1  # text that looks like a control token is text


def test_vocabulary_is_the_truth():
    for text in TEXTS.values():
        assert O200kCounter().count_text(text) == true_tokens(text)


@pytest.mark.parametrize(
    "text", ["a word ", "漢字", "x" * 50_001, "é", "🎉"], ids=["words", "han", "run", "é", "emoji"]
)
def test_vocabulary_takes_text_of_any_length(text):
    """W1: the package refuses more than 200,000 tokens at once; a tool's result may have them."""
    once, often = O200kCounter().count_text(text * 20), O200kCounter().count_text(text * (1_200_000 // len(text)))
    assert often == pytest.approx(once * (1_200_000 // len(text)) / 20, rel=0.05)
    whole = "A sentence of several words, and one more. " * 2_000
    assert O200kCounter().count_text(whole) == true_tokens(whole)


def test_words_are_two_tokens_each():
    assert [WordCounter().count_text(text) for text in ("", " \n", "one", "one  two\tthree\n")] == [0, 0, 2, 6]


def test_all_of_a_message_that_can_be_sent_counts():
    counter = WordCounter(images=image_price("anthropic-area"))
    recording = AudioContent.from_pcm(bytes(160), 8000, transcript="said it aloud")
    call = FunctionCall("look up", '{"a": 1}', "a long call id that does not count")
    assert message_tokens(counter, ChatMessage("user", "one two")) == 4
    assert message_tokens(counter, ChatMessage("user", "", audio=recording)) == 6
    assert message_tokens(counter, ChatMessage("user", "one", audio=recording)) == 2
    assert message_tokens(counter, ChatMessage("assistant", "", tool_calls=[call, call])) == 16
    assert message_tokens(counter, ChatMessage("assistant", "one", thinking="two three")) == 6
    assert message_tokens(counter, ChatMessage("assistant", "one", unheard="two three")) == 2
    assert message_tokens(counter, ChatMessage("user", "one", images=[PICTURE, PICTURE])) == 2 + 2 * 1399


def test_counters_have_names():
    assert as_counter("words") is DEFAULT_COUNTER
    assert as_counter("estimate") == ScriptCounter()
    assert as_counter("o200k") == O200kCounter()
    assert as_counter(ScriptCounter()) == ScriptCounter()
    for counter in (WordCounter(), ScriptCounter(), O200kCounter(), as_counter(len)):
        assert isinstance(counter, TokenCounter)
        assert counter.count_image(PICTURE) == 765
    for wrong in ("letters", None, 3, WordCounter.__mro__, WordCounter):
        with pytest.raises(ArgumentError, match="counter"):
            as_counter(wrong)


@pytest.mark.parametrize("wrong", [list, -1, "1", None, 1.5])
def test_a_function_that_gives_no_number_of_tokens_is_refused_by_name(wrong):
    """A tokenizer's `encode` gives the tokens, not their number."""
    counter = as_counter(lambda text: list(text) if wrong is list else wrong)
    with pytest.raises(ArgumentError, match="counter must be a function that gives the number of tokens"):
        counter.count_text("three")


def test_without_its_package_the_vocabulary_says_how_to_install_it():
    code = (
        "import sys; sys.modules['bpe_openai'] = None\n"
        "from realtime.chat.window import ContextWindow\n"
        "try: ContextWindow(counter='o200k')\n"
        "except ImportError as error: print(error.extra, error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("tokens ")
    assert "realtime-session[tokens]" in shown
    assert issubclass(MissingExtraError, ImportError)
