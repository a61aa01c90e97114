"""XGBoost: a tracker beside the chief; ``CommunicatorContext()`` needs no arguments.

XGBoost does not read the ``DMLC_*`` variables, so a shim passes them for arguments that the program
omits.
"""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.ranks import collective_tasks, first_rank, port_of
from submarine_runtime.frameworks.registry import Helper, wait_for_chief
from submarine_runtime.protocol import Member

IMPORTS = ("xgboost",)
PRECEDENCE = -2
PORTS = 2  # The tracker, and a port that opens once it serves.
POLICY = "all"
RENDEZVOUS = "helper"
JOIN_CALL = "with xgboost.collective.CommunicatorContext()"
SHIMS = ("shim_xgboost.py",)


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return the tracker's address and the number of this task; nothing for a single task."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or len(collective) < 2:
        return {}
    return {
        "DMLC_NUM_WORKER": str(len(collective)),
        "DMLC_ROLE": "worker",
        # Ranks follow the order of these strings.
        "DMLC_TASK_ID": f"{rank:06d}",
        "DMLC_TRACKER_PORT": str(port_of(collective[0])),
        "DMLC_TRACKER_URI": collective[0].address,
    }


def helpers(member: Member, members: Sequence[Member]) -> list[Helper]:
    """Return the tracker for the chief; for the other tasks a helper that waits for it."""
    collective = collective_tasks(members)
    if len(collective) < 2 or first_rank(member, collective) is None:
        return []
    chief = collective[0]
    if member.task != chief.task:
        return [wait_for_chief(chief.address, chief.ports[1])]
    place = (
        "--address",
        member.address,
        "--port",
        str(member.ports[0]),
        "--ready",
        str(member.ports[1]),
    )
    command = ("{python}", "{runtime}", "tracker", *place, "--workers", str(len(collective)))
    return [Helper(command, "tracker ready")]
