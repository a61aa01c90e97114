"""From a job's spec back to the words that would run it again; pure.

What cannot be said as an option (values of ``--with`` come from a notebook's variables, a program
made of cells that was never saved) is named as far as it has a name: ``rerun`` repeats exactly.
"""

from __future__ import annotations

import shlex
from typing import Any

from submarine_jobs.model import BOARD_COMMAND, JobSpec, Role, usual_kind
from submarine_jobs.options.argv import to_argv
from submarine_jobs.options.role_options import RoleOptions
from submarine_jobs.options.roles_of import BOARD, BOARD_LINK
from submarine_jobs.options.run_options import RunOptions


def command_of(spec: JobSpec) -> str:
    """``submarine run --name=digits ...``, ready for a shell."""
    return shlex.join(["submarine", "run", *to_argv(options_of(spec))])


def options_of(spec: JobSpec) -> RunOptions:
    """The options that ask for ``spec``; defaults of a role's size are spelled out."""
    links = {name: url for name, url in spec.quicklinks.items() if (name, url) != BOARD_LINK}
    image = spec.docker_image if spec.python_env != f"docker:{spec.docker_image}" else None
    return RunOptions(
        name=spec.name,
        program=(spec.notebook or spec.program) if spec.program else None,
        args=spec.args,
        framework=spec.framework,
        queue=spec.queue,
        backend=spec.backend,
        python_env=spec.python_env if spec.python_env != "host" else None,
        docker_image=image,
        quicklinks=links,
        resume=spec.resume_from,
        restore=spec.restore,
        policy=spec.policy,
        allow_failures=spec.allowed_failures or None,
        **_sizes(spec),
        **{
            name: getattr(spec, name)
            for name in (
                *("env", "input_path", "checkpoint_path", "saved_model_path", "localization"),
                *("timeout", "with_names", "return_names", "archives", "inputs", "params"),
                *("max_restarts", "gang_timeout", "gang_retries", "heartbeat", "lost_after"),
                *(
                    "priority",
                    "network_interface",
                    "require_collective",
                    "return_all_ranks",
                    "keep",
                ),
            )
        },
    )


def _sizes(spec: JobSpec) -> dict[str, Any]:
    """Size and place of an only worker as options of their own, else a ``--role`` each."""
    if len(spec.roles) > 1 or spec.roles[0].name != "worker" or spec.roles[0].instances > 1:
        return {"roles": tuple(_role(role) for role in spec.roles)}
    role, size = spec.roles[0], spec.roles[0].resources
    plain = Role(resources=size)
    found: dict[str, Any] = {
        "memory": size.memory,
        "vcores": size.vcores,
        "gpus": size.gpus or None,
    }
    return found if role == plain else {"roles": (_role(role),)}


def _role(role: Role) -> RoleOptions:
    board = role.name == BOARD and (role.command or "").startswith(BOARD_COMMAND)
    return RoleOptions(
        name=role.name,
        instances=role.instances,
        memory=role.resources.memory,
        vcores=role.resources.vcores,
        gpus=role.resources.gpus or None,
        env=dict(role.env),
        kind=role.kind if role.kind != usual_kind(role.name) else None,
        least=role.least,
        after=role.after,
        label=role.node_label,
        nodes=role.nodes,
        racks=role.racks,
        avoid=role.avoid,
        relax=role.relax,
        spread=role.spread,
        processes=role.processes or None,
        python_env=role.python_env,
        image=role.docker_image if role.python_env != f"docker:{role.docker_image}" else None,
        command=None if board else role.command,
    )
