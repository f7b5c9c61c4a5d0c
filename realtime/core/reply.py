"""One reply and its messages, while they are made and played.

Owns: `Reply` and `ReplyItem`: texts, positions and recordings so far. Driven by `realtime.core.replies`. Never acts.
"""

from __future__ import annotations

from collections import OrderedDict

from realtime.core.input_audio import AudioTape
from realtime.core.model_events import ResponseStatus, TokenUsage
from realtime.core.places import Place

__all__ = ["Reply", "ReplyItem"]


class ReplyItem:
    """One message of a reply."""

    __slots__ = (
        "_deltas",
        "_finals",
        "content_index",
        "done",
        "item_id",
        "place",
        "provider_data",
        "samples",
        "spoken",
        "start",
        "tape",
        "thinking",
        "words",
    )

    def __init__(self, item_id: str, place: Place, *, start: int) -> None:
        self.item_id = item_id
        self.place = place
        self.start = start
        """Samples of the reply before it."""
        self.samples = 0
        """Samples of it."""
        self.spoken = False
        self.done = False
        self.content_index = 0
        self.words: list[tuple[str, int]] = []
        self.thinking = ""
        self.provider_data: dict[str, object] = {}
        self.tape: AudioTape | None = None
        self._deltas: dict[int, str] = {}
        self._finals: dict[int, str] = {}

    @property
    def text(self) -> str:
        """Everything generated so far."""
        parts = self._deltas | self._finals
        return "".join(parts[index] for index in sorted(parts))

    def grow(self, index: int, delta: str) -> None:
        """Text was added to a part that is not final."""
        if index not in self._finals:
            # each event carries the whole text, so it is made once a delta anyway
            self._deltas[index] = self._deltas.get(index, "") + delta

    def fix(self, index: int, text: str) -> None:
        """A part's text is final."""
        self._finals[index] = text


class Reply:
    """One reply: a response as the user hears it."""

    def __init__(self, reply_id: str, *, agent_id: str, basis: float | None) -> None:
        """Begin a reply.

        Args:
            reply_id: The response's id.
            agent_id: Who speaks.
            basis: When the user's turn that it answers ended, on the session's clock.
        """
        self.reply_id = reply_id
        self.agent_id = agent_id
        self.basis = basis
        self.items: OrderedDict[str, ReplyItem] = OrderedDict()
        self.calls: list[Place] = []
        self.samples = 0
        self.played_ms = 0
        self.played_out = False
        self.response_over = False
        self.is_cut = False
        self.is_settled = False
        self.status: ResponseStatus | None = None
        self.usage: TokenUsage | None = None
        self.started_at: float | None = None
        self.first_audio_at: float | None = None
        self.first_played_at: float | None = None
        self.unheard: AudioTape | None = None
        """What has not been played, where a reply may be held and go on."""
        self.is_held = False

    @property
    def is_over(self) -> bool:
        """Done and played out, or cut."""
        return self.is_cut or (self.response_over and (self.samples == 0 or self.played_out))
