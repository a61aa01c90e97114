"""Run a real Hadoop cluster on this machine, for experiments and tests.

Hadoop's own daemons (NameNode, DataNode, ResourceManager, NodeManager, JobHistoryServer) run as
processes of the current user on free loopback ports. They form a named cluster that continues to
run after the process that started it has ended. This package does not submit jobs: clients use the
configuration that `Minicluster.env` returns.
"""

from __future__ import annotations

from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.settings import Settings

__all__ = ["Minicluster", "MiniclusterError", "Settings"]
