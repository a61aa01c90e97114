"""Runs of workflows, whatever runs them: lists, views, actions."""
