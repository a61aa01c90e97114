"""Keras 3: what its backend expects, and Keras' own variables for distribution.

The backend is that of ``KERAS_BACKEND``, else of ``keras.json``, else TensorFlow, as in Keras. A
program that sets it in its own code imports the backend too, which chooses the framework.
"""

from __future__ import annotations

import json
import os
from typing import Iterable, Mapping, Sequence

from submarine_runtime.frameworks import tensorflow
from submarine_runtime.frameworks.ranks import collective_tasks, endpoint_of, first_rank
from submarine_runtime.protocol import Member

IMPORTS = ("keras",)
PRECEDENCE = -1
HOLD_PORTS = True
POLICY = "chief"
RENDEZVOUS = "program"
JOIN_CALL = (
    "tf.distribute.MultiWorkerMirroredStrategy(), with JAX keras.distribution.initialize(), with "
    "PyTorch init_process_group()"
)
ADDRESS_IN_USE = (*tensorflow.ADDRESS_IN_USE, "No address added out of total")
BACKENDS = {"tensorflow": "tensorflow", "torch": "pytorch", "jax": "jax"}


def policy(roles: Iterable[str]) -> str:
    """Return TensorFlow's policy, which differs from the others only for parameter servers."""
    return tensorflow.policy(roles)


def base(env: Mapping[str, str]) -> str:
    """Return the framework below Keras in a program with this environment."""
    backend = env.get("KERAS_BACKEND") or _configured(env)
    return BACKENDS.get(backend, "any")


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return the variables of ``keras.distribution.initialize()``, besides the backend's own."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or len(collective) < 2:
        return {}
    return {
        "KERAS_DISTRIBUTION_JOB_ADDRESSES": ",".join(endpoint_of(one) for one in collective),
        "KERAS_DISTRIBUTION_NUM_PROCESSES": str(len(collective)),
        "KERAS_DISTRIBUTION_PROCESS_ID": str(rank),
    }


def _configured(env: Mapping[str, str]) -> str:
    home = env.get("KERAS_HOME") or os.path.join(env.get("HOME", ""), ".keras")
    try:
        with open(os.path.join(home, "keras.json"), encoding="utf-8") as file:
            return str(json.load(file).get("backend") or "tensorflow")
    except (OSError, ValueError, AttributeError):
        return "tensorflow"
