"""Run notebooks through jupyter-scheduler."""
