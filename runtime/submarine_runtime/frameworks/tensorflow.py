"""TensorFlow: ``TF_CONFIG`` for a cluster; a single task needs none.

``MultiWorkerMirroredStrategy`` and ``ParameterServerStrategy`` read it. The strategies have four
roles; ``master`` is their chief. With parameter servers and no chief the first worker is the
chief, because ``ParameterServerStrategy`` needs one that coordinates the others. An evaluator is
not in the cluster of the others. A role of another name gets no ``TF_CONFIG``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Iterable, Sequence

from submarine_runtime.frameworks.ranks import cluster_of, collective_tasks
from submarine_runtime.protocol import Member

IMPORTS = ("tensorflow", "tf_keras")
PRECEDENCE = 1
PROJECTS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")
HOLD_PORTS = True
POLICY = "chief"
RENDEZVOUS = "programs"
JOIN_CALL = "strategy = tf.distribute.MultiWorkerMirroredStrategy()"
ADDRESS_IN_USE = ("Address already in use", "Could not start gRPC server")
CLUSTER_ROLES = ("chief", "worker", "ps")


def policy(roles: Iterable[str]) -> str:
    """Return ``chief`` with parameter servers or evaluators, else ``all``."""
    return "chief" if {"ps", "evaluator"}.intersection(roles) else "all"


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return ``TF_CONFIG`` for more than one task; without it TensorFlow runs alone."""
    renamed = {one.task: one for one in tensorflow_members(members)}
    cluster = cluster_of([one for one in renamed.values() if one.role in CLUSTER_ROLES])
    mine = renamed.get(member.task)
    if mine is None or sum(len(addresses) for addresses in cluster.values()) < 2:
        return {}
    task = {"type": mine.role, "index": mine.index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def training(members: Sequence[Member]) -> list[Member]:
    """Return the tasks that read training data: with parameter servers not the chief."""
    collective = collective_tasks(members)
    if not any(one.role == "ps" and one.kind != "sidecar" for one in members):
        return collective
    directing = {one.task for one in tensorflow_members(members) if one.role == "chief"}
    return [one for one in collective if one.task not in directing]


def tensorflow_members(members: Sequence[Member]) -> list[Member]:
    """Return the members with roles of TensorFlow, each with TensorFlow's role and index."""
    known = [
        replace(one, role="chief") if one.role == "master" else one
        for one in members
        if one.role in (*CLUSTER_ROLES, "master", "evaluator") and one.kind != "sidecar"
    ]
    workers = [one for one in known if one.role == "worker"]
    roles = {one.role for one in known}
    if "ps" not in roles or "chief" in roles or len(workers) < 2:
        return known
    first = min(workers, key=lambda one: one.index)
    promoted = [replace(first, role="chief", index=0)]
    for one in known:
        if one.role != "worker":
            promoted.append(one)
        elif one is not first:
            promoted.append(replace(one, index=one.index - 1))
    return promoted
