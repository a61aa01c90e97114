"""Options that people know from Submarine or from later releases: each is refused by its name.

None is ever ignored: a job that silently runs without its parameter servers is worse than none.
"""

from __future__ import annotations

from typing import NamedTuple


class Later(NamedTuple):
    """An option that is known and not there yet: its spellings, what it is, what to do."""

    names: tuple[str, ...]
    what: str
    instead: str


_ROLES = "A job is one worker in this release."
_DOCKER = "Use --python-env host or --python-env path:DIR with a Python that is on the nodes."
_TENSORBOARD = "Write event files to $SUBMARINE_TENSORBOARD_DIR; they are kept with the job."
_KERBEROS = "Use a cluster with simple authentication."
_RESTARTS = "Run again with `submarine rerun JOB`; read checkpoints with --input_path."

LATER: tuple[Later, ...] = (
    Later(("--num_ps", "--ps"), "Parameter servers are", _ROLES),
    Later(("--ps_resources",), "Parameter servers are", _ROLES),
    Later(("--ps_launch_cmd",), "Parameter servers are", _ROLES),
    Later(("--chief",), "A chief of its own is", _ROLES),
    Later(("--chief_resources",), "A chief of its own is", _ROLES),
    Later(("--chief_launch_cmd",), "A chief of its own is", _ROLES),
    Later(("--evaluator",), "An evaluator of its own is", _ROLES),
    Later(("--evaluator_resources",), "An evaluator of its own is", _ROLES),
    Later(("--evaluator_launch_cmd",), "An evaluator of its own is", _ROLES),
    Later(("--role",), "Roles of your own are", _ROLES),
    Later(("--min_workers",), "Elastic jobs are", _ROLES),
    Later(("--gang_timeout",), "Distributed jobs are", _ROLES),
    Later(("--docker_image",), "Docker images are", _DOCKER),
    Later(("--worker_docker_image",), "Docker images are", _DOCKER),
    Later(("--ps_docker_image",), "Docker images are", _DOCKER),
    Later(("--archive",), "Packed Python environments are", _DOCKER),
    Later(("--tensorboard",), "TensorBoard in a container is", _TENSORBOARD),
    Later(("--tensorboard_resources",), "TensorBoard in a container is", _TENSORBOARD),
    Later(("--tensorboard_docker_image",), "TensorBoard in a container is", _TENSORBOARD),
    Later(("--keytab",), "Kerberos is", _KERBEROS),
    Later(("--principal",), "Kerberos is", _KERBEROS),
    Later(("--distribute_keytab",), "Kerberos is", _KERBEROS),
    Later(
        ("--input",),
        "Named inputs are",
        "Use --input_path URI, or --localization SRC:TARGET for a file.",
    ),
    Later(
        ("--param",),
        "Parameters of a notebook are",
        "Use --env NAME=VALUE, or program arguments after --.",
    ),
    Later(("--max_restarts",), "Restarts by the cluster are", _RESTARTS),
    Later(
        ("--node_label",),
        "Node labels are",
        "Use --queue with a queue whose default label is the one you want.",
    ),
    Later(("--priority",), "Priorities are", "Use --queue with a queue of that priority."),
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
