"""JAX: ``jax.distributed.initialize()`` without arguments, by its detection of Open MPI.

JAX reads the coordinator's address from its own variable. It takes the number of processes and the
process id only from a launcher that it knows. Of those, Open MPI's variables affect the fewest
other programs. On CPU the collectives use gloo.
"""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.ranks import collective_tasks, first_rank, port_of, world_size
from submarine_runtime.protocol import Member

IMPORTS = ("jax", "flax", "optax", "haiku", "equinox")
PRECEDENCE = 3
PROJECTS = ("jax",)
PROCESSES = "requested"
HOLD_PORTS = True
POLICY = "all"
RENDEZVOUS = "program"
JOIN_CALL = "jax.distributed.initialize()"
ADDRESS_IN_USE = ("Address already in use", "No address added out of total")


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return the coordinator, which is the first process; nothing for a single process."""
    collective = collective_tasks(members)
    variables = {} if member.gpus else {"JAX_PLATFORMS": "cpu"}
    if first_rank(member, collective) is None or world_size(collective) < 2:
        return variables
    address, port = collective[0].address, port_of(collective[0])
    scheme, host = ("tcp6", f"[{address}]") if ":" in address else ("tcp", address)
    variables.update(
        JAX_COORDINATOR_ADDRESS=f"{host}:{port}",
        JAX_COORDINATOR_PORT=str(port),
        JAX_CPU_COLLECTIVES_IMPLEMENTATION="gloo",
        OMPI_MCA_orte_hnp_uri=f"0.0;{scheme}://{host}:{port}",
        OMPI_COMM_WORLD_SIZE=str(world_size(collective)),
        OMPI_COMM_WORLD_LOCAL_SIZE=str(member.processes),
    )
    return variables


def processes(member: Member, members: Sequence[Member]) -> list[dict[str, str]]:
    """Return ranks, and the devices of each process."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or world_size(collective) < 2:
        return [{}]
    made = []
    for local in range(member.processes):
        variables = {
            "OMPI_COMM_WORLD_RANK": str(rank + local),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(local),
        }
        share = member.gpus // member.processes
        if share:
            devices = range(local * share, (local + 1) * share)
            variables["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, devices))
        made.append(variables)
    return made
