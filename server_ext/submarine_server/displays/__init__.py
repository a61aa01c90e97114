"""Jobs and workflow runs on display in pages, and their observation."""
