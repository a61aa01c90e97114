"""Interfaces between the interpreter process and the interpreters."""
