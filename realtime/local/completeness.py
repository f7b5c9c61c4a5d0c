"""Whether what was said sounds like the end of a turn, by its words alone.

Owns: `sounds_complete`. Driven by the listener for semantic turn detection. A rule, not a model: the recognizer puts a
mark behind what sounds finished, and there are words that nobody ends on. Pure; never acts.
"""

from __future__ import annotations

import re
from typing import Final

from realtime.local.wordlists import word_set

__all__ = ["sounds_complete"]

_DANGLING: Final = word_set(
    """
    a an the my your his her its our their this these those some any every each no
    and or but nor so because since although though if unless until while when whenever where whereas than whether
    of to in on at by for from with without about into onto over under between among through during against
    is are was were be been am do does did have has had will would can could shall should may might must
    i'm you're we're they're he's she's it's i'll i'd let's
    very really quite just also even more most less too as like
    um uh er erm hmm mm ah well maybe perhaps actually basically
    please mr mrs dr which who whom whose what
    """
)
"""Words that a sentence goes on behind."""
_WHOLE: Final = word_set(
    """
    what who which well please actually maybe perhaps hmm mm ah no this that it does did do will can could would
    """
)
"""… of which these are a whole answer if they are all that was said."""
_SHORT = 2
"""So many words need no mark behind them."""
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def sounds_complete(text: str) -> bool:
    """Whether a turn that says `text` sounds finished.

    A question mark or an exclamation mark finishes a turn. Dots, a dash or no mark at all leave it open, and so does a last
    word that nobody ends on: "and", "the", "um", "because". Nothing said is nothing finished.
    """
    text = text.strip()
    words = _WORD.findall(text.lower().replace("’", "'"))
    if not words or text.endswith(("...", "…", "-", "–", "—", ",", ":")):
        return False
    if text.endswith(("?", "!")):
        return True
    if len(words) == 1 and words[0] in _WHOLE:
        return True
    if len(words) > _SHORT and not text.endswith("."):
        return False
    return words[-1] not in _DANGLING or (words[-1] == "please" and len(words) > _SHORT)
