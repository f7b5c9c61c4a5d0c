"""`RealtimeSession`: the object users hold. Composition only.

Owns: what a user chose, checked before anything starts; the machine and the runtime of one session; and the calls on
them. Driven by the application. It decides nothing: decisions are the machine's (`realtime.core`), work is the
pipelines'.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from realtime.chat.context import ChatContext
from realtime.chat.conversation import Conversation
from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.chat.window import ContextWindow
from realtime.core.commands import RunTool
from realtime.core.model_events import TokenUsage
from realtime.core.seeding import check_seed
from realtime.core.settings import (
    Agent,
    AudioRetention,
    FrameSampling,
    ReconnectPolicy,
    Retention,
    SessionSettings,
    TurnDetection,
    UsageLimits,
)
from realtime.errors import ArgumentError, SessionClosed, UserError
from realtime.media.options import DEFAULT_REALTIME_ENCODE_OPTIONS, EncodeOptions
from realtime.models import resolve
from realtime.models.base import RealtimeModel
from realtime.pipelines.clock import Clock
from realtime.pipelines.pictures import PictureFetcher
from realtime.pipelines.runtime import SessionRuntime
from realtime.pipelines.session_acts import SessionActs
from realtime.pipelines.setup import (
    check_abilities,
    check_agents,
    check_takeover,
    check_text,
    check_type,
    one_of,
    or_default,
    starting_point,
)
from realtime.pipelines.tool import CallContext, build_tools

__all__ = ["RealtimeSession", "ToolContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(CallContext):
    """What a running tool may know and do. A parameter annotated with it is injected and left out of the tool's schema."""

    session: RealtimeSession
    """The session; a tool may call anything of it, `hand_off` and `aclose` too (behaviour.md T5)."""
    messages: tuple[ChatMessage, ...]
    """The context at the time of the call, without audio."""
    usage: TokenUsage
    """Tokens of all responses so far."""
    context_window_used: float | None
    """As `RealtimeSession.context_window_used`."""


class RealtimeSession(SessionActs):
    """A voice and vision conversation with a model: tracks in, a live context, a spoken reply out.

    ::

        async with RealtimeSession("local", instructions="Answer in one sentence.") as session:
            session.attach(pc)
            async for event in session:
                ...

    It begins with ``async with``, once, and ends with it or with `aclose`. Every call belongs to the event loop that it
    began on.
    """

    def __init__(
        self,
        model: str | RealtimeModel,
        *,
        instructions: str = "",
        context: ChatContext | None = None,
        message_history: Sequence[ChatMessage] | ChatContext | None = None,
        conversation: Conversation | None = None,
        tools: Iterable[Any] = (),
        voice: str | None = None,
        agents: Iterable[Agent] = (),
        window: ContextWindow | None = None,
        audio_retention: AudioRetention = "transcript_only",
        retain_audio_max_seconds: float | None = 1800,
        retain_images_every_n: int = 1,
        retain_images_max: int | None = 100,
        max_history_messages: int = 10_000,
        mirror_evictions: bool = False,
        sampling: FrameSampling | None = None,
        encode_options: EncodeOptions = DEFAULT_REALTIME_ENCODE_OPTIONS,
        image_detail: Literal["auto", "low", "high"] = "auto",
        download: bool = True,
        turn_detection: TurnDetection | None = None,
        transcription: str = "auto",
        output: Literal["audio", "text"] = "audio",
        reconnect: ReconnectPolicy | None = None,
        usage_limits: UsageLimits | None = None,
        memory_limit_bytes: int | None = None,
        resume_after_ms: int = 0,
        tool_timeout_seconds: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        """Check and keep what was chosen. Nothing is connected before ``async with``.

        Args:
            model: ``"local"``, ``"openai:gpt-realtime"``, ``"azure:…"``, ``"ws://…"``, ``"wss://…"``, or a
                `RealtimeModel`.
            instructions: What the model is told about its part.
            context: The live context to go on with. While the session runs, only the session changes it. At most one of
                `context`, `message_history` and `conversation`; what it holds is told to the model and is not new.
            message_history: Earlier messages, copied.
            conversation: An earlier session's `conversation`: messages, hand-offs, usage and id go on.
            tools: Plain or async functions, or `Tool`s.
            voice: The model's voice; None: its default.
            agents: Others that `hand_off` may name by id.
            window: What the model may hold.
            audio_retention: Whose audio the history keeps: ``transcript_only``, ``input_audio``, ``output_audio``,
                ``all``.
            retain_audio_max_seconds: Seconds of audio kept; 0 none, None unbounded.
            retain_images_every_n: Keep the first picture sent and then one of every N.
            retain_images_max: Pictures kept; 0 none, None unbounded.
            max_history_messages: Messages kept; the oldest whole units leave first.
            mirror_evictions: What leaves the context is deleted at the provider too.
            sampling: Which frames the model is shown.
            encode_options: What a shown frame becomes.
            image_detail: `detail` of shown frames.
            download: Fetch pictures that are given by address, since models take data: over https, from the public
                internet, up to 10 MB and 10 s each; False: refuse them.
            turn_detection: Who decides when the user has finished; None: the model's default.
            transcription: ``auto``, ``off``, or the name of a transcription model.
            output: Whether the model speaks (``audio``) or writes (``text``).
            reconnect: What happens when the connection drops.
            usage_limits: What the session may use.
            memory_limit_bytes: A hard cap on what the session holds; None: none.
            resume_after_ms: A barge-in without words behind it within this time resumes the reply; 0: never.
            tool_timeout_seconds: How long a tool call may take, unless the tool says otherwise.
            clock: What the session keeps time by; None: the system's. For tests.

        Raises:
            ArgumentError: An argument cannot be what it is; it is named.
            UserError: The model cannot do what is asked for, such as take up earlier pictures.
        """
        self._models: dict[str, RealtimeModel] = {}
        self._model = self._resolved(model)
        start, basis = starting_point(context, message_history, conversation)
        first = Agent(
            instructions=check_text("instructions", instructions),
            tools=tuple(build_tools(tools).values()),
            voice=None if voice is None else check_text("voice", voice),
        )
        self._agents = check_agents(first, agents)
        self._tools = {agent.id: build_tools(agent.tools) for agent in self._agents.values()}
        check_type("encode_options", encode_options, EncodeOptions, "EncodeOptions")
        check_type("mirror_evictions", mirror_evictions, bool, "True or False")
        settings = SessionSettings(
            agent=self._voiced(first),
            tools=tuple(tool.spec for tool in self._tools[first.id].values()),
            window=or_default("window", window, ContextWindow).priced(self._model.capabilities.image_price),
            retention=Retention(
                audio=audio_retention,
                audio_max_seconds=retain_audio_max_seconds,
                images_every_n=retain_images_every_n,
                images_max=retain_images_max,
                max_history_messages=max_history_messages,
                mirror_evictions=mirror_evictions,
            ),
            sampling=or_default("sampling", sampling, FrameSampling),
            turn_detection=or_default("turn_detection", turn_detection or self._model.turn_detection, TurnDetection),
            transcription=self._transcription(transcription),
            output=output,
            reconnect=or_default("reconnect", reconnect, ReconnectPolicy),
            usage_limits=or_default("usage_limits", usage_limits, UsageLimits),
            memory_limit_bytes=memory_limit_bytes,
            resume_after_ms=resume_after_ms,
            tool_timeout_seconds=tool_timeout_seconds,
            usage_before=basis.usage,
            image_detail=one_of("image_detail", image_detail, ("auto", "low", "high")),
        )
        capabilities = self._model.capabilities
        check_abilities(capabilities, settings)
        check_seed(start.messages(), capabilities)
        check_type("download", download, bool, "True or False")
        self._pictures = PictureFetcher(enabled=download)
        self._pictures.check(image for message in start.messages() for image in message.images)
        super().__init__(context=start, basis=basis, capabilities=capabilities, settings=settings, clock=clock)
        self._encode_options = encode_options
        self._recording: Path | None = None

    # -- life -----------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Connect, configure the model and tell it what the context holds.

        Raises:
            ModelError: The provider refused.
            LinkLost: It could not be reached.
            UserError: The session was begun before, its context belongs to another one, or a picture of it that is given
                by address is not to be had.
            SessionClosed: It was closed meanwhile.
        """
        if self._closed:
            raise SessionClosed("this session has ended; make another one")
        if self._runtime is not None:
            raise UserError("a session begins once; make another one")
        await self._pictures.embed_context(self._context)
        if self._closed:
            raise SessionClosed("the session was closed while it was beginning")
        self._loop = asyncio.get_running_loop()
        self._runtime = runtime = SessionRuntime(
            self._settings,
            self._model,
            self._context,
            clock=self._clock,
            encode_options=self._encode_options,
            make_context=self._make_tool_context,
            pictures=self._pictures,
        )
        for agent_id, tools in self._tools.items():
            runtime.tools.use(agent_id, tools)
        runtime.driver.observe(self._replies.observe(runtime.driver.machine))
        if self._recording is not None:
            try:
                runtime.record(self._recording)
            except UserError:
                await runtime.aclose()
                raise
        await runtime.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session, as `aclose`."""
        await self.aclose()

    async def aclose(self) -> None:
        """End the session: record what is open, hang up, let everything go; within 2 seconds (behaviour.md L4).

        Idempotent; may be called from anywhere, also from a tool, an event handler, twice at once, or while the session
        is still connecting. The history, the context and the figures stay readable.
        """
        self._closed = True
        if self._runtime is not None:
            await self._runtime.aclose()

    def record(self, path: str | os.PathLike[str]) -> None:
        """Write what enters the session's core (reports of the model, sound, pictures, the clock) to one file.

        `realtime.testing.replay` plays it again and gives the same events and context, byte for byte. It holds what was said
        and shown; no key is in it. It is whole once the session has ended, and readable up to the last moment if the
        process dies.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            ArgumentError: It is no path.
            UserError: It cannot be written, the session is recorded already, or something was said or shown before.
            SessionClosed: The session has ended.
        """
        if not isinstance(path, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("path", path, "a path")
        if self._closed:
            raise SessionClosed("the session has ended")
        if self._recording is not None:
            raise UserError("this session is being recorded already")
        target = Path(path)
        if self._runtime is not None:
            self._runtime.record(target)
        self._recording = target

    @property
    def encode_options(self) -> EncodeOptions:
        """What a shown frame becomes."""
        return self._encode_options

    # -- who speaks ------------------------------------------------------------------------------------------------------

    async def hand_off(self, agent: Agent | str, *, reason: str = "") -> AgentHandoff:
        """Let another agent take the same conversation; recorded as `AgentHandoff`.

        An agent with a model of its own is connected to before the present one is let go: the reply that is being spoken is
        spoken to its end, and what the user says meanwhile goes to the one or the other. The session keeps its sample
        rates.

        Args:
            agent: An `Agent`, or the id of one given in `agents`.
            reason: Why, for the record.

        Raises:
            ArgumentError: There is no such agent, or its tools or model cannot be.
            UserError: Its model cannot do what the session or the conversation needs.
            ModelError: Its model refused; the conversation goes on as it was.
            LinkLost: Its model could not be reached; the conversation goes on as it was.
            SessionClosed: The session has ended.
        """
        runtime = self._running()
        if isinstance(agent, str):
            found = self._agents.get(agent)
            if found is None:
                known = ", ".join(map(repr, self._agents))
                raise ArgumentError("agent", agent, f"an Agent, or the id of one given in agents= ({known})")
            agent = found
        check_type("agent", agent, Agent, "an Agent, or the id of one given in agents=")
        model = None if agent.model is None else self._resolved(agent.model)
        model = None if model is self._model else model
        tools = build_tools(agent.tools)
        taking = self._voiced(replace(agent, model=model))
        specs = tuple(tool.spec for tool in tools.values())
        abilities = (model or self._model).capabilities
        window = self._settings.window.priced(abilities.image_price)  # refuses a rule that there is not
        check_abilities(abilities, replace(self._settings, tools=specs, window=window))
        if runtime.takeover.is_change(taking):
            check_takeover(abilities, self._context.messages())
        async with runtime.takeover.prepared(taking, specs):
            runtime.tools.use(agent.id, tools)
            return runtime.driver.step(lambda machine, now: machine.hand_off(taking, specs, reason=reason, now=now))

    # -- within -----------------------------------------------------------------------------------------------------------

    def _resolved(self, model: str | RealtimeModel) -> RealtimeModel:
        """A model by its name, always the same one."""
        if not isinstance(model, str):
            return resolve(model)
        if model not in self._models:
            self._models[model] = resolve(model)
        return self._models[model]

    def _voiced(self, agent: Agent) -> Agent:
        model = agent.model if isinstance(agent.model, RealtimeModel) else self._model
        return agent if agent.voice is not None else replace(agent, voice=model.voice)

    def _transcription(self, wanted: str) -> str:
        if check_text("transcription", wanted) == "auto":
            return self._model.transcription or "auto"
        return wanted

    def _make_tool_context(self, command: RunTool) -> ToolContext:
        return ToolContext(
            call_id=command.call_id,
            agent_id=command.agent_id,
            session=self,
            messages=tuple(replace(each, audio=None) if each.audio else each for each in self._context.messages()),
            usage=self.usage,
            context_window_used=self.context_window_used,
        )
