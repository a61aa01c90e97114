"""Read a job's logs: live from its port, then from shipped segments; by offset."""
