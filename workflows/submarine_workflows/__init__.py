"""Notebook runs that nobody watches: workflows of notebooks, in Azkaban Flow 2.0's terms.

Reads, checks and draws workflows. What a node runs is a notebook or a job of ``submarine_jobs``.
"""
