"""A whole notebook server in a container of the cluster: ``submarine notebook start``.

An ordinary job of one task, whose role is ``notebook``. ``container`` is what travels: it starts
JupyterLab or Zeppelin on the container's loopback interface, opens a door to it with the job's own
certificate, and ends it when nobody has used it for a while. Its directory of notebooks is the
job's checkpoint directory, so the agent brings each saved notebook to the job directory.
"""

from __future__ import annotations

from submarine_jobs.model import NOTEBOOK_ROLE as ROLE

__all__ = ["ROLE"]
