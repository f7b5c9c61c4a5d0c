"""The user's pictures on their way from a camera into the conversation (behaviour.md I4, R1, R5).

Owns: why each frame that is being encoded was kept, and what the session's limits mean for frames. Driven by
`SessionMachine` and, at the end of a turn, by `realtime.core.floor`. Never judges a frame: the sampler does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.core.commands import DropHeldFrame, EncodeHeldFrame
from realtime.core.events import ErrorReported, FrameSkipped, InputRejected, KeepReason, SkipReason
from realtime.core.parts import Parts
from realtime.core.sampling import FrameFacts, FrameVerdict

__all__ = ["Showing"]


class Showing:
    """The frames of one session, until they are messages."""

    def __init__(self, parts: Parts) -> None:
        """None is under way."""
        self._parts = parts
        self._kept: dict[tuple[str, int], tuple[KeepReason, FrameFacts]] = {}

    def receive_frame(self, facts: FrameFacts, *, now: float) -> FrameVerdict:  # hot path: every frame
        """Judge a frame."""
        parts = self._parts
        if not parts.limits.allows_image(waiting=parts.outgoing.unsent_pictures):
            return FrameVerdict(action="drop", skip_reason="image_limit")
        verdict = parts.sampler.receive(facts, now=now)
        if verdict.action == "keep":
            assert verdict.keep_reason is not None
            self._kept[facts.source, facts.frame_id] = (verdict.keep_reason, facts)
        elif verdict.action == "hold" and not parts.memory.make_room(0):
            parts.sampler.let_go(facts)
            return FrameVerdict(action="drop", skip_reason="image_limit", released=verdict.released)
        elif verdict.skip_reason not in (None, "not_due"):
            assert verdict.skip_reason is not None
            self._skip(facts, verdict.skip_reason)
        return verdict

    def receive_image(
        self,
        *,
        source: str,
        frame_id: int,
        image: ImageContent | None,
        error: BaseException | None,
        thumbprint: bytes = b"",
        is_unchanged: bool = False,
    ) -> None:
        """A kept frame was encoded, or not.

        Args:
            source: Which camera or screen.
            frame_id: The frame's, within the session.
            image: None: `error`, it `is_unchanged`, or a newer one took its place.
            error: Why it could not be encoded.
            thumbprint: Of a frame that was decoded only now; empty: the sampler has it, or nobody compares.
            is_unchanged: Now that it is decoded it shows nothing new; it counts as never kept.
        """
        effects = self._parts.effects
        reason, facts = self._kept.pop((source, frame_id), (None, None))
        if reason is None or facts is None:
            return
        if is_unchanged:
            self._parts.sampler.take_back(facts, reason)
            self._skip(facts, "unchanged")
            return
        if image is None:
            self._skip(facts, "encode_failed" if error is not None else "replaced")
            if error is not None:
                effects.emit(ErrorReported(error=error, where=f"track {source}"))
            return
        if not self._parts.capabilities.supports_image_input:
            self._skip(facts, "closed")  # another model has taken over meanwhile
            return
        if self._refusal(image.byte_length, source=source):
            self._skip(facts, "image_limit")
            return
        if thumbprint:
            self._parts.sampler.learn(facts, thumbprint)
        message = ChatMessage(
            ChatRole.USER,
            "",
            effects.new_id(),
            images=(image,),
            created_at=effects.wall - (effects.now - facts.captured_at),
            source=source,
        )
        self._parts.outgoing.send_frame(
            message,
            captured_at=facts.captured_at,
            reason=reason,
            source_size=(facts.width, facts.height),
        )

    def _refusal(self, byte_length: int, *, source: str | None, ahead: int = 0) -> str:
        """Why a picture is not sent; empty if it is."""
        if not self._parts.capabilities.supports_image_input:
            return "the model takes no pictures (supports_image_input)"
        if not self._parts.limits.allows_image(waiting=self._parts.outgoing.unsent_pictures + ahead):
            return "the session sends no more pictures: UsageLimits.max_images is reached"
        if not self._parts.memory.make_room(byte_length, source=source):
            return "the session holds no more pictures: memory_limit_bytes is reached"
        return ""

    def admit(self, message: ChatMessage) -> ChatMessage | None:
        """What of an application's message may be sent: its words always, its pictures as far as limits allow (R5).

        Returns:
            The message; None if nothing is left of it.
        """
        kept = self.admit_pictures(message.images, message_id=message.message_id)
        if len(kept) == len(message.images):
            return message
        left = replace(message, images=kept)
        return None if left.is_empty else left

    def admit_pictures(self, images: Sequence[ImageContent], *, message_id: str = "") -> tuple[ImageContent, ...]:
        """Those of an application's or a tool's pictures that may be sent; an event says why the others may not."""
        refused = ""
        size = 0
        kept: list[ImageContent] = []
        for image in images:
            refusal = self._refusal(size + image.byte_length, source=None, ahead=len(kept))
            if refusal:
                refused = refusal
            else:
                kept.append(image)
                size += image.byte_length
        if refused:
            self._parts.effects.emit(InputRejected(message_id=message_id, reason=refused))
        return tuple(kept)

    def drop_late(self) -> None:
        """Frames that have waited for too long for the socket, or that no limit allows any more, are not sent."""
        parts = self._parts
        max_age = parts.settings.sampling.max_age_seconds
        while (picture := parts.outbox.peek_picture()) is not None:
            is_stale = picture.captured_at is not None and parts.effects.now - picture.captured_at > max_age
            if not is_stale and parts.limits.allows_image():
                return
            parts.outbox.drop_picture(picture)
            parts.outgoing.skip_frame(picture, "stale" if is_stale else "image_limit")

    def release_held(self, ended_at: float) -> None:
        """The user's turn ended: the frames held for it are encoded or let go (I4)."""
        effects = self._parts.effects
        for facts, is_kept in self._parts.sampler.speech_ended(at=ended_at):
            command_id = effects.new_id()
            if is_kept:
                self._kept[facts.source, facts.frame_id] = ("end_of_turn", facts)
                effects.do(EncodeHeldFrame(command_id=command_id, source=facts.source, frame_id=facts.frame_id))
            else:
                effects.do(DropHeldFrame(command_id=command_id, source=facts.source, frame_id=facts.frame_id))

    def source_ended(self, source: str) -> None:
        """A camera or a screen is gone; what is held of it is let go."""
        effects = self._parts.effects
        for frame_id in self._parts.sampler.forget(source):
            effects.do(DropHeldFrame(command_id=effects.new_id(), source=source, frame_id=frame_id))

    def _skip(self, facts: FrameFacts, reason: SkipReason) -> None:
        self._parts.effects.emit(FrameSkipped(source=facts.source, reason=reason, captured_at=facts.captured_at))
