"""Parse ``--python-env``.

``host``: the kernel's interpreter, which is also on the nodes. ``path:DIR``: an environment on
every node. ``auto``: the kernel's environment, packed and uploaded. ``conda:NAME``: a conda
environment of this machine, packed. ``requirements:FILE``, ``uv:LOCK`` and
``pyproject[:DIRECTORY]``: an environment that is built from that file. ``archive:URI``: an archive
that contains ``bin/python3``. ``shared:URI``: such an archive, unpacked once on each node for all
users. ``docker:IMAGE``: ``python3`` of the image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _

#: Kinds that are built from a file on this machine.
BUILT_KINDS = ("requirements", "uv", "pyproject")
ENVIRONMENT_KINDS = ("auto", "host", "path", "conda", *BUILT_KINDS, "archive", "shared", "docker")
#: Kinds that need no value.
PLAIN_KINDS = ("auto", "host", "pyproject")
_PACKED_KINDS = ("auto", "archive", "shared", "conda", *BUILT_KINDS)
#: Archive formats that the agent can unpack; YARN does so for jobs of Spark.
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip", ".jar")
#: The interpreter of an unpacked archive in a container.
INTERPRETER = f"{layout.PYTHON_ENV}/bin/python3"
_CONDA_NAME = re.compile(r"^[A-Za-z0-9_][\w.-]{0,99}\Z")
_IMAGE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}\Z")


@dataclass(frozen=True)
class PythonEnv:
    """Value of ``--python-env``: its kind and the directory, URI or image."""

    kind: str
    value: str = ""

    @property
    def text(self) -> str:
        """The value as it is written."""
        return f"{self.kind}:{self.value}" if self.value else self.kind

    @property
    def packed(self) -> bool:
        """Whether the containers get an archive."""
        return self.kind in _PACKED_KINDS

    def interpreter(self, host_python: str) -> str:
        """Return the interpreter in the container: an absolute path, or relative to its directory.

        Parameters
        ----------
        host_python
            The kernel's interpreter, for ``host``.
        """
        if self.kind == "path":
            # Debian's own Python has no bin/python; every environment has a bin/python3.
            return f"{self.value.rstrip('/')}/bin/python3"
        if self.kind == "docker":
            return "python3"
        return INTERPRETER if self.packed else host_python


@dataclass(frozen=True)
class PackedEnvironment:
    """The files of a packed environment on the cluster, as URLs.

    Parameters
    ----------
    archive
        The archive, or the base of ``delta``.
    delta
        Archive of the files that differ from the base; empty: there is none.
    description
        Their digests; empty for an archive that the user has put on the cluster.
    shared
        Whether YARN unpacks the archive, once on each node for all users.
    """

    archive: str
    delta: str = ""
    description: str = ""
    shared: bool = False

    @property
    def archives(self) -> tuple[str, ...]:
        """The archives."""
        return (self.archive, self.delta) if self.delta else (self.archive,)

    @property
    def urls(self) -> tuple[str, ...]:
        """All files."""
        return (*self.archives, self.description) if self.description else self.archives


def parse_python_env(text: str) -> PythonEnv:
    """Parse ``--python-env TEXT``.

    Raises
    ------
    UsageError
        If the text has none of the forms, or its value is invalid.
    """
    if text in PLAIN_KINDS:
        return PythonEnv(text)
    kind, colon, value = text.partition(":")
    checks = {
        "path": _check_path,
        "conda": _check_conda,
        "requirements": _check_requirements,
        "uv": _check_lock,
        "pyproject": _check_directory,
        "archive": _check_archive,
        "shared": _check_shared,
        "docker": _check_image,
    }
    if not colon or kind not in checks:
        raise UsageError(
            _("--python-env {text} is not known.").format(text=text[:80]),
            _(
                "Use auto (pack this kernel's environment), host (this interpreter, on every "
                "node already), path:DIR, conda:NAME, requirements:FILE, uv:LOCK, "
                "pyproject[:DIR], archive:URI, shared:URI or docker:IMAGE."
            ),
        )
    checks[kind](value)
    return PythonEnv(kind, value)


def _check_path(value: str) -> None:
    if not value.startswith("/") or "\0" in value:
        raise UsageError(
            _("--python-env path:{path} is not an absolute path.").format(path=value[:80]),
            _("Name the environment's directory on the nodes, for example path:/opt/env."),
        )


def _check_conda(value: str) -> None:
    if not _CONDA_NAME.fullmatch(value) and not (value.startswith("/") and value.isprintable()):
        raise UsageError(
            _("--python-env conda:{name} is not a conda environment.").format(
                name=one_line(value, 80)
            ),
            _("Give its name, as `conda env list` shows it, or its absolute path."),
        )


def _check_requirements(value: str) -> None:
    if not value.endswith((".txt", ".in")) or not value.isprintable():
        raise UsageError(
            _("--python-env requirements:{path} is not a requirements file.").format(
                path=one_line(value, 80)
            ),
            _("Give a file that ends in .txt or .in, as for `pip install -r`."),
        )


def _check_lock(value: str) -> None:
    if value.rpartition("/")[2] != "uv.lock" or not value.isprintable():
        raise UsageError(
            _("--python-env uv:{path} is not a lock file of uv.").format(path=one_line(value, 80)),
            _("Give the uv.lock of a project, for example uv:uv.lock."),
        )


def _check_directory(value: str) -> None:
    if not value or not value.isprintable():
        raise UsageError(
            _("--python-env pyproject:{path} is not a directory.").format(path=one_line(value, 80)),
            _("Give the directory that has pyproject.toml, or pyproject alone."),
        )


def _check_archive(value: str) -> None:
    if not value.endswith(ARCHIVE_SUFFIXES) or not value.isprintable():
        raise UsageError(
            _("--python-env archive:{uri} is not an archive that can be unpacked.").format(
                uri=value[:80]
            ),
            _("Give a file that ends in {suffixes} and holds bin/python3.").format(
                suffixes=", ".join(ARCHIVE_SUFFIXES)
            ),
        )


def _check_shared(value: str) -> None:
    if not value.endswith(ARCHIVE_SUFFIXES) or "://" not in value or not value.isprintable():
        raise UsageError(
            _("--python-env shared:{uri} is not an archive on the cluster.").format(
                uri=one_line(value, 80)
            ),
            _("Give the URI of `submarine env publish`, such as hdfs:///envs/torch.tar.gz."),
        )


def check_image_name(value: str, option: str = "--docker_image ") -> str:
    """Return ``value`` if it is a valid image name.

    The name becomes a variable of YARN's launch script, in double quotes of a shell.

    Raises
    ------
    UsageError
        If it is not a valid image name.
    """
    if not _IMAGE.fullmatch(value):
        raise UsageError(
            _("{option}{image} is not the name of an image.").format(
                option=option, image=one_line(value, 80)
            ),
            _("Write for example {option}registry.example/ml/tensorflow:2.16.").format(
                option=option
            ),
        )
    return value


def _check_image(value: str) -> None:
    check_image_name(value, "--python-env docker:")
