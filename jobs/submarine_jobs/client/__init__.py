"""Session and Job: list, watch, wait for, cancel and repeat jobs."""
