"""Check a request without the cluster: program, imports, environment, secrets."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from submarine_jobs.checks import (
    Finding,
    Level,
    check_calls,
    check_program,
    lacks_module,
    missing_imports,
    project_version,
    python_builtins,
)
from submarine_jobs.commands.run.program import Program
from submarine_jobs.frontends import Frontend
from submarine_jobs.inputs import REMOTE, localized_entries, scheme_of, without_user
from submarine_jobs.model import is_tensorboard, parse_python_env
from submarine_jobs.submit import readable_secret_files
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.model import JobSpec

_SECRET = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|API_?KEY|ACCESS_?KEY"
    r"|PRIVATE_?KEY)(?:_|$)",
    re.IGNORECASE,
)

#: ``scheme://name:password@host``
_PASSWORD = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/@\s]*:[^/@\s]+@")


def check_run(spec: JobSpec, program: Program, frontend: Frontend) -> list[Finding]:
    """Return the findings on the program and the request, errors first."""
    found = [
        *_check_secrets(spec),
        *_check_tensorboard(spec),
        *_check_shards(spec),
        *_check_remote_inputs(spec),
        *_check_streams(spec),
    ]
    if program.bundle is not None:
        found += _check_program(spec, program, frontend)
        found += _check_packages(spec, program)
    return sorted(found, key=lambda item: str(item.level) != "error")


def _check_packages(spec: JobSpec, program: Program) -> list[Finding]:
    """Check that the Python of each role has the packages that the program needs."""
    return [
        Finding(
            Level.ERROR,
            "missing-package",
            _("{python} does not have {module}, which the program needs.").format(
                python=python, module=module
            ),
            fix=_(
                "Install {module} there, or choose another environment with --python-env."
            ).format(module=module),
        )
        for python in _interpreters(spec)
        for module in program.packages
        if _is_executable(python) and lacks_module(python, module)
    ]


def _check_tensorboard(spec: JobSpec) -> list[Finding]:
    """Check that the Python of the TensorBoard role has TensorBoard."""
    roles = [role for role in spec.roles if is_tensorboard(role)]
    python_env = roles[0].python_env or spec.python_env if roles else "host"
    python = roles[0].python or spec.python if roles else ""
    python = sys.executable if python_env == "auto" else python
    if not roles or not _is_executable(python) or not lacks_module(python, "tensorboard"):
        return []
    return [
        Finding(
            Level.ERROR,
            "missing-tensorboard",
            _("--tensorboard: {python} does not have TensorBoard.").format(python=python),
            fix=_("Install tensorboard there, or choose another environment with --python-env."),
        )
    ]


def _check_streams(spec: JobSpec) -> list[Finding]:
    """Check that the job's Python has pyarrow for streams of Arrow frames."""
    return [
        Finding(
            Level.ERROR,
            "missing-pyarrow",
            _("--input {name}: {python} does not have pyarrow, which frame=arrow needs.").format(
                name=item.name, python=python
            ),
            fix=_("Install pyarrow in the job's environment, or leave frame=arrow out."),
        )
        for item in spec.inputs
        if "frame=arrow" in item.options
        for python in sorted(_pythons(spec))
        if _is_executable(python) and lacks_module(python, "pyarrow")
    ]


def _pythons(spec: JobSpec) -> set[str]:
    """Return the interpreters of the job's programs."""
    return {
        sys.executable
        if (role.python_env or spec.python_env) == "auto"
        else role.python or spec.python
        for role in spec.roles
        if not is_tensorboard(role)
    }


def _check_remote_inputs(spec: JobSpec) -> list[Finding]:
    """Check that the job's Python has fsspec and its implementation for remote inputs."""
    found = []
    pythons = _pythons(spec)
    for item in spec.inputs:
        module = REMOTE.get(scheme_of(item.uri))
        if module is None or item.mode == "mount":
            continue
        for python in sorted(pythons):
            missing = [
                name
                for name in ("fsspec", module)
                if _is_executable(python) and lacks_module(python, name)
            ]
            if missing:
                found.append(
                    Finding(
                        Level.ERROR,
                        "missing-fsspec",
                        _("--input {name}: {python} does not have {modules} to read {uri}.").format(
                            name=item.name,
                            python=python,
                            modules=", ".join(missing),
                            uri=without_user(item.uri)[:120],
                        ),
                        fix=_(
                            "Install {modules} in the job's environment, or use :mount if the "
                            "program has its own reader."
                        ).format(modules=" ".join(missing)),
                    )
                )
    return found


def _check_shards(spec: JobSpec) -> list[Finding]:
    """Warn about shards for a chief that may not train, with parameter servers and a command."""
    names = {role.name for role in spec.roles}
    if spec.framework != "auto" or not names & {"ps"} or not names & {"chief", "master"}:
        return []
    return [
        Finding(
            Level.WARNING,
            "shard-chief",
            _(
                "--input {name}: the chief gets a share of the files; whether it trains "
                "cannot be seen from a command with parameter servers."
            ).format(name=item.name),
            fix=_("Write :shard=worker if it only directs, or --framework tensorflow."),
        )
        for item in spec.inputs
        if item.shard and not item.shard_roles
    ]


def _check_program(spec: JobSpec, program: Program, frontend: Frontend) -> list[Finding]:
    if program.bundle is None:
        return []
    interpreters = _interpreters(spec)
    local = [python for python in interpreters if _is_executable(python)]
    known = [python_builtins(python) for python in local or [sys.executable]]
    collection = frontend.collection if program.from_cells else None
    document = collection.document if collection is not None else None
    found = check_program(
        program.bundle,
        collection,
        document.cells if document is not None else (),
        spec.with_names,
        return_names=spec.return_names,
        history=frontend.history if program.from_cells else (),
        builtins=frozenset.intersection(*known),
    )
    if spec.program is None:
        return found
    found += check_calls(
        program.bundle,
        {item.file for item in found if item.code == "syntax"},
        directory=program.directory,
        localized=[item.target for item in localized_entries(spec)],
        keras=lambda: _keras_version(spec, local),
    )
    given = {item.target.split("/")[0].removesuffix(".py") for item in localized_entries(spec)}
    if spec.spark is not None:
        given |= {"pyspark", "py4j"}  # Spark brings them to its containers.
    for python, python_env in interpreters.items():
        if python in local:
            missing = missing_imports(program.bundle, python, beside=program.directory, given=given)
            found += [item for item in missing if item not in found]
        elif spec.backend != "local":
            found.append(_python_elsewhere(python, python_env))
    return found


def _keras_version(spec: JobSpec, interpreters: list[str]) -> int | None:
    """Return the major version of the Keras that TensorFlow uses; None if unknown."""
    environments = [spec.env, *(role.env for role in spec.roles)]
    if any(env.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true") for env in environments):
        return 2
    versions = [version for python in interpreters if (version := project_version(python, "keras"))]
    return max((int(version.split(".")[0]) for version in versions), default=None)


def _interpreters(spec: JobSpec) -> dict[str, str]:
    """Return the interpreters that will run the program, each with its ``--python-env``."""
    found: dict[str, str] = {}
    for role in spec.roles:
        if role.command is not None:
            continue
        python_env = role.python_env or spec.python_env
        # This environment is packed, so the container will have the same packages.
        python = sys.executable if python_env == "auto" else role.python or spec.python
        found.setdefault(python, python_env)
    return found


def _python_elsewhere(python: str, python_env: str) -> Finding:
    """Return the finding for a Python that is not on this machine."""
    kind = parse_python_env(python_env).kind
    if kind != "path" and kind != "host":
        return Finding(
            Level.NOTE,
            "imports-unchecked",
            _("The job's Python comes with its image, so imports were not checked.")
            if kind == "docker"
            else _("The job's Python comes with its archive, so imports were not checked."),
        )
    return Finding(
        Level.WARNING,
        "imports-unchecked",
        _("There is no Python at {python} on this machine, so imports were not checked.").format(
            python=python
        ),
        fix=_("It must be there on every node."),
    )


def _is_executable(python: str) -> bool:
    """Return whether the job's Python can run on this machine, to check its imports."""
    return os.path.isabs(python) and os.access(python, os.X_OK)


def _check_secrets(spec: JobSpec) -> list[Finding]:
    """Return errors for secrets that would be readable in the job directory, and warnings."""
    fix = _("Let the program read it from a file that only you can read.")
    found = [
        Finding(Level.WARNING, "secret-file-mode", text) for text in readable_secret_files(spec)
    ]
    found += [
        Finding(
            Level.ERROR,
            "secret-in-env",
            _(
                "--env {name} looks like a secret, and the job directory would hold it readable."
            ).format(name=name),
            fix=_("Write --secret {name} or --secret {name}=FILE.").format(name=name),
        )
        for name in dict.fromkeys((*spec.env, *(name for role in spec.roles for name in role.env)))
        if _SECRET.search(name)
    ]
    addresses = {
        "--input_path": spec.input_path,
        "--checkpoint_path": spec.checkpoint_path,
        "--saved_model_path": spec.saved_model_path,
        **{f"--quicklink {label}": url for label, url in spec.quicklinks.items()},
        **{f"--localization {item.target}": item.source for item in spec.localization},
        **{f"--archive {item.target}": item.source for item in spec.archives},
        **{f"--input {item.name}": item.uri.removeprefix("@") for item in spec.inputs},
        **{f"--save-output {item.name}": item.uri for item in spec.outputs},
    }
    found += [
        Finding(
            Level.ERROR,
            "secret-in-address",
            _(
                "{option} has a password in it, and the job directory would hold it readable."
            ).format(option=option),
            fix=fix,
        )
        for option, address in addresses.items()
        if address and _PASSWORD.match(address)
    ]
    return found
