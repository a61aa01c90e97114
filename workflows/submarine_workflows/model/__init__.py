"""Workflows as data: nodes, parameters, conditions, schedules, validation."""
