"""GPUs of a node: detection, locks, claims and measurements."""
