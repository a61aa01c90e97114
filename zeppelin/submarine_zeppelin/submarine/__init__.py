"""The ``%submarine`` interpreter."""
