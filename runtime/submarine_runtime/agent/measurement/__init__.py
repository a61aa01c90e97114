"""Measurements of the running program: processes, devices, progress and training scalars."""
