"""Start the coordinator, and start it again when it dies or hangs."""
