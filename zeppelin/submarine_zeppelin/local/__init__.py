"""Interpreters of this machine: Python and shell."""
