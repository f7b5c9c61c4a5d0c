"""The embedded websocket LLM."""
