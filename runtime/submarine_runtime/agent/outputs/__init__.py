"""Outputs that are saved when the program has ended."""
