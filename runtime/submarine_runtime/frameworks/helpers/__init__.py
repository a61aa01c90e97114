"""Processes that an agent runs beside the program."""
