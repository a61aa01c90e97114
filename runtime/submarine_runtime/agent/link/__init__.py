"""Connection of an agent to its coordinator."""
