"""Notebooks run without a person: the runner, its signals and limits, and papermill's engine.

Does not know workflows: a node's command is one run of one notebook.
"""
