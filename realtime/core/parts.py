"""The parts of one session's machine, built and joined.

Owns: the construction of every part and what they share (settings, the agent that speaks, the capabilities). Driven by
`SessionMachine`. Never acts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage
from realtime.core.barge_in import BargeIn
from realtime.core.capabilities import ModelCapabilities
from realtime.core.completion import Completion
from realtime.core.effects import Effects
from realtime.core.history import History
from realtime.core.input_audio import InputAudio
from realtime.core.keeping import Keeping
from realtime.core.ledger import Ledger
from realtime.core.limits import LimitWatch
from realtime.core.memory import MemoryCap
from realtime.core.missing_audio import MissingAudio
from realtime.core.outbox import Outbox
from realtime.core.outgoing import Outgoing
from realtime.core.overlap import Overlap
from realtime.core.replies import Replies
from realtime.core.sampling import FrameSampler
from realtime.core.settings import SessionSettings
from realtime.core.speech import Speech
from realtime.core.tool_rounds import ToolRounds
from realtime.core.trimming import Trimming
from realtime.core.turn import ResponseSlot

__all__ = ["Parts"]

_LANE_SECONDS = 30.0
"""Input audio that may wait for a slow socket; the oldest is dropped beyond."""
_DEFAULT_SILENCE_MS = 500
"""What a provider's turn detection waits for, if nothing else is said."""


class Parts:
    """Every part of one session's machine. Each is described in its own module."""

    def __init__(
        self,
        settings: SessionSettings,
        capabilities: ModelCapabilities,
        context: ChatContext,
        *,
        make_id: Callable[[], str],
        wall_offset: float,
        now: float,
    ) -> None:
        """Lease the context and join the parts; see `SessionMachine`."""
        self.settings = settings
        self.window = settings.window.priced(capabilities.image_price)
        """The window, with pictures priced by the rule of the present model's provider."""
        self.capabilities = capabilities
        self.published = capabilities
        """What the present model's provider publishes, its own sample rates included."""
        self.agent = settings.agent
        self.tool_specs = settings.tools
        self.context = context
        self.lease = context.lease("session.send")
        records = settings.retention.keeps_input_audio
        self.input_audio = InputAudio(
            rate_hz=capabilities.input_rate_hz,
            lane_seconds=_LANE_SECONDS,
            replay_seconds=settings.reconnect.replay_audio_seconds,
            records=records,
            reports_boundaries=self._reports_boundaries(capabilities),
        )
        self.outbox = Outbox(self.input_audio, make_id=make_id)
        self.effects = Effects(make_id=make_id, wall_offset=wall_offset, now=now, outbox=self.outbox)
        self.ledger = Ledger()
        self.history = History(self.lease, self.effects)
        self.keeping = Keeping(
            retention=settings.retention,
            capabilities=capabilities,
            tokens_of=self._tokens_of,
            history=self.history,
            ledger=self.ledger,
            effects=self.effects,
        )
        if records:
            self.keeping.audio.watch(self.input_audio.live, is_input=True)
        self.overlap = Overlap(
            history=self.history, effects=self.effects, is_needed=not capabilities.reports_item_order
        )
        self.speech = Speech(
            input_audio=self.input_audio,
            history=self.history,
            keeping=self.keeping,
            effects=self.effects,
            overlap=self.overlap,
            transcribes=settings.transcription != "off" and capabilities.reports_input_transcripts,
            is_cut_by_replies=self._is_cut_by_replies(capabilities),
        )
        self.missing_audio = MissingAudio(
            input_audio=self.input_audio,
            speech=self.speech,
            is_needed=self._ends_turns_by_silence(capabilities),
        )
        self.replies = Replies(
            capabilities=capabilities,
            history=self.history,
            ledger=self.ledger,
            keeping=self.keeping,
            effects=self.effects,
            can_hold=settings.resume_after_ms > 0,
        )
        self.barge_in = BargeIn(resume_after_ms=settings.resume_after_ms, replies=self.replies, effects=self.effects)
        self.tools = ToolRounds(
            agent_id=settings.agent.id,
            tools=settings.tools,
            max_calls_per_turn=settings.window.max_tool_calls_per_turn,
            timeout_seconds=settings.tool_timeout_seconds,
            capabilities=capabilities,
            history=self.history,
            ledger=self.ledger,
            keeping=self.keeping,
            effects=self.effects,
        )
        self.outgoing = Outgoing(
            history=self.history,
            ledger=self.ledger,
            keeping=self.keeping,
            effects=self.effects,
            tokens_of=self._tokens_of,
            waits_for_order=capabilities.reports_item_order,
        )
        self.trimming = Trimming(
            window=self.window,
            context=context,
            history=self.history,
            ledger=self.ledger,
            capabilities=capabilities,
            effects=self.effects,
        )
        silence_ms = settings.turn_detection.silence_ms
        self.sampler = FrameSampler(
            settings.sampling, hold_seconds=(_DEFAULT_SILENCE_MS if silence_ms is None else silence_ms) / 1000
        )
        self.memory = MemoryCap(
            limit_bytes=settings.memory_limit_bytes,
            keeping=self.keeping,
            outgoing=self.outgoing,
            sampler=self.sampler,
            effects=self.effects,
        )
        self.keeping.bound_memory = self.memory.bound
        self.slot = ResponseSlot()
        self.completion = Completion(effects=self.effects, speech=self.speech)
        self.limits = LimitWatch(settings.usage_limits, started_at=now, usage=settings.usage_before)
        self.saved_at: int | None = None
        """Up to which place the provider can take its conversation up again by itself (`History.mark`)."""
        self.unknown: Counter[str] = Counter()
        """Wire messages of unknown types, by type."""

    def _tokens_of(self, message: ChatMessage) -> int:
        return self.window.count_message(message)

    def _is_cut_by_replies(self, capabilities: ModelCapabilities) -> bool:
        return not capabilities.reports_speech_boundaries and self.settings.turn_detection.mode != "manual"

    def _ends_turns_by_silence(self, capabilities: ModelCapabilities) -> bool:
        return capabilities.supports_audio_input and self.settings.turn_detection.mode != "manual"

    def _reports_boundaries(self, capabilities: ModelCapabilities) -> bool:
        return capabilities.reports_speech_boundaries and self.settings.turn_detection.mode != "manual"

    def use(self, capabilities: ModelCapabilities) -> None:
        """Another model answers from now on.

        The session keeps the sample rates that it began with, so that what is played, recorded or waits stays what it is:
        the link converts for a model with others.
        """
        self.published = capabilities
        self.capabilities = replace(
            capabilities, input_rate_hz=self.capabilities.input_rate_hz, output_rate_hz=self.capabilities.output_rate_hz
        )
        self.window = self.settings.window.priced(capabilities.image_price)
        self.keeping.use(self.capabilities)
        self.replies.use(self.capabilities)
        self.trimming.use(self.capabilities, self.window)
        self.tools.use_capabilities(self.capabilities)
        self.outgoing.waits_for_order = capabilities.reports_item_order
        self.overlap.is_needed = not capabilities.reports_item_order
        self.speech.transcribes = self.settings.transcription != "off" and capabilities.reports_input_transcripts
        self.speech.is_cut_by_replies = self._is_cut_by_replies(capabilities)
        self.input_audio.reports_boundaries = self._reports_boundaries(capabilities)
        self.missing_audio.is_needed = self._ends_turns_by_silence(capabilities)
