"""Command line and environment of the program, and the launcher beside it.

Only the environment of the program contains the values of ``--secret``.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Mapping

import submarine_runtime
from submarine_runtime import frameworks
from submarine_runtime.agent.program.client_configuration import place_client_configuration
from submarine_runtime.frameworks import Setup
from submarine_runtime.protocol import (
    TENSORBOARD_COMMAND,
    AgentConfig,
    has_secrets,
    is_tensorboard,
    layout,
    tunnels,
)
from submarine_runtime.storage import Scratch
from submarine_runtime.translation import _

_LAUNCHER = ("launch.py",)
_SEVERAL = "launch_many.py"
_VALUES = ("__init__.py", "__init__.pyi", "archive.py", "decoder.py", "encoder.py", "frames.py")
#: Prefix of the agent's own variables; they are removed from the program's environment.
OWN = "SUBMARINE_AGENT_"


@dataclass
class ProgramResources:
    """Resources of the program in this container.

    Parameters
    ----------
    inputs
        NAME -> local path of each fetched input, and its pipe or ``-`` in mode ``stream``.
    variables
        Variables for the task's GPUs.
    tasks
        Number of tasks of the role.
    ports
        Ports that are reserved for the program.
    stdin
        Descriptor for the program's standard input, closed after its start; -1: none.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    tasks: int = 1
    ports: tuple[int, ...] = ()
    stdin: int = -1


def program_environment(
    config: AgentConfig,
    scratch: Scratch,
    inherited: Mapping[str, str],
    setup: Setup,
    resources: ProgramResources,
) -> dict[str, str]:
    """Return the environment: the container's, the framework's, the user's, and Submarine's.

    Parameters
    ----------
    inherited
        Environment of the container.
    setup
        Setup of the framework.
    resources
        GPUs, inputs and ports of the program.

    Raises
    ------
    ValueError
        If a value of ``--secret`` is missing.
    """
    variables = {key: value for key, value in inherited.items() if not key.startswith(OWN)}
    variables.update(place_client_configuration(config, scratch))
    variables.update(resources.variables)
    variables.update(setup.env)
    if len(setup.processes) == 1:
        variables.update(setup.processes[0])
    variables["PYTHONUNBUFFERED"] = "1"
    python = interpreter(config, scratch)
    if os.path.isabs(python):
        # A command python3 means the job's own interpreter.
        places = [os.path.dirname(python), variables.get("PATH") or os.defpath]
        variables["PATH"] = os.pathsep.join(places)
    variables.update({key: _filled(value, config, resources) for key, value in config.env.items()})
    variables.update(secret_values(config, scratch))
    data = scratch.path(layout.DATA_PACKAGE)
    if config.task_role.command is not None and os.path.exists(data):
        # The launcher does it for a Python program.
        places = [variables.get("PYTHONPATH", ""), data]
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    if config.spec.input_path:
        variables["SUBMARINE_INPUT_PATH"] = config.spec.input_path
    for name, value in resources.inputs.items():
        variables[f"SUBMARINE_INPUT_{name}"] = value
    variables.update(
        SUBMARINE_JOB_ID=config.record.job_id,
        SUBMARINE_ROLE=config.role,
        SUBMARINE_INDEX=str(config.index),
        SUBMARINE_TASK_COUNT=str(resources.tasks),
        SUBMARINE_EPOCH=str(config.epoch),
        SUBMARINE_ATTEMPT=str(config.attempt),
        SUBMARINE_PROCESS="0",
        SUBMARINE_PORT=str(resources.ports[0]) if resources.ports else "",
        SUBMARINE_TUNNELS=scratch.path(tunnels.FILE),
        SUBMARINE_CHECKPOINT_DIR=scratch.outputs[layout.CHECKPOINTS],
        SUBMARINE_MODEL_DIR=scratch.outputs[layout.MODEL],
        SUBMARINE_TENSORBOARD_DIR=scratch.outputs[layout.TENSORBOARD],
        SUBMARINE_OUTPUT_DIR=scratch.saved_output(),
    )
    _add_tracking(variables, config, scratch)
    for output in (one for one in config.publish if not one.is_model):
        variables[f"SUBMARINE_OUTPUT_{output.name}"] = scratch.saved_output(output.name)
        if output.stream or output.parts:
            variables[f"SUBMARINE_PUBLISHED_{output.name}"] = scratch.published_list(output.name)
    if config.spec.params:
        variables["SUBMARINE_PARAMS"] = scratch.path("params.json")
        for name, given in config.spec.params.items():
            text = given if isinstance(given, str) else json.dumps(given)
            variables[f"SUBMARINE_PARAM_{name.upper().replace('-', '_')}"] = text
    return variables


def _add_tracking(variables: dict[str, str], config: AgentConfig, scratch: Scratch) -> None:
    """Let MLflow and Weights & Biases store runs in SUBMARINE_OUTPUT_DIR, unless the user chose.

    Hugging Face's Trainer writes its event files where those of a job are.
    """
    job, place = config.record.job_id, scratch.saved_output()
    run = f"{job}-{scratch.task_name}"
    # MLflow has no variable for the name of a run: it is a tag.
    found = {"MLFLOW_RUN_CONTEXT": json.dumps({"mlflow.runName": run})}
    found.update(WANDB_NAME=run, WANDB_RUN_GROUP=job)
    found.update(WANDB_PROJECT=config.spec.name, WANDB_DIR=place, WANDB_SYMLINK="false")
    if "MLFLOW_TRACKING_URI" not in variables:
        found["MLFLOW_TRACKING_URI"] = os.path.join(place, "mlruns")
        found["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 asks for it.
    if "MLFLOW_EXPERIMENT_ID" not in variables:
        found["MLFLOW_EXPERIMENT_NAME"] = config.spec.name
    found["TENSORBOARD_LOGGING_DIR"] = scratch.outputs[layout.TENSORBOARD]
    if "WANDB_API_KEY" not in variables:
        found["WANDB_MODE"] = "offline"
    for name, value in found.items():
        variables.setdefault(name, value)


def secret_values(config: AgentConfig, scratch: Scratch) -> dict[str, str]:
    """Return the values of ``--secret``; raise ValueError if the container lacks one."""
    if not has_secrets(config.spec, config.task_role):
        return {}
    values: Any = None
    try:
        with open(scratch.path(layout.SECRET_ENV), encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, ValueError):
        pass  # The next check reports it.
    found = values if isinstance(values, dict) else {}
    missing = [name for name in config.spec.secrets if not isinstance(found.get(name), str)]
    if missing:
        raise ValueError(
            _("The container has no value of --secret {names}: {file} was not localized.").format(
                names=", ".join(missing), file=layout.SECRET_ENV
            )
        )
    return {name: found[name] for name in config.spec.secrets}


def program_command(
    config: AgentConfig, scratch: Scratch, setup: Setup, resources: ProgramResources
) -> list[str]:
    """Return the arguments to execute: the launcher for a Python program, bash for a command.

    Several processes of the program are started by one small parent process, which reads the
    command from ``processes.json`` beside it.
    """
    shell = config.task_role.command
    if shell is not None and is_tensorboard(config.task_role):
        words = shell[len(TENSORBOARD_COMMAND) :].split()
        runtime = [sys.executable, "-I", runtime_path(), "tensorboard"]
        command = [*runtime, "--directory", scratch.root, *words]
    elif shell is not None:
        command = ["bash", "-c", _filled(shell, config, resources)]
    else:
        launcher = os.path.join(scratch.launch, "launch.py")
        arguments = [_filled(argument, config, resources) for argument in config.spec.args]
        program = config.spec.program or "main.py"
        command = [interpreter(config, scratch), launcher, program, *arguments]
    if len(setup.processes) <= 1:
        return command
    orders = os.path.join(scratch.launch, "processes.json")
    labels = process_labels(setup)
    content = {
        "command": command,
        "variables": setup.processes,
        "labels": labels,
        "failures": [scratch.path(failure_file(number)) for number in range(len(labels))],
        "consequence": frameworks.CONSEQUENCE,
    }
    with open(orders, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return [sys.executable, "-I", "-S", os.path.join(scratch.launch, _SEVERAL), orders]


def failure_file(number: int) -> str:
    """Return the name of the file in which the launcher writes the exception of a process."""
    return f"failure-{number}.json" if number else "failure.json"


def process_labels(setup: Setup) -> list[str]:
    """Return the rank of each process of the program, or its number if it has none."""
    names = ("RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK")
    return [
        next((one[name] for name in names if name in one), str(number))
        for number, one in enumerate(setup.processes)
    ]


def interpreter(config: AgentConfig, scratch: Scratch) -> str:
    """Return the job's Python: a path, or a file of the archive unpacked in this container."""
    python = config.interpreter
    return scratch.path(python) if "/" in python and not os.path.isabs(python) else python


def _filled(text: str, config: AgentConfig, resources: ProgramResources) -> str:
    """Replace ``%input_path%`` by the local path of a fetched input."""
    mark = "%input_path%"
    if mark not in text or not resources.inputs:
        return text
    given = config.spec.input_path
    same = [one.name for one in config.fetch if given and given.endswith(one.uri)]
    name = next((n for n in ("PATH", *same, *resources.inputs) if n in resources.inputs), "")
    return text.replace(mark, resources.inputs[name])


def place_launcher(config: AgentConfig, scratch: Scratch, setup: Setup) -> None:
    """Copy launcher, parameters and other files from the runtime's zip beside the program."""
    if config.spec.params:
        with open(scratch.path("params.json"), "w", encoding="utf-8") as file:
            json.dump(config.spec.params, file, indent=1)
    if len(setup.processes) > 1:
        copy_runtime_files((_SEVERAL,), scratch.launch, "launcher")
    if config.task_role.command is not None:
        return
    copy_runtime_files(_LAUNCHER, scratch.launch, "launcher")
    if setup.shims:
        shims = os.path.join(scratch.launch, "shims")
        os.makedirs(shims, 0o700, exist_ok=True)
        copy_runtime_files(setup.shims, shims, "frameworks/shims")
    if config.spec.return_names or os.path.exists(scratch.path(layout.VALUES)):
        package = os.path.join(scratch.launch, "submarine_runtime")
        values = os.path.join(package, "values")
        os.makedirs(values, 0o700, exist_ok=True)
        copy_runtime_files(("__init__.py", "lazy.py", "translation.py"), package)
        copy_runtime_files(_VALUES, values, "values")
    if config.spec.return_names:
        with open(os.path.join(scratch.launch, "return_names"), "w", encoding="utf-8") as file:
            file.write("\n".join(config.spec.return_names))
    if config.spec.return_all_ranks:
        with open(os.path.join(scratch.launch, "return_all_ranks"), "wb"):
            pass


def runtime_path() -> str:
    """Return the path of the runtime's zip, or of the directory that holds the package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(submarine_runtime.__file__)))


def copy_runtime_files(names: tuple[str, ...], directory: str, package: str = "") -> None:
    """Copy files of a package of the runtime to ``directory``."""
    loader: Any = submarine_runtime.__loader__
    source = os.path.join(os.path.dirname(submarine_runtime.__file__), package)
    for name in names:
        with open(os.path.join(directory, name), "wb") as file:
            file.write(loader.get_data(os.path.join(source, name)))
