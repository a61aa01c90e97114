"""All checks of a request that need no cluster: the program's, its imports, its environment."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.program import Program

if TYPE_CHECKING:
    from submarine_jobs.checks import Finding
    from submarine_jobs.spec import JobSpec

_SECRET = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|API_?KEY|ACCESS_?KEY"
    r"|PRIVATE_?KEY)(?:_|$)",
    re.IGNORECASE,
)

#: ``scheme://name:password@host``
_PASSWORD = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/@\s]*:[^/@\s]+@")


def check_run(spec: JobSpec, program: Program, mouth: Mouth) -> list[Finding]:
    """Findings about the program and the request, errors first."""
    found = _check_secrets(spec)
    if program.bundle is not None:
        found += _check_program(spec, program, mouth)
    return sorted(found, key=lambda item: str(item.level) != "error")


def _check_program(spec: JobSpec, program: Program, mouth: Mouth) -> list[Finding]:
    from submarine_jobs.checks import check_program, missing_imports

    if program.bundle is None:
        return []
    collection = mouth.collection if program.from_cells else None
    document = collection.document if collection is not None else None
    found = check_program(
        program.bundle,
        collection,
        document.cells if document is not None else (),
        spec.with_names,
        return_names=spec.return_names,
        history=mouth.history if program.from_cells else (),
    )
    if spec.program is not None and _asks_here(spec):
        found += missing_imports(program.bundle, spec.python, beside=program.directory)
    elif spec.program is not None and spec.backend != "local":
        found.append(_python_elsewhere(spec))
    return found


def _python_elsewhere(spec: JobSpec) -> Finding:
    """The job's Python is not on this machine, which is how it may be with a cluster's nodes."""
    from submarine_jobs.checks import Finding, Level

    return Finding(
        Level.WARNING,
        "imports-unchecked",
        f"There is no Python at {spec.python} on this machine, so imports were not checked.",
        fix="It must be there on every node.",
    )


def _asks_here(spec: JobSpec) -> bool:
    """Whether the job's Python can be asked on this machine what it can import."""
    return os.path.isabs(spec.python) and os.access(spec.python, os.X_OK)


def _check_secrets(spec: JobSpec) -> list[Finding]:
    """What would lie readable in the job directory and in the container's environment."""
    from submarine_jobs.checks import Finding, Level

    fix = "Let the program read it from a file that only you can read."
    found = [
        Finding(
            Level.ERROR,
            "secret-in-env",
            f"--env {name} looks like a secret, and the job directory would hold it readable.",
            fix=fix,
        )
        for name in spec.env
        if _SECRET.search(name)
    ]
    addresses = {
        "--input_path": spec.input_path,
        "--checkpoint_path": spec.checkpoint_path,
        "--saved_model_path": spec.saved_model_path,
        **{f"--quicklink {label}": url for label, url in spec.quicklinks.items()},
        **{f"--localization {item.target}": item.source for item in spec.localization},
    }
    found += [
        Finding(
            Level.ERROR,
            "secret-in-address",
            f"{option} has a password in it, and the job directory would hold it readable.",
            fix=fix,
        )
        for option, address in addresses.items()
        if address and _PASSWORD.match(address)
    ]
    return found
