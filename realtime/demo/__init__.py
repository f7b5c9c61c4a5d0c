"""The demo call."""
