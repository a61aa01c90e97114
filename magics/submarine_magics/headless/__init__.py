"""Jobs of a headless run: wait for them at the end of a cell or of the run, and report failures."""
