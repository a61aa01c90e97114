"""State machine of a distributed job: events in, actions out; no clock, thread or socket."""
