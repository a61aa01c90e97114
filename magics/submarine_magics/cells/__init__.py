"""Collected cells of a running kernel, the document and the modules that cells make."""
