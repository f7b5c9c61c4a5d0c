"""``python -m realtime.local``: the local websocket LLM."""

from __future__ import annotations

from realtime.local.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
