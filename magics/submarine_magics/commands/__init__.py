"""Command lines of ``%submarine``: completion, help, defaults, headless options."""
