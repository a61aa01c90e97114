"""The interpreter ``%submarine``: commands, jobs and workflows of a paragraph."""
