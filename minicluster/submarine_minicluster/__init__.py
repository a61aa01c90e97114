"""A real Hadoop on this machine, for the first minute and for tests.

Starts Hadoop's own daemons (NameNode, DataNode, ResourceManager, NodeManager, JobHistoryServer) as
processes of the current user on free loopback ports, keeps them as a named cluster that outlives
the process which started it, and stops them without a trace. It knows nothing of jobs: whoever
wants to run one takes the client configuration that `Minicluster.env` names.
"""

from __future__ import annotations

from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.settings import Settings

__all__ = ["Minicluster", "MiniclusterError", "Settings"]
