"""Show workflows and runs as text, HTML and graphs."""
