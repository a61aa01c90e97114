"""Training libraries, on the local backend."""
