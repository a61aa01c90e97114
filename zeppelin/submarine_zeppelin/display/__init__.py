"""Displays of Zeppelin: HTML, tables, text, and their refresh."""
