"""The session as a machine: no loop, clock, thread, codec or socket."""
