"""Base classes of the request handlers: access checks, errors, threads."""
