"""The model of ``predict``: a job, a version of its model, or a URI, as an input of the job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from submarine_jobs.commands.grammar import confirm_foreign
from submarine_jobs.errors import UsageError
from submarine_jobs.model import NamedInput
from submarine_jobs.storage import LocalStorage, Storage
from submarine_jobs.trained_models import model_source, published_version
from submarine_runtime.snapshots import NAME
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Session
    from submarine_jobs.frontends import Frontend

#: Name of the input: the program finds the model in SUBMARINE_INPUT_MODEL.
MODEL = "MODEL"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|/|file:")


def is_uri(text: str) -> bool:
    """Return whether a model is a URI or an absolute path, not a job."""
    return _URI.match(text) is not None


def model_input(text: str, session: Session, frontend: Frontend, *, yes: bool) -> NamedInput | None:
    """Return the model as an input; None if the user declines to use one of another user.

    Parameters
    ----------
    text
        ``JOB``, ``JOB@VERSION``, or a URI; ``URI@ALIAS`` names a version by an alias.
    yes
        Use a job of another user without a question.

    Raises
    ------
    UsageError
        If there is no such job, version or model.
    """
    name, mark, version = text.rpartition("@")
    named = bool(mark) and NAME.match(version) is not None
    if is_uri(text):
        if named and "/" in name.partition("://")[2].strip("/") and not text.startswith("hf://"):
            storage, _root = session.backend().job_root()
            return NamedInput(MODEL, published_version(storage, name, version))
        return NamedInput(MODEL, text.rstrip("/"))
    if not named:
        name, version = text, ""
    job = session.job(name)
    why = _("what your program loads of its model may run their code")
    if not confirm_foreign(job, frontend, _("Use"), why, yes=yes, option="--force", runs_code=True):
        return None
    source, directory = model_source(job, version), job.directory
    return NamedInput(MODEL, uri_in_job(directory.storage, directory.file(source.folder)))


def uri_in_job(storage: Storage, path: str) -> str:
    """Return the URI by which a program finds a path of the file system of the jobs."""
    return path if isinstance(storage, LocalStorage) else storage.url(path)


def with_scheme(uri: str, storage: Storage) -> str:
    """Return a URI that the program reads itself: a path is in the file system of the jobs."""
    mark = "@" if uri.startswith("@") else ""
    uri = uri.removeprefix("@")
    path = None if ":" in uri.split("/")[0] else storage.path_of(uri)
    return mark + (uri if path is None else uri_in_job(storage, path))


def check_name(name: str) -> None:
    """Refuse an input of data with the name of the model's input."""
    if name == MODEL:
        raise UsageError(
            _("--input {name} is the name of the model's input.").format(name=name),
            _("Choose another name."),
        )
