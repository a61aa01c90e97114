"""Format and sanitize text for people: sizes, times, untrusted text, terminal control sequences."""
