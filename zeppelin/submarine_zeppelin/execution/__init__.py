"""Execute paragraphs: queues, state, cancellation, progress."""
