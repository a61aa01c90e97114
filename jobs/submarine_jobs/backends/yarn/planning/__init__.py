"""Check a spec against the live cluster and choose its containers."""
