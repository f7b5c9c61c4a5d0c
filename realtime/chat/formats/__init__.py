"""One file per shape that other people give a conversation."""
