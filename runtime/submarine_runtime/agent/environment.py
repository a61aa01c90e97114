"""What the program finds: its command line, its environment and the launcher beside it.

Nothing secret goes into either.
"""

from __future__ import annotations

import os
from typing import Any, Mapping

import submarine_runtime
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.frameworks import environment as framework_environment
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig

_LAUNCHER = ("launch.py",)
_VALUES = ("__init__.py", "values.py", "value_encoder.py", "value_decoder.py")


def program_environment(
    config: AgentConfig, scratch: Scratch, inherited: Mapping[str, str]
) -> dict[str, str]:
    """The container's environment, the framework's, the user's, and Submarine's own names."""
    variables = dict(inherited)
    variables.update(framework_environment(config, {config.role: ["localhost"]}))
    variables["PYTHONUNBUFFERED"] = "1"
    variables.update(config.env)
    for name, value in config.inputs.items():
        variables[f"SUBMARINE_INPUT_{name}"] = value
    variables.update(
        SUBMARINE_JOB_ID=config.job_id,
        SUBMARINE_ROLE=config.role,
        SUBMARINE_INDEX=str(config.index),
        SUBMARINE_ATTEMPT=str(config.attempt),
        SUBMARINE_CHECKPOINT_DIR=scratch.outputs[layout.CHECKPOINTS],
        SUBMARINE_MODEL_DIR=scratch.outputs[layout.MODEL],
        SUBMARINE_TENSORBOARD_DIR=scratch.outputs[layout.TENSORBOARD],
    )
    return variables


def program_command(config: AgentConfig, scratch: Scratch) -> list[str]:
    """The arguments to execute: the launcher for a Python program, bash for a command."""
    if config.command is not None:
        return ["bash", "-c", config.command]
    launcher = os.path.join(scratch.launch, "launch.py")
    return [config.python, launcher, config.program, *config.args]


def place_launcher(config: AgentConfig, scratch: Scratch) -> None:
    """Copy the launcher, and what it needs for values, out of our own zip."""
    if config.command is not None:
        return
    _copy(_LAUNCHER, scratch.launch)
    if config.return_names or os.path.exists(scratch.path(layout.VALUES)):
        package = os.path.join(scratch.launch, "submarine_runtime")
        os.makedirs(package, 0o700, exist_ok=True)
        _copy(_VALUES, package)
    if config.return_names:
        with open(os.path.join(scratch.launch, "return_names"), "w", encoding="utf-8") as file:
            file.write("\n".join(config.return_names))


def _copy(names: tuple[str, ...], directory: str) -> None:
    loader: Any = submarine_runtime.__loader__
    source = os.path.dirname(submarine_runtime.__file__)
    for name in names:
        with open(os.path.join(directory, name), "wb") as file:
            file.write(loader.get_data(os.path.join(source, name)))
