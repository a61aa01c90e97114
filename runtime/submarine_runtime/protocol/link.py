"""The link: messages between the agents of a distributed job and its coordinator.

Each agent opens one TLS connection to the coordinator's port, with the job's pinned certificate. It
begins as ``GET /v1/link`` with ``Authorization: Bearer <token>`` and ``Upgrade: submarine-link``;
after ``101`` both sides write newline-delimited JSON objects of at most ``MAX_LINK_LINE`` bytes
with a ``type``. Unknown types and fields are ignored. A malformed line closes the connection
(``protocol.link_validation`` validates them; list new fields there).

From the agent:

``register``   first line: ``task seat nonce container_id host address pid agent_port log_url ports
               network gpus node`` and ``running`` (None, or ``epoch attempt state`` of the program
               that has continued while the link was down). ``ports``: list of reserved numbers
``heartbeat``  every ``heartbeat`` s: ``n`` and what changed since the last acknowledged one:
               ``memory_now memory_peak cpu_seconds gpu_percent gpu_memory progress waiting``
               (what the task waits for, a sentence; empty: nothing)
``state``      ``epoch attempt state`` and further fields. ``preparing`` (``detail progress``:
               inputs), ``ready``, ``running`` (``pid started``), ``met`` (the program has used the
               port of its rendezvous), ``ending``, ``ended`` (``reason detail exit_code signal
               failure logs outputs missing finished retry`` where ``retry`` is ``no`` for a failure
               that a retry would repeat, such as an ImportError)
``event``      ``kind detail data``: an entry for the job's events
``saved``      answer to ``save``: ``id version`` (JSON of the version) or ``id error``
``snapshot``   ``epoch attempt kept`` (numbers of the snapshots that the agent has not deleted) and,
               for a new one, ``number round digests steps needs world`` (name -> CRC-32, name of a
               metadata file -> step, and -> the files that it names; number of processes);
               ``answered``: the round that is complete in this task
``synced``     ``epoch attempt``: the last snapshot of a program that has ended is in the store
``idle``       ``epoch attempt what seconds``: a process of the program (``what`` is ``program``)
               or all GPUs of the task (``gpus``) are idle, longer than the limit of the spec;
               ``seconds`` 0: not any more
``left``       the agent exits: everything is shipped, or ``missing`` says what is not;
               ``epoch attempt logs outputs`` of its last attempt as with ``ended``

From the coordinator:

``welcome``    answer to ``register``: ``heartbeat lost_after``
``refused``    answer to ``register``: ``why``; the agent exits with 0 and runs nothing
``ack``        ``n``: heartbeat ``n`` was received. An agent without an ack for ``lost_after``
               seconds since it *sent* the last acknowledged heartbeat kills its program at once:
               the coordinator counts from a later time, so two attempts never write together
``start``      ``epoch attempt members restore alone``: start the program; ``members`` is a list of
               ``Member``; ``attempt`` counts within a task from 1. ``restore``: None, or ``part``
               (``restore_points.TaskRestore``: restore exactly this; None: from the beginning)
               and ``own`` (restore the task's own newest snapshot of this epoch or a later one
               instead, if there is one). With ``shared``, the path of the published restore point,
               restore the files of all tasks in it; those of the tasks in ``owned`` count as this
               task's.
               ``alone``: the agent reports no snapshots and deletes old ones itself
``snapshot``   ``round``: take a snapshot as soon as the files do not change; answered with
               ``answered``
``keep``       ``points`` (list of epoch, attempt, number): do not delete these snapshots; with
               ``older`` delete those of earlier attempts that are not named
``ports``      reserve new ports; answered by ``register`` fields ``ports`` in a ``ports`` line
``stop``       ``why grace``: end the program; answered by ``state ended``. The agent waits for
               another ``start``
``tokens``     ``tokens``: fresh delegation tokens of the user (``kerberos.tokens_text``)
``save``       ``id name``: upload the model directory now, as a version
``leave``      ship the rest and exit; with ``outputs`` false only the logs, because the task
               continues in another container
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from submarine_runtime.protocol.spec import Role

LINK_PROTOCOL = "submarine-link"
MAX_LINK_LINE = 1 << 20
#: Maximum number of tasks of one job; limits every list that grows with them.
MAX_TASKS = 4096


@dataclass(frozen=True)
class Member:
    """One task of a gang, as the other tasks see it.

    Parameters
    ----------
    host, address
        Name and IP address under which the other tasks connect to it.
    ports
        The ports that it has reserved, as many as the framework needs.
    gpus
        Number of its devices.
    """

    task: str
    role: str
    index: int
    host: str
    address: str
    ports: tuple[int, ...] = ()
    gpus: int = 0
    kind: str = "tracked"
    processes: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)


def expected_members(roles: Sequence[Role]) -> list[Member]:
    """Return the members of a complete gang, without hosts."""
    return [
        Member(f"{role.name}:{index}", role.name, index, "", "", kind=role.kind)
        for role in roles
        for index in range(role.instances)
    ]


#: Roles whose first task can be the chief, in this order.
CHIEF_ROLES = ("chief", "master", "worker")


def chief_of(members: Sequence[Member]) -> Member:
    """Return the member whose outputs are the job's and whose end decides under policy ``chief``.

    The first task of the first role in ``CHIEF_ROLES``, else the first tracked one, else the first.
    """
    ordered = sorted(members, key=lambda member: member.index)
    for role in CHIEF_ROLES:
        for member in ordered:
            if member.role == role:
                return member
    return next((member for member in ordered if member.kind == "tracked"), members[0])
