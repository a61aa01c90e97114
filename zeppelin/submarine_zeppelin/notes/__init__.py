"""Notes of Zeppelin: paragraphs, export, legacy formats."""
