"""Data of a job without I/O: spec, roles, profile, view, quantities."""
