"""Read a job through its port and its job directory."""
