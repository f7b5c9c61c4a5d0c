"""Whether somebody really interrupted (setting `resume_after_ms`; issue of turns in behaviour.md P).

Owns: the replies that are held because the user made a sound, until words show that it was an interruption, or its absence
shows that it was none. Driven by `realtime.core.floor`. Never plays.

With this setting the session, not the server, decides: it tells the server neither to interrupt nor to respond, and asks for a
response itself once the user's words are known.
"""

from __future__ import annotations

from realtime.core.effects import Effects
from realtime.core.replies import Replies
from realtime.core.reply import Reply

__all__ = ["BargeIn", "is_backchannel"]

_BACKCHANNELS = frozenset(
    [
        "ah",
        "aha",
        "ahh",
        "eh",
        "hm",
        "hmm",
        "mhm",
        "mm",
        "mmm",
        "mhmm",
        "uh",
        "uhm",
        "um",
        "huh",
        "uhhuh",
        "mmhmm",
        "oh",
        "ok",
        "okay",
        "yeah",
        "yep",
        "yup",
        "yes",
        "right",
        "sure",
        "indeed",
        "exactly",
        "true",
        "good",
        "great",
        "nice",
        "cool",
        "wow",
        "really",
        "ja",
        "jo",
        "genau",
        "okej",
        "ach",
        "so",
        "aha",
        "oui",
        "ouais",
        "voilà",
        "d'accord",
        "sí",
        "si",
        "claro",
        "vale",
        "sim",
        "certo",
        "ecco",
        "va",
        "bene",
        "да",
        "ага",
        "угу",
        "嗯",
        "嗯嗯",
        "对",
        "是",
        "好",
        "はい",
        "うん",
        "ええ",
        "そう",
        "네",
        "응",
    ]
)
"""Words that accompany a speaker without asking for the floor."""
_MOST_BACKCHANNEL_WORDS = 3


def is_backchannel(text: str) -> bool:
    """Whether a transcript says nothing that asks for the floor: no words at all, or up to three of assent."""
    words = [word.strip(".,!?…-–—\"'。，！？、").lower().replace("-", "") for word in text.split()]
    words = [word for word in words if word]
    return len(words) <= _MOST_BACKCHANNEL_WORDS and all(word in _BACKCHANNELS for word in words)


class BargeIn:
    """The replies that are held, and until when."""

    def __init__(self, *, resume_after_ms: int, replies: Replies, effects: Effects) -> None:
        """Nothing is held.

        Args:
            resume_after_ms: How long after the end of a wordless sound the reply goes on; 0: replies are never held.
            replies: Whose playing is held.
            effects: The present moment.
        """
        self._wait_seconds = resume_after_ms / 1000
        self._replies = replies
        self._effects = effects
        self._held: list[Reply] = []
        self.resumes_at: float | None = None
        """When the held replies go on, unless words come."""

    @property
    def is_ours(self) -> bool:
        """Whether the session decides about interruptions."""
        return self._wait_seconds > 0

    @property
    def is_holding(self) -> bool:
        """Whether a reply is held."""
        return bool(self._held)

    def hold(self, reply: Reply) -> None:
        """Silence a reply until it is clear what the sound was."""
        if reply not in self._held and not reply.is_over:
            self._replies.hold(reply)
            self._held.append(reply)
        self.resumes_at = None

    def sound_ended(self) -> None:
        """The user's sound is over: words must come within the wait."""
        if self._held:
            self.resumes_at = self._effects.now + self._wait_seconds

    def release(self) -> list[Reply]:
        """Hold nothing any more, and say what was held."""
        held, self._held = self._held, []
        self.resumes_at = None
        return [reply for reply in held if not reply.is_over]

    def resume(self) -> None:
        """It was no interruption: the replies go on where they stopped."""
        for reply in self.release():
            self._replies.go_on(reply)
