"""Run blocking calls in threads and subprocesses, with time limits."""
