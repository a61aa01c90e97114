"""Workflows that are written in a cell of a notebook: kept, drawn, run and watched from there.

Knows notebooks only by their mouth (``submarine_jobs.commands``): the same works in a note.
"""
