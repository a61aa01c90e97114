"""Configuration: files, environment and options become one profile; trust in project files."""
