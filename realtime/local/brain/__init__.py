"""Brains: what makes the local LLM's replies (`rules` works offline; `chat` asks any OpenAI-compatible endpoint)."""
