"""Validate a request against the cluster and its file system, for submit and dry run.

``validate`` changes nothing. ``probe_job_root``, used by the dry run only, writes and removes
files to detect a quota or safe mode; a submission detects them when it uploads the job's files.
"""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from submarine_jobs.backends import Backend, Plan
from submarine_jobs.environments import check_env
from submarine_jobs.errors import (
    AclsDisabledError,
    RefusedError,
    StorageError,
    SubmarineError,
    UsageError,
)
from submarine_jobs.inputs import (
    NO_STORE_PATHS,
    StorePaths,
    check_sources,
    resolve_store_paths,
    with_commits,
)
from submarine_jobs.model import JobSpec, fill_spec, parse_python_env, resolve_roles
from submarine_jobs.storage import Storage, check_job_root
from submarine_jobs.submit.program_secrets import read_keytab, read_secrets
from submarine_jobs.submit.site_limits import site_refusals
from submarine_runtime.protocol.layout import TEMPORARY_PREFIX
from submarine_runtime.translation import _

#: Approximate number of files and directories of a submission; an HDFS quota counts both.
_NAMES = 12


@dataclass(frozen=True)
class Validated:
    """A validated request with the reasons for which a submission would be refused, in order.

    Parameters
    ----------
    spec
        With the roles that the framework adds, and placeholders filled in.
    plan
        The plan of the backend; its ``errors`` are one of the refusals.
    reached
        The inputs of the job; empty if they were refused.
    secrets
        The values of ``--secret``; empty if one is missing.
    keytab
        Content of the keytab of ``--distribute_keytab``; None: it is not sent.
    shared
        Whether the job directory gets ACLs for ``--share``: the file system keeps some.
    """

    spec: JobSpec
    plan: Plan
    reached: StorePaths
    refusals: tuple[SubmarineError, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    keytab: bytes | None = field(default=None, repr=False)
    shared: bool = False


def validate(
    backend: Backend, spec: JobSpec, *, has_bundle: bool, plan: Plan | None = None
) -> Validated:
    """Check ``spec`` before anything is created.

    Parameters
    ----------
    has_bundle
        Whether the request has a program.
    plan
        The plan of the backend for ``spec``, if the caller has it.

    Raises
    ------
    ClusterError
        If the cluster does not answer the request for the plan.
    """
    spec = resolve_roles(spec)
    plan = plan or backend.plan(spec)
    refusals: list[SubmarineError] = []
    if plan.errors:
        refusals.append(RefusedError(" ".join(plan.errors), _("Nothing was submitted.")))
    queue = spec.queue or plan.extra.get("queue")
    refusals += site_refusals(spec, backend.profile.name, queue)
    if not has_bundle and any(role.command is None for role in spec.roles):
        refusals.append(
            UsageError(
                _("There is neither a program nor a --worker_launch_cmd to run."),
                _("Collect cells with %%submarine, name a FILE.py, or give --worker_launch_cmd."),
            )
        )
    try:
        spec = fill_spec(spec)
    except UsageError as error:
        refusals.append(error)
    reached, shared = NO_STORE_PATHS, False
    try:
        storage, root = backend.job_root()
        check_job_root(storage, root)
        shared = bool(spec.share) and _may_share(backend, storage)
        reached = resolve_store_paths(spec, storage, root, backend)
        spec = with_commits(spec, reached)
    except SubmarineError as error:
        refusals.append(error)
    else:
        checks: tuple[Callable[[], None], ...] = (
            lambda: _check_environments(spec, storage),
            lambda: check_sources(spec, storage),
        )
        for check in checks:
            try:
                check()
            except SubmarineError as error:
                refusals.append(error)
    values: Mapping[str, str] = {}
    keytab: bytes | None = None
    try:
        values = read_secrets(spec)
        keytab = read_keytab(spec, backend.profile)
    except UsageError as error:
        refusals.append(error)
    return Validated(spec, plan, reached, tuple(refusals), values, keytab, shared)


def probe_job_root(backend: Backend) -> SubmarineError | None:
    """Return the error that prevents a submission from writing its files, or None.

    Create and remove as many names as a submission needs, in the nearest existing parent directory
    of the job root.
    """
    try:
        storage, root = backend.job_root()
        there = root
        while there != "/" and storage.stat(there) is None:
            there = posixpath.dirname(there)
        top = f"{there.rstrip('/')}/{TEMPORARY_PREFIX}dry-run-{secrets.token_hex(6)}"
        try:
            storage.publish(top + "/n" * _NAMES, b"dry run")
        finally:
            with suppress(StorageError):
                storage.delete(top, recursive=True)
    except SubmarineError as error:
        return error
    return None


def _may_share(backend: Backend, storage: Storage) -> bool:
    """Return whether the file system keeps ACLs.

    Raises
    ------
    UsageError
        If the backend cannot share jobs.
    """
    if not backend.shares:
        raise UsageError(
            _("--share needs a cluster with users: --backend {name} cannot share jobs.").format(
                name=backend.name
            ),
            _("Leave --share out, or choose another backend."),
        )
    try:
        storage.acl("/")
    except AclsDisabledError:
        return False
    return True


def _check_environments(spec: JobSpec, storage: Storage) -> None:
    if spec.backend == "local":
        return
    for text in dict.fromkeys(role.python_env or spec.python_env for role in spec.roles):
        check_env(parse_python_env(text), storage)
