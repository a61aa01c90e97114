"""Logs of jobs, running and ended: read by offset, listed, searched."""
