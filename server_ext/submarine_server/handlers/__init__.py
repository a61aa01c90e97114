"""The REST handlers, one file a concern; each has ``ROUTES``."""
