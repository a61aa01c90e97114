"""Options that people know from Submarine or from later releases: each is refused by its name.

None is ever ignored: a job that silently runs without its parameter servers is worse than none.
"""

from __future__ import annotations

from typing import NamedTuple


class Later(NamedTuple):
    """An option that is known and not there yet; ``takes_value`` False for a flag."""

    names: tuple[str, ...]
    takes_value: bool
    what: str
    instead: str


_ROLES = "A job is one worker in this release."
_DOCKER = "Use --python-env host or --python-env path:DIR with a Python that is on the nodes."
_TENSORBOARD = "Write event files to $SUBMARINE_TENSORBOARD_DIR; they are kept with the job."
_KERBEROS = "Use a cluster with simple authentication."
_RESTARTS = "Run again with `submarine rerun JOB`; read checkpoints with --input_path."

LATER: tuple[Later, ...] = (
    Later(("--num_ps", "--ps"), True, "Parameter servers are", _ROLES),
    Later(("--ps_resources",), True, "Parameter servers are", _ROLES),
    Later(("--ps_launch_cmd",), True, "Parameter servers are", _ROLES),
    Later(("--chief",), True, "A chief of its own is", _ROLES),
    Later(("--chief_resources",), True, "A chief of its own is", _ROLES),
    Later(("--chief_launch_cmd",), True, "A chief of its own is", _ROLES),
    Later(("--evaluator",), True, "An evaluator of its own is", _ROLES),
    Later(("--evaluator_resources",), True, "An evaluator of its own is", _ROLES),
    Later(("--evaluator_launch_cmd",), True, "An evaluator of its own is", _ROLES),
    Later(("--role",), True, "Roles of your own are", _ROLES),
    Later(("--min_workers",), True, "Elastic jobs are", _ROLES),
    Later(("--gang_timeout",), True, "Distributed jobs are", _ROLES),
    Later(("--docker_image",), True, "Docker images are", _DOCKER),
    Later(("--worker_docker_image",), True, "Docker images are", _DOCKER),
    Later(("--ps_docker_image",), True, "Docker images are", _DOCKER),
    Later(("--archive",), True, "Packed Python environments are", _DOCKER),
    Later(("--tensorboard",), False, "TensorBoard in a container is", _TENSORBOARD),
    Later(("--tensorboard_resources",), True, "TensorBoard in a container is", _TENSORBOARD),
    Later(("--tensorboard_docker_image",), True, "TensorBoard in a container is", _TENSORBOARD),
    Later(("--keytab",), True, "Kerberos is", _KERBEROS),
    Later(("--principal",), True, "Kerberos is", _KERBEROS),
    Later(("--distribute_keytab",), False, "Kerberos is", _KERBEROS),
    Later(
        ("--input",),
        True,
        "Named inputs are",
        "Use --input_path URI, or --localization SRC:TARGET for a file.",
    ),
    Later(
        ("--param",),
        True,
        "Parameters of a notebook are",
        "Use --env NAME=VALUE, or program arguments after --.",
    ),
    Later(("--max_restarts",), True, "Restarts by the cluster are", _RESTARTS),
    Later(
        ("--node_label",),
        True,
        "Node labels are",
        "Use --queue with a queue whose default label is the one you want.",
    ),
    Later(("--priority",), True, "Priorities are", "Use --queue with a queue of that priority."),
)

VERBS: dict[str, tuple[str, str]] = {
    "tensorboard": ("TensorBoard in a container is", _TENSORBOARD),
    "save": (
        "Copying a model out of its job is",
        "`submarine show JOB` names the job's directory; its model lies there in model/.",
    ),
}


def spelling(option: str) -> str:
    """The one spelling of an option that both ``--num_ps`` and ``--num-ps`` have."""
    return option.replace("_", "-")


_BY_NAME = {spelling(name): later for later in LATER for name in later.names}


def refusal(option: str) -> tuple[str, str] | None:
    """The sentence and the way out for an option of a later release, else None."""
    later = _BY_NAME.get(spelling(option))
    return (f"{later.what} not in this release ({option}).", later.instead) if later else None
