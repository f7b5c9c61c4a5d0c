"""The session as one deterministic machine: the same calls give the same events and commands.

Owns: the whole state of a session, through its parts. Driven by `pipelines/driver.py` alone: feed, drain, re-arm the
timer. Never waits, reads a clock, makes an id or touches a socket; `now` and ids are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from realtime.chat.context import ChatContext
from realtime.chat.messages import ImageContent
from realtime.core import model_events as reported
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import AppendAudio, EndSession, LinkCommand, LocalCommand
from realtime.core.events import ErrorReported, SessionEnded, SessionEvent, TrackEnded
from realtime.core.floor import Floor
from realtime.core.link_feeds import MachineLinkFeeds
from realtime.core.parts import Parts
from realtime.core.reconnection import Reconnection
from realtime.core.responding import Responding
from realtime.core.sampling import FrameFacts, FrameVerdict, Lull
from realtime.core.settings import SessionSettings
from realtime.core.showing import Showing
from realtime.errors import LinkLost, RealtimeError, UsageLimitExceeded

__all__ = ["SessionMachine"]


class SessionMachine(MachineLinkFeeds):
    """One session. Every feed and every act takes `now`, in seconds of the session's clock."""

    def __init__(
        self,
        settings: SessionSettings,
        capabilities: ModelCapabilities,
        context: ChatContext,
        *,
        make_id: Callable[[], str],
        wall_offset: float = 0.0,
        now: float = 0.0,
    ) -> None:
        """Take over a context.

        Args:
            settings: What the user chose.
            capabilities: What the model can do.
            context: The live context; it is leased until `close`.
            make_id: Gives fresh ids of at most 32 characters.
            wall_offset: Wall time minus `now`, for `created_at`.
            now: The present moment.

        Raises:
            UserError: The context belongs to another session.
        """
        self.context = context
        self._parts = Parts(
            settings,
            capabilities,
            context,
            make_id=make_id,
            wall_offset=wall_offset,
            now=now,
        )
        self.capabilities = capabilities
        parts = self._parts  # those that every sound comes by, one step nearer
        self._effects, self._missing_audio, self._make_id = parts.effects, parts.missing_audio, make_id
        self._outbox, self._input_audio = parts.outbox, parts.input_audio
        self._bounds_audio = parts.input_audio.records or parts.memory.is_capped
        self._showing = Showing(self._parts)
        self._responding = Responding(self._parts)
        self._floor = Floor(self._parts, showing=self._showing, responding=self._responding)
        self._reconnection = Reconnection(self._parts, self._responding)
        self._is_closed = False

    # == drain ==========================================================================================================

    def next_event(self) -> SessionEvent | None:
        """The next thing to tell the application, or None."""
        return self._parts.effects.events.popleft() if self._parts.effects.events else None

    def next_command(self) -> LocalCommand | None:
        """The next thing for our own shells to do at once, or None."""
        return self._parts.effects.local.popleft() if self._parts.effects.local else None

    def next_link_command(self, *, now: float) -> LinkCommand | None:  # hot path: every wire message
        """The next thing to send, pulled when the socket is writable: control before audio before pictures."""
        if self._is_closed:
            return None
        self._parts.effects.now = max(now, self._parts.effects.now)
        self._showing.drop_late()
        command = self._parts.outbox.take()
        if command is not None and self._parts.settings.retention.keeps_input_audio:
            self._parts.keeping.bound_audio()
        return command

    # == timer ==========================================================================================================

    def get_deadline(self) -> float | None:  # hot path: nearly every feed
        """When `handle_deadline` should be called next, on the session's clock; None: not needed."""
        if self._is_closed:
            return None
        parts, missing = self._parts, self._parts.missing_audio
        soonest = self._responding.deadline
        for moment in (
            parts.history.patience_ends(),
            parts.limits.ends_at,
            parts.barge_in.resumes_at,
            missing.due_at,
            missing.breaks_off_at,
        ):
            if moment is not None and (soonest is None or moment < soonest):
                soonest = moment
        return soonest

    def handle_deadline(self, *, now: float) -> None:
        """Time has passed."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        while (patience := self._parts.history.patience_ends()) is not None and patience <= now:
            blocker = self._parts.history.blocker
            assert blocker is not None
            self._parts.speech.give_up(blocker)
            self._parts.history.advance()
        self._responding.time_passed()
        resumes_at = self._parts.barge_in.resumes_at
        if resumes_at is not None and resumes_at <= now:
            self._parts.barge_in.resume()
        self._parts.missing_audio.make(now=now)
        broken_off_at = self._parts.missing_audio.take_break(now=now)
        if broken_off_at is not None:
            self._showing.release_held(broken_off_at)
        self._parts.memory.bound()
        self._finish()

    # == feed: the model ================================================================================================

    def receive_model_event(self, event: reported.ModelEvent, *, now: float) -> None:
        """The model reported something."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        self._parts.input_audio.note_arrival()
        try:
            self._floor.receive(event)
        finally:
            self._finish()

    # == feed: tracks ===================================================================================================

    def receive_audio(
        self, pcm: bytes, *, at_once: bool = False, now: float
    ) -> AppendAudio | None:  # hot path: 25–50 times a second
        """The user's audio; none to a model that takes none.

        Args:
            pcm: PCM16 mono at `ModelCapabilities.input_rate_hz`, whole samples.
            at_once: The socket takes something now.
            now: The present moment.

        Returns:
            With `at_once`, what `next_link_command` would give, if that is this audio: it is to be sent, and counts as sent.
            It has brought no deadline nearer then. None: it waits for `next_link_command`.
        """
        if self._is_closed or not self.capabilities.supports_audio_input:
            return None
        self._effects.now = now
        missing, audio, outbox = self._missing_audio, self._input_audio, self._outbox
        goes_on = missing.goes_on
        if goes_on and not missing.repeatable:  # as `MissingAudio.heard` says
            begins_at = missing.lasts_until
            if begins_at < now:  # noqa: PLR1730  (a call of max costs as much as all of this)
                begins_at = now
            missing.lasts_until = begins_at + len(pcm) / 2 / audio.rate_hz
        else:
            pcm = missing.heard(pcm, now=now)
        command = None
        if pcm:
            if at_once and goes_on and outbox.is_open and not outbox.control and not audio.lane:  # pictures come later
                make_id = self._make_id
                command = audio.send(make_id(), pcm)
            else:
                audio.push(pcm)
        if self._bounds_audio:
            self._bound_audio(is_sent=command is not None)
        return command

    def _bound_audio(self, *, is_sent: bool) -> None:
        if is_sent and self._input_audio.records:
            self._parts.keeping.bound_audio()
        self._parts.memory.bound()

    def looks_at_frame(self, source: str, *, pts_ms: int, captured_at: float) -> bool:  # hot path: every frame
        """Whether the thumbprint of a frame will matter (a question: it changes nothing)."""
        if self._is_closed or not self._parts.capabilities.supports_image_input:
            return False
        return self._parts.sampler.looks_at(source, pts_ms=pts_ms, captured_at=captured_at)

    def is_frame_due(self, source: str, *, pts_ms: int) -> bool:  # hot path: every frame
        """Whether a frame of this media time would be shown (a question: it changes nothing). Others may stay undecoded."""
        if self._is_closed or not self._parts.capabilities.supports_image_input:
            return False
        return self._parts.sampler.is_due(source, pts_ms=pts_ms)

    def would_hold_frame(self, source: str, *, captured_at: float) -> bool:  # hot path: every frame
        """Whether a frame that is not due would be held for the end of the user's turn (a question: it changes nothing)."""
        if self._is_closed or not self._parts.capabilities.supports_image_input:
            return False
        return self._parts.sampler.holds(source, captured_at=captured_at)

    def frame_lull(self, source: str) -> Lull | None:
        """For how long no frame of a source would be shown or held, as far as is known (a question: it changes nothing).

        None: the next one may be. See `FrameSampler.lull`.
        """
        if self._is_closed or not self._parts.capabilities.supports_image_input:
            return None
        return self._parts.sampler.lull(source)

    def receive_frame(self, facts: FrameFacts, *, now: float) -> FrameVerdict:  # hot path: every frame
        """A frame of a camera or a screen: what should become of it."""
        if self._is_closed or not self._parts.capabilities.supports_image_input:
            return FrameVerdict(action="drop", skip_reason="closed")
        self._parts.effects.now = now
        verdict = self._showing.receive_frame(facts, now=now)
        if verdict.action == "drop":
            self._end_if_limited()
        return verdict

    def receive_image(
        self,
        *,
        source: str,
        frame_id: int,
        image: ImageContent | None,
        error: BaseException | None = None,
        thumbprint: bytes = b"",
        is_unchanged: bool = False,
        now: float,
    ) -> None:
        """A kept frame was encoded, or not; as `Showing.receive_image`."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        self._showing.receive_image(
            source=source, frame_id=frame_id, image=image, error=error, thumbprint=thumbprint, is_unchanged=is_unchanged
        )
        self._finish()

    def receive_voice_activity(self, *, speaking: bool, ago_ms: int, now: float) -> None:
        """Speech heard by ourselves, for models that report none; it moves the sampler, not the turns.

        Args:
            speaking: It began, or it ended.
            ago_ms: How much sound came since then.
            now: The present moment.
        """
        self._parts.effects.now = now
        self._parts.missing_audio.is_voice_heard = speaking
        if speaking:
            self._parts.sampler.speech_began()
        else:
            self._showing.release_held(now - ago_ms / 1000)

    def receive_played(self, reply_id: str, played_ms: int, *, finished: bool = False, now: float) -> None:
        """The listener has heard a reply up to a position; `finished`: all of it."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        reply = self._parts.replies.receive_played(reply_id, played_ms, finished=finished)
        if finished and reply is not None:
            self._responding.end_reply_if_over(reply)
            self._finish()

    def receive_track_ended(self, source: str, kind: str, error: BaseException | None = None, *, now: float) -> None:
        """A track gave its last frame."""
        self._parts.effects.now = now
        if self._is_closed:
            return
        self._showing.source_ended(source)
        self._parts.effects.emit(TrackEnded(source=source, kind=kind, error=error))

    # == feed: tools and summaries ======================================================================================

    def receive_tool_output(
        self,
        call_id: str,
        output: str,
        *,
        is_error: bool = False,
        images: Sequence[ImageContent] = (),
        error: BaseException | None = None,
        now: float,
    ) -> None:
        """A tool has answered; `error` is what it raised, for the application (T3)."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        shown = self._showing.admit_pictures(images) if self._parts.tools.find(call_id) is not None else ()
        call = self._parts.tools.output(call_id, output, is_error=is_error, images=shown)
        if call is not None:
            if error is not None:
                self._parts.effects.emit(ErrorReported(error=error, where=f"tool {call.name}"))
            self._responding.follow_up(call.response_id, self._parts.replies.find(call.response_id))
        self._finish()

    def receive_approval(self, call_id: str, ok: bool, *, now: float) -> bool:
        """The application answered an `ApprovalRequested`; False if no such call waits."""
        self._parts.effects.now = now
        call = self._parts.tools.find(call_id)
        known = not self._is_closed and self._parts.tools.approve(call_id, ok=ok)
        if known and call is not None and not ok:
            self._responding.follow_up(call.response_id, self._parts.replies.find(call.response_id))
        self._finish()
        return known

    def receive_summary(self, basis_revision: int, text: str | None, *, now: float) -> None:
        """A summary is ready, or failed (None)."""
        if self._is_closed:
            return
        self._parts.effects.now = now
        self._parts.trimming.receive_summary(basis_revision, text)
        self._finish()

    # == within =========================================================================================================

    def close(self, error: RealtimeError | None = None, *, now: float) -> None:
        """Record everything with what it has and end; a second time does nothing (H7)."""
        self._parts.effects.now = now
        self._close(error)

    def _finish(self) -> None:
        """After every feed and act: show what became final, keep within bounds, ask for what is wanted."""
        if self._is_closed:
            return
        if self._floor.fatal is not None:
            self._close(self._floor.fatal)
            return
        shown = self._parts.history.advance()
        if shown:
            self._parts.keeping.bound_history()
        is_turn_over = self._parts.completion.report()
        if shown or is_turn_over:
            self._parts.trimming.apply()
        self._responding.pursue_wish()
        self._end_if_limited()

    def _end_if_limited(self) -> None:
        self._parts.limits.time_passed(self._parts.effects.now)
        breach = self._parts.limits.breach()
        if breach is not None and not self._parts.slot.is_busy and not self._parts.replies.open_replies():
            self._close(breach)

    def _close(self, error: RealtimeError | None) -> None:
        if self._is_closed:
            return
        self._parts.speech.close()
        for reply in self._parts.replies.open_replies():
            self._responding.cut(reply, cause="close")
        self._responding.abandon()
        self._parts.tools.close()
        self._parts.outgoing.close()
        for place in list(self._parts.history.waiting()):
            self._parts.history.settle(place, None)
        self._parts.history.advance()
        self._parts.keeping.bound_history()
        self._parts.completion.close_chain()
        self._parts.completion.report(force=True)
        self._is_closed = True
        self._parts.lease.release()
        self._parts.effects.emit(SessionEnded(reason=_ending(error), error=error))
        self._parts.effects.do(EndSession(command_id=self._parts.effects.new_id(), error=error))


def _ending(error: RealtimeError | None) -> Literal["closed", "error", "usage_limit", "link_lost"]:
    match error:
        case None:
            return "closed"
        case UsageLimitExceeded():
            return "usage_limit"
        case LinkLost():
            return "link_lost"
        case _:
            return "error"
