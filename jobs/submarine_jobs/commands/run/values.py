"""Send the values of ``--with``: small ones in values.zip, large frames once as Parquet."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs.checks import lacks_module
from submarine_jobs.datasets import is_exact_candidate, stage_exact_frame
from submarine_jobs.frontends import Frontend, SubmitProgress
from submarine_jobs.model import BUILT_KINDS, FRAME_INPUT, NamedInput, parse_python_env
from submarine_jobs.outputs import send_values
from submarine_jobs.text import size
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.datasets import DatasetStore, StagedContent
    from submarine_jobs.model import JobSpec

#: What the program needs to read a frame that is stored as Parquet.
_MODULES = {"pandas": ("pandas", "pyarrow"), "arrow": ("pyarrow",)}


def pack_values(
    spec: JobSpec, frontend: Frontend, store: Callable[[], DatasetStore]
) -> tuple[JobSpec, bytes | None]:
    """Pack the values of ``--with`` and upload large frames, unless the cluster has them.

    Returns
    -------
    tuple
        The spec with an input for each uploaded frame, and the content of values.zip or None.

    Raises
    ------
    UsageError
        If a variable is missing, or cannot be sent.
    """
    if not spec.with_names:
        return spec, None
    candidates = _candidates(spec, frontend)
    if not candidates:
        return spec, frontend.packed_values(spec.with_names)
    with tempfile.TemporaryDirectory(prefix="submarine-with-") as scratch:
        staged: dict[str, StagedContent] = {}
        for name, value in candidates.items():
            folder = Path(scratch, name)
            folder.mkdir()
            exact = stage_exact_frame(value, folder)
            if exact is not None:
                staged[name] = exact
        inputs = {name: f"{FRAME_INPUT}{number}" for number, name in enumerate(staged)}
        data = _packed(spec, frontend, {n: (inputs[n], s.source) for n, s in staged.items()})
        if not staged:
            return spec, data
        datasets = store()
        added = []
        for name, content in staged.items():
            with SubmitProgress(frontend) as line:
                step = _("Uploading {name}").format(name=name)
                result = datasets.put(None, content, _shown(line, step))
            if result.uploaded:
                frontend.say(
                    _("{name} is stored once as Parquet, {size}, in {uri}.").format(
                        name=name, size=size(result.uploaded), uri=result.dataset.uri
                    )
                )
            added.append(NamedInput(inputs[name], result.dataset.uri))
    return replace(spec, inputs=(*spec.inputs, *added)), data


def check_values(spec: JobSpec, frontend: Frontend) -> None:
    """Raise the error of ``pack_values`` for a dry run, which uploads nothing."""
    if spec.with_names:
        candidates = _candidates(spec, frontend)
        _packed(spec, frontend, dict.fromkeys(candidates, (FRAME_INPUT, "pandas")))


def _packed(spec: JobSpec, frontend: Frontend, stored: dict[str, tuple[str, str]]) -> bytes:
    if not stored or frontend.namespace is None:
        return frontend.packed_values(spec.with_names)
    others = [name for name in spec.with_names if name not in stored]
    return send_values(others, frontend.namespace, stored=stored)


def _candidates(spec: JobSpec, frontend: Frontend) -> dict[str, Any]:
    """Return the values that may be stored as Parquet, if each task's Python can read them."""
    # A front end without variables here, such as Zeppelin's, packs values in another process.
    variables = frontend.namespace or {}
    found = {
        name: variables[name]
        for name in spec.with_names
        if name in variables and is_exact_candidate(variables[name])
    }
    readable: dict[str, bool] = {}
    for name, value in list(found.items()):
        kind = "pandas" if type(value).__module__.startswith("pandas") else "arrow"
        if kind not in readable:
            readable[kind] = _can_read(spec, _MODULES[kind])
        if not readable[kind]:
            del found[name]
    return found


def _can_read(spec: JobSpec, modules: tuple[str, ...]) -> bool:
    """Return whether each Python that runs the program certainly has these modules."""
    pythons = set()
    for role in spec.roles:
        if role.command is not None:
            continue
        env = role.python_env or spec.python_env
        kind = parse_python_env(env).kind
        if kind in ("archive", "shared", "conda", "docker", *BUILT_KINDS):
            return False
        # This environment is packed.
        pythons.add(sys.executable if kind == "auto" else role.python or spec.python)
    return all(
        os.path.isabs(python)
        and os.access(python, os.X_OK)
        and not any(lacks_module(python, module) for module in modules)
        for python in pythons
    )


def _shown(line: SubmitProgress, step: str) -> Callable[[int, int], None]:
    return lambda done, total: line.show(step, done, total)
