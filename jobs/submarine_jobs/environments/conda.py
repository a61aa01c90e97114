"""Pack the conda environment of the kernel with conda-pack, which relocates conda packages.

The archive works without ``conda-unpack``, because jobs cannot write to a directory that the
NodeManager shares between them.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

#: Variables with the directory of conda or micromamba, which has the one of environments.
_ROOTS = ("MAMBA_ROOT_PREFIX", "CONDA_ROOT", "CONDA_PREFIX_1", "CONDA_PREFIX")


def in_conda(prefix: str | None = None) -> bool:
    """Return whether this interpreter belongs to a conda environment."""
    return (Path(prefix or sys.prefix) / "conda-meta" / "history").is_file()


def conda_prefix(name: str) -> Path:
    """Return the directory of the conda environment of that name or path.

    Raises
    ------
    UsageError
        If there is none.
    """
    candidates = [Path(name)] if name.startswith("/") else list(_named(name))
    for path in candidates:
        if in_conda(str(path)):
            return path
    raise UsageError(
        _("--python-env conda:{name}: there is no such conda environment on this machine.").format(
            name=name
        ),
        _("`conda env list` shows them; give the name or the absolute path of one."),
    )


def _named(name: str) -> Iterator[Path]:
    """Yield where conda, mamba and micromamba would have an environment of that name."""
    variables = ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS")
    folders = [part for key in variables for part in os.environ.get(key, "").split(os.pathsep)]
    folders += [f"{os.environ[key]}/envs" for key in _ROOTS if os.environ.get(key)]
    folders.append("~/.conda/envs")
    for folder in filter(None, folders):
        yield Path(folder).expanduser() / name
    # conda writes the path of each environment that it creates here.
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("~/.conda/environments.txt").expanduser().read_text().splitlines():
            path = Path(line.strip())
            if path.name == name and path.is_absolute():
                yield path
    if name == "base" and os.environ.get("CONDA_EXE"):
        yield Path(os.environ["CONDA_EXE"]).parent.parent


def conda_fingerprint(prefix: str | None = None) -> str:
    """Return a digest of the packages of conda and pip; it changes with every installation.

    conda lists its packages in ``conda-meta``; those of pip are in ``site-packages``.
    """
    root = Path(prefix or sys.prefix)
    digest = hashlib.sha256(b"conda environment 1\n")
    notes = sorted(root.glob("conda-meta/*.json"))
    notes += sorted(root.glob("lib/python3*/site-packages/*.dist-info/RECORD"))
    for path in notes:
        info = path.stat()
        digest.update(f"{path.relative_to(root)}\0{info.st_size}\0{info.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def conda_pack() -> Any:
    """Import conda-pack.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    try:
        # cost: conda-pack, which only conda environments have.
        import conda_pack as packer  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise UsageError(
            _("--python-env packs a conda environment with conda-pack, which is not installed."),
            _(
                "Install it in this environment: conda install conda-pack (or pip install "
                "conda-pack)."
            ),
        ) from None
    return packer


def pack_conda(target: Path, prefix: str | None = None) -> None:
    """Write the archive of the conda environment to ``target`` (``.tar.gz``).

    Raises
    ------
    UsageError
        If conda-pack is missing or cannot pack this environment; the sentence is its own.
    """
    packer = conda_pack()
    try:
        packer.pack(
            prefix=prefix or sys.prefix,
            output=str(target),
            format="tar.gz",
            compress_level=1,
            n_threads=-1,
            force=True,
            ignore_editable_packages=True,
        )
    except packer.CondaPackException as exc:
        first = (str(exc).strip().splitlines() or [_("it gave no reason")])[0]
        raise UsageError(
            _("conda-pack cannot pack this environment: {reason}").format(reason=first[:300])
        ) from exc
