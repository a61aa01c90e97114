"""Fixtures for all tests. Those of the cluster come with the minicluster itself."""

from __future__ import annotations

pytest_plugins = ["submarine_minicluster.pytest_plugin"]
