"""A model that is talked to in text: any server that speaks OpenAI's Chat Completions.

Owns: `ChatModel`. Driven by a `ContextWindow` (it is a `Summarizer`), by a local LLM that thinks with it, and by
applications. One request is one streamed reply; nothing is retried and nothing is remembered. The server is not trusted:
the reply is bounded in time and bytes, and whatever goes wrong is one `ModelError`, in whose text no key appears. Needs
the extra ``chat``.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self
from urllib.parse import SplitResult, urlsplit

from realtime.chat.formats.openai import to_openai_messages
from realtime.chat.formats.text import clean, pictures_of, result_text, words_of
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.errors import ArgumentError, MissingExtraError, ModelError, UserError
from realtime.models.base import check_name
from realtime.models.chat_options import ChatOptions, ReplyWait
from realtime.models.chat_stream import ReplyReader
from realtime.pipelines.clock import Clock, SystemClock
from realtime.pipelines.worker import encode_pool

if TYPE_CHECKING:
    import httpx2

__all__ = ["ChatModel", "ChatOptions", "ToolDescription", "transcript_of"]

_IS_INSTALLED: Final = find_spec("httpx2") is not None
_URL: Final = "https://api.openai.com/v1"
_PATH: Final = "/chat/completions"
_TOOL_CHOICES: Final = ("auto", "none", "required")
_MAX_ERROR_BYTES: Final = 64 * 1024
_SHORTEST_SECRET: Final = 8
_SUMMARY_PROMPT: Final = (
    "You are given a part of a conversation between a user and an assistant. Write down what has to be remembered of it, so "
    "that the assistant can go on without it: facts, names, numbers, what the user wants, what was promised, what tools gave. "
    "Be brief. Do not answer anything in it, and add nothing that is not in it. Write in the language of the conversation."
)
_SPEAKERS: Final[dict[str, str]] = {
    ChatRole.USER: "User",
    ChatRole.ASSISTANT: "Assistant",
    ChatRole.SYSTEM: "Instruction",
    ChatRole.DEVELOPER: "Instruction",
    ChatRole.TOOL: "Tool result",
}


class ToolDescription(Protocol):
    """What a model is told of a tool; `core.settings.ToolSpec` is one."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def description(self) -> str:
        """What it does."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of its arguments."""
        ...


class ChatModel:
    """A text model behind OpenAI's Chat Completions, at OpenAI or anywhere else.

    ::

        window = ContextWindow(max_tokens=8_000, summary_llm=ChatModel("gpt-5-mini"))
        async with ChatModel("qwen3", url="http://127.0.0.1:8000/v1") as model:
            async for piece in model.stream(context.messages()): ...

    One object serves any number of requests at once, on one event loop.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        options: ChatOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Describe the model. Nothing is connected yet.

        Args:
            model: Its name at the server.
            url: The server's base, such as ``http://127.0.0.1:8000/v1``; default: OpenAI's.
            api_key: Sent as a bearer token. Default: the environment's ``OPENAI_API_KEY``, but only to OpenAI itself.
            headers: Sent with each request besides. Never told: values of eight characters and more are taken out of what a
                server says.
            options: How it asks and waits.
            clock: For the deadlines; default: the system's.

        Raises:
            ArgumentError: A setting cannot be.
            UserError: OpenAI needs a key and there is none.
            MissingExtraError: The extra ``chat`` is not installed.
        """
        if not _IS_INSTALLED:
            raise MissingExtraError("ChatModel", extra="chat", package="httpx2")
        check_name("model", model, "the model's name at its server")
        base = _URL if url is None else url
        address = _web_address(base)
        if address is None:
            raise ArgumentError("url", url, "an http:// or https:// URL")
        if url is None:
            api_key = api_key or os.environ.get("OPENAI_API_KEY")
            if not api_key:
                raise UserError("OpenAI needs a key: pass api_key=, or set OPENAI_API_KEY")
        if api_key is not None and not _fits_header(api_key):
            raise ArgumentError("api_key", "…", "printable ASCII text without line breaks")
        for header, value in (headers or {}).items():
            if not _fits_header(header) or not _fits_header(value):
                raise ArgumentError("headers", header, "names and values of printable ASCII text without line breaks")
        self.model = model
        """Its name at the server."""
        self.url = base.rstrip("/").removesuffix(_PATH) + _PATH
        """Where requests go."""
        self.name = f"{address.hostname}:{model}"
        """What messages call it."""
        self.options = options or ChatOptions()
        """How it asks and waits."""
        told = (
            api_key,
            address.password,
            *(value for value in (headers or {}).values() if len(value) >= _SHORTEST_SECRET),
        )
        self._secrets = sorted(filter(None, told), key=len, reverse=True)
        self._clock = clock or SystemClock()
        authorization = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._headers = {"Accept": "text/event-stream, application/json", **authorization, **(headers or {})}
        self._client: httpx2.AsyncClient | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"ChatModel({self.model!r}, url={self._redacted(self.url)!r})"

    async def __aenter__(self) -> Self:
        """Nothing is connected yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections; replies under way fail. Closing twice does nothing."""
        self._is_closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # -- asking --------------------------------------------------------------------------------------------------------

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        instructions: str = "",
        tools: Iterable[ToolDescription] = (),
        tool_choice: Literal["auto", "none", "required"] = "auto",
        max_output_tokens: int | None = None,
    ) -> AsyncGenerator[str | FunctionCall, None]:
        """Ask for a reply and give it piece by piece.

        Leaving the loop before its end stops the reply at once if the iterator is closed (`contextlib.aclosing`).

        Args:
            messages: The conversation, pictures too, in any state: what is sent is valid.
            instructions: Go before it.
            tools: What the model may call.
            tool_choice: Whether it may, must not or must call one.
            max_output_tokens: The longest reply; None: as the options say.

        Yields:
            Text as it comes; each tool call whole, once all its arguments are there.

        Raises:
            ModelError: The server refused or failed, was too slow, or what it sent is no reply. Codes of our own are
                ``connection_failed``, ``timeout``, ``incomplete``, ``malformed`` and ``response_too_large``.
            UserError: The model is closed.
        """
        if self._is_closed:
            raise UserError(f"{self.name} is closed")
        if tool_choice not in _TOOL_CHOICES:
            raise ArgumentError("tool_choice", tool_choice, f"one of {', '.join(_TOOL_CHOICES)}")
        leading = [ChatMessage(ChatRole.SYSTEM, instructions)] if instructions else []
        request = await self._make_request(
            [*leading, *messages], tuple(tools), tool_choice, max_output_tokens or self.options.max_output_tokens
        )
        import httpx2  # noqa: PLC0415  # an extra; the request has loaded it

        wait = ReplyWait(self._clock, self.options)
        reader = ReplyReader(max_bytes=self.options.max_response_bytes, redact=self._redacted)
        try:
            async with aclosing(self._exchange(request, wait, reader)) as pieces:
                async for piece in pieces:
                    yield piece
        except TimeoutError:
            raise ModelError(f"{self.name} took longer than {wait.limit:g} s", code="timeout") from None
        except httpx2.TimeoutException as error:
            raise ModelError(f"{self.name}: {type(error).__name__}", code="timeout") from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            text = f"{self.name} cannot be reached" if not reader.has_begun else f"{self.name} broke off its reply"
            code = "incomplete" if reader.has_begun else "connection_failed"
            raise ModelError(self._redacted(f"{text}: {type(error).__name__} {error}".strip()), code=code) from None

    async def _exchange(
        self, request: httpx2.Request, wait: ReplyWait, reader: ReplyReader
    ) -> AsyncGenerator[str | FunctionCall, None]:
        if self._client is None:
            raise UserError(f"{self.name} was closed")
        response: httpx2.Response | None = None
        try:
            async with wait.for_answer():
                response = await self._client.send(request, stream=True)
            chunks = response.aiter_bytes()
            if not response.is_success:
                raise await self._refusal(response.status_code, chunks, wait, reader)
            reader.begin(response.headers.get("Content-Type", ""))
            while True:
                async with wait.for_more():
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                for piece in reader.feed(chunk):
                    yield piece
                if reader.is_done:
                    return
            for piece in reader.end():
                yield piece
        finally:
            if response is not None:
                await response.aclose()

    async def reply(
        self,
        messages: Sequence[ChatMessage],
        *,
        instructions: str = "",
        tools: Iterable[ToolDescription] = (),
        tool_choice: Literal["auto", "none", "required"] = "auto",
        max_output_tokens: int | None = None,
    ) -> ChatMessage:
        """Ask for a reply and wait for all of it. Arguments and errors as for `stream`.

        Returns:
            The assistant's message, without an id.
        """
        texts: list[str] = []
        calls: list[FunctionCall] = []
        pieces = self.stream(
            messages,
            instructions=instructions,
            tools=tools,
            tool_choice=tool_choice,
            max_output_tokens=max_output_tokens,
        )
        async for piece in pieces:
            if isinstance(piece, str):
                texts.append(piece)
            else:
                calls.append(piece)
        return ChatMessage(ChatRole.ASSISTANT, "".join(texts), tool_calls=tuple(calls))

    async def summarize(self, messages: Sequence[ChatMessage]) -> str:
        """A digest of the messages (`realtime.Summarizer`): they are shown as a transcript, so that nothing in it is answered.

        Raises:
            ModelError: As for `stream`.
        """
        asked = ChatMessage(ChatRole.USER, transcript_of(messages))
        return (await self.reply([asked], instructions=_SUMMARY_PROMPT)).content.strip()

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _make_request(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolDescription], tool_choice: str, limit: int | None
    ) -> httpx2.Request:
        """The request, made on a thread: pictures become megabytes of base64, and the first one loads the HTTP client."""
        member = encode_pool.join()
        try:
            body = await encode_pool.run(self._body, messages, tools, tool_choice, limit)
            if self._client is None:
                await self._keep(await encode_pool.run(self._make_client))
        finally:
            await encode_pool.leave(member)
        if self._client is None:
            raise UserError(f"{self.name} was closed")
        return self._client.build_request("POST", self.url, content=body, headers={"Content-Type": "application/json"})

    async def _keep(self, client: httpx2.AsyncClient) -> None:
        """Take the first client that is made; another request may have made one meanwhile."""
        if self._client is None and not self._is_closed:
            self._client = client
        else:
            await client.aclose()

    def _make_client(self) -> httpx2.AsyncClient:
        import httpx2  # noqa: PLC0415  # an extra

        return httpx2.AsyncClient(
            headers=self._headers,
            timeout=httpx2.Timeout(None, connect=self.options.connect_timeout_seconds),  # the others go by the clock
        )

    def _body(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolDescription], tool_choice: str, limit: int | None
    ) -> bytes:
        options = self.options
        body: dict[str, Any] = {
            "model": self.model,
            "messages": to_openai_messages(messages, reasoning_model=options.reasoning_model, audio=options.audio),
            "stream": True,
        }
        if tools:
            body["tools"] = [_described(tool) for tool in tools]
            body["tool_choice"] = tool_choice
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if limit is not None:
            body["max_completion_tokens" if options.reasoning_model else "max_tokens"] = limit
        try:
            return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise UserError(f"a tool's description is no JSON: {error}") from error

    async def _refusal(
        self, status: int, chunks: AsyncIterator[bytes], wait: ReplyWait, reader: ReplyReader
    ) -> ModelError:
        """What the server said when it refused, as far as it said anything."""
        body = b""
        while len(body) < _MAX_ERROR_BYTES:
            async with wait.for_more():
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            body += chunk
        return reader.refusal(status, body[:_MAX_ERROR_BYTES])

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text


def transcript_of(messages: Sequence[ChatMessage]) -> str:
    """Messages as a text that tells who said, showed and called what."""
    lines: list[str] = []
    for message in messages:
        speaker = _SPEAKERS[message.role]
        text = result_text(message) if message.role is ChatRole.TOOL else words_of(message)
        if text:
            lines.append(text if message.summary else f"{speaker}: {text}")
        if pictures := len(pictures_of(message)):
            lines.append(f"{speaker} showed {pictures} picture(s).")
        lines += (f"{speaker} called {clean(call.name)}({clean(call.arguments)})" for call in message.tool_calls)
    return "\n".join(lines)


def _web_address(url: object) -> SplitResult | None:
    """The parts of an http(s) URL; None if it is none."""
    if not isinstance(url, str):
        return None
    try:
        address = urlsplit(url)
    except ValueError:
        return None
    return address if address.scheme in {"http", "https"} and address.hostname else None


def _fits_header(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable()


def _described(tool: ToolDescription) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
