"""Chat is usable alone: it loads no loop, no socket, no codec (architecture, section 3)."""

import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "av",
    "numpy",
    "PIL",
    "aiortc",
    "websockets",
    "socket",
    "ssl",
    "http",
    "pydantic",
    "bpe_openai",
}

USE = """
import sys
before = set(sys.modules)
from realtime.chat import ChatContext, ChatMessage, ContextWindow, ImageContent
context = ChatContext.empty()
context.add_message("system", "be kind")
context.add_message("user", "look", images=[ImageContent.from_bytes(bytes([255, 216]) + b" a picture", "image/jpeg")])
context.add_function_call("f", {"a": 1}, "c1")
context.add_function_output("f", None, "c1")
window = ContextWindow(max_tokens=20, keep_recent_turns=1, counter="estimate")
context.explain(window)
window.apply(context)
context.to_openai_messages(); context.to_openai_responses(); context.to_anthropic_messages(); context.to_google_contents()
assert ChatContext.from_dict(context.to_dict()) == context
context.truncate(max_items=1); context.merge(context.copy()); context.estimated_tokens()
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def loaded_by(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_and_using_chat_loads_nothing_heavy():
    loaded = loaded_by(USE)
    assert "realtime" in loaded
    assert loaded & HEAVY == set()


def test_a_frame_loads_what_encodes_it_and_only_then():
    code = (
        "import sys\nfrom realtime.chat import ImageContent\nassert 'numpy' not in sys.modules\n"
        "import numpy\npicture = ImageContent.from_frame(numpy.zeros((4, 4, 3), 'uint8'))\n"
        "print(picture.mime_type, picture.size == (1024, 1024), *sys.modules)"
    )
    loaded = loaded_by(code)
    assert {"image/jpeg", "True", "realtime.media.image"} <= loaded


def test_every_public_name_is_there():
    import realtime.chat

    for name in realtime.chat.__all__:
        assert getattr(realtime.chat, name) is not None
    assert set(realtime.chat.__all__) <= set(dir(realtime.chat))
    with pytest.raises(AttributeError, match="Nonsense"):
        realtime.chat.Nonsense  # noqa: B018
