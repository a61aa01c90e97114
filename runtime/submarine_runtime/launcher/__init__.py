"""Files that are copied beside the user's program and start it."""
