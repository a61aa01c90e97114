"""Fixtures for all tests. Those of the cluster come with the minicluster itself."""

from __future__ import annotations

from hypothesis import settings

# A busy machine may be slow for a moment; how long a test may take is pytest-timeout's matter.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

pytest_plugins = ["submarine_minicluster.pytest_plugin"]
