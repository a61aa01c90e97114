"""The verbs of ``submarine workflow``."""
