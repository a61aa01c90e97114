"""Logs and events on their way to the job directory."""
