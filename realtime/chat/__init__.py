"""The conversation as values."""
