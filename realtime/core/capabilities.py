"""What a model can do, as data.

Owns: `ModelCapabilities`. Code asks a flag of it, never a provider's name or class. Never acts.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ModelCapabilities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """What one model can do, from what its provider publishes."""

    model: str = ""
    """The model's name at its provider."""
    input_rate_hz: int = 24_000
    """Sample rate of the PCM16 mono audio it takes."""
    output_rate_hz: int = 24_000
    """Sample rate of the PCM16 mono audio it gives."""
    supports_audio_input: bool = True
    """It takes audio."""
    supports_image_input: bool = True
    """It takes pictures as conversation items."""
    supports_text_output: bool = True
    """It can answer in text instead of speech."""
    supports_audio_output: bool = True
    """Its speech comes to us. False for a sideband, whose user hears the model directly."""
    supports_tools: bool = True
    """It calls functions."""
    supports_semantic_turns: bool = True
    """It can tell the end of a turn by what is said (`TurnDetection(mode="semantic")`)."""
    supports_manual_turns: bool = True
    """The application can end turns itself (`TurnDetection(mode="manual")`)."""
    supports_unanswered_turns: bool = True
    """A turn that it hears may go without a reply (`TurnDetection(create_response=False)`)."""
    supports_audio_clearing: bool = True
    """Audio that was sent and not committed can be thrown away."""
    supports_reasoning: bool = False
    """It can be told how long to think (`reasoning_effort`)."""
    supports_truncation: bool = True
    """A spoken item can be cut to what was heard."""
    supports_item_deletion: bool = True
    """Items can be deleted from the provider's conversation."""
    supports_own_item_ids: bool = True
    """Items created by us keep the ids that we give them (at most `max_item_id_length` characters). False: the provider makes
    ids of its own, and the wire format puts ours in their place, so that everything above knows only ours."""
    max_item_id_length: int = 32
    """Longest item id of ours that it accepts."""
    supports_session_seeding: bool = True
    """Earlier messages can be put into a new conversation."""
    supports_seeding_images: bool = True
    """Earlier pictures can be put into a new conversation."""
    supports_seeding_audio: bool = False
    """Earlier user audio can be put into a new conversation."""
    supports_resumption: bool = False
    """A dropped conversation can be taken up again by a handle of the provider's."""
    reports_item_order: bool = True
    """It says where each item joined its conversation (`ItemAdded`)."""
    reports_speech_boundaries: bool = True
    """It says when the user's speech began and ended, in its own audio time."""
    reports_input_transcripts: bool = True
    """It transcribes the user's speech when asked to."""
    reports_total_usage: bool = True
    """A response's usage counts the whole conversation, not only what the response added."""
    takes_commits_during_response: bool = True
    """It takes `CommitAudio` while a response is running; otherwise commits wait for its end and go out as one."""
    cancels_on_barge_in: bool = True
    """It cancels its own response when it hears the user speak (with server turn detection)."""
    context_window: int | None = None
    """Tokens of its context window; None if not published."""
    max_session_seconds: float | None = None
    """How long one connection may live; None if without bound."""
    max_message_bytes: int = 15_000_000
    """Largest wire message that it accepts."""
    max_image_bytes: int | None = None
    """Largest encoded picture that it accepts; None: only `max_message_bytes` bounds it."""
    image_price: str = "openai-tiles"
    """Which rule of `realtime.chat.image_prices` prices its pictures."""
