"""Users of one interpreter process: their sessions, drivers and permissions."""
