"""MXNet with a parameter server (``kvstore`` ``dist_*``): the ``DMLC_*`` variables of ps-lite.

Needs a scheduler, which is added to the job, and at least one ``server`` or ``ps``. Scheduler and
servers run the same program: ``import mxnet`` serves there, and ends the process when the workers
have finished.
"""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.ranks import port_of
from submarine_runtime.protocol import Member
from submarine_runtime.translation import _

IMPORTS = ("mxnet",)
EXTRA_ROLES = ("scheduler",)
HOLD_PORTS = True
POLICY = "all"
ADDRESS_IN_USE = ("Address already in use", "bind failed")
SERVERS = ("ps", "server")


def role_error(roles: Sequence[str]) -> str:
    """Return what is wrong with a distributed job of these roles; empty if nothing is."""
    if set(SERVERS).intersection(roles):
        return ""
    return _("MXNet's workers connect to a parameter server: request one with --ps 1")


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return role, sizes and the scheduler's address; nothing for a single task.

    Raises
    ------
    ValueError
        If there is no scheduler.
    """
    gang = [one for one in members if one.kind != "sidecar"]
    if len(gang) < 2 or member.kind == "sidecar":
        return {}
    scheduler = next((one for one in gang if one.role == "scheduler"), None)
    servers = [one.task for one in gang if one.role in SERVERS]
    workers = [one.task for one in gang if one.role not in (*SERVERS, "scheduler")]
    if scheduler is None:
        raise ValueError(_("MXNet needs a role 'scheduler' of one task, and this gang has none"))
    variables = {
        "DMLC_NODE_HOST": member.address,
        "DMLC_NUM_SERVER": str(len(servers)),
        "DMLC_NUM_WORKER": str(len(workers)),
        "DMLC_PS_ROOT_PORT": str(port_of(scheduler)),
        "DMLC_PS_ROOT_URI": scheduler.address,
    }
    if member.task in servers:
        return {
            **variables,
            "DMLC_ROLE": "server",
            "DMLC_SERVER_ID": str(servers.index(member.task)),
        }
    if member.task in workers:
        return {
            **variables,
            "DMLC_ROLE": "worker",
            "DMLC_WORKER_ID": str(workers.index(member.task)),
        }
    return {**variables, "DMLC_ROLE": "scheduler"}
