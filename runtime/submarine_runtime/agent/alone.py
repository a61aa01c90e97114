"""A task that has a job to itself: the gang of one, and its ports."""

from __future__ import annotations

from dataclasses import replace

from submarine_runtime.agent.container import reachable_host
from submarine_runtime.agent.ports import Reservation
from submarine_runtime.frameworks import process_count, trait
from submarine_runtime.protocol.launch import AgentConfig
from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.quicklinks import resolved


def gang_of_one(config: AgentConfig) -> tuple[Member, Reservation]:
    """The only member, and what holds its ports.

    Raises
    ------
    ValueError
        If the framework is unknown; one sentence.
    OSError
        If no port is free.
    """
    processes = process_count(config.framework, config.processes, config.gpus, gang=False)
    ports = Reservation(int(trait(config.framework, "PORTS")))
    task = f"{config.role}:{config.index}"
    me = Member(
        task,
        config.role,
        config.index,
        "localhost",
        "127.0.0.1",
        ports.ports,
        gpus=config.gpus,
        processes=processes,
    )
    return me, ports


def links_of(config: AgentConfig, me: Member) -> dict[str, str]:
    """The job's links, with this host where they name the task."""
    return resolved(config.links, [replace(me, host=reachable_host(config.listen))])
