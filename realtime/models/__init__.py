"""One file per provider: its capabilities, wire format and connection."""
