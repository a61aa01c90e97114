"""Submit, watch and fetch jobs: the core on the notebook's side, without any notebook in it.

>>> import submarine_jobs
>>> job = submarine_jobs.run("digits", program="train.py", gpu=1, memory="4G")
>>> job.wait().state
<State.SUCCEEDED: 'SUCCEEDED'>

Importing this package is cheap: no JVM, no network, no IPython. Everything is loaded when used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from submarine_jobs.version import __version__

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_jobs.datasets import Dataset
    from submarine_runtime.protocol import JobRecord

__all__ = [
    "__version__",
    "download_published",
    "find_data",
    "find_job",
    "list_data",
    "list_jobs",
    "load",
    "open_session",
    "predict",
    "put_data",
    "run",
]

_sessions: dict[str | None, Session] = {}


def open_session(profile: str | None = None) -> Session:
    """The session of a configured profile, by default the one that ``submarine config`` shows.

    One session per profile is kept for the life of the process.

    Raises
    ------
    ConfigError
        If the configuration holds something impossible or there is no such profile.
    """
    if profile not in _sessions:
        # cost: `import submarine_jobs` loads no other module.
        from submarine_jobs.client import Session
        from submarine_jobs.config import load_config

        _sessions[profile] = Session(load_config({"profile": profile}).profile)
    return _sessions[profile]


def run(name: str, *, wait: bool = False, profile: str | None = None, **options: Any) -> Job:
    """Submit a job; the options are those of ``submarine run`` by their names.

    Parameters
    ----------
    name
        Name of the job; its id starts with it.
    wait
        Wait until the job has ended and raise JobFailedError unless it has succeeded.
    profile
        Cluster profile; None: the configured one.
    options
        ``program="train.py"``, ``memory="8G"``, ``gpu=1``, ``env={"A": "b"}``, ``timeout="2h"``,
        ``worker_launch_cmd="..."``, ... as ``submarine run --help`` lists them, with ``_`` for
        ``-``. Lists and dicts stand for repeated options.

    Raises
    ------
    UsageError
        If an option is unknown or wrong; nothing was submitted.
    RefusedError, ClusterError
        If the cluster says no, or does not answer.
    """
    # cost: `import submarine_jobs` loads no other module.
    from submarine_jobs.client import submitting

    # From the first moment: a thread that is here is waited for at the end of a headless run.
    with submitting():
        # cost: the command language with click.
        from submarine_jobs.python_api import run_from_python

        return run_from_python(open_session(profile), name, wait=wait, **options)


def predict(
    model: str | None,
    data: Any = None,
    *,
    wait: bool = False,
    profile: str | None = None,
    **options: Any,
) -> Any:
    """Apply the function ``predict`` of a program to data, as ``submarine predict`` does.

    Parameters
    ----------
    model
        ``JOB``, ``JOB@VERSION`` or a URI; None: the program needs no model.
    data
        A URI, a dataset, a pandas or Spark DataFrame, or an Arrow table; None: see ``inputs``.
    wait
        Wait until the job has ended and raise JobFailedError unless it has succeeded. A frame
        without ``output`` always waits.
    profile
        Cluster profile; None: the configured one.
    options
        ``output="hdfs:///data/scores"``, ``program="score.py"``, ``keys=["id"]``, ``worker=8``, ...
        as ``submarine predict --help`` lists them, with ``_`` for ``-``.

    Returns
    -------
    Job or frame
        The job; for a frame without ``output`` the results, as a frame of the same kind.

    Raises
    ------
    UsageError
        If an option is unknown or wrong; nothing was submitted.
    RefusedError, ClusterError
        If the cluster says no, or does not answer.
    """
    # cost: `import submarine_jobs` loads no other module.
    from submarine_jobs.client import submitting

    with submitting():
        # cost: the command language with click.
        from submarine_jobs.python_api import predict_from_python

        return predict_from_python(open_session(profile), model, data, wait=wait, **options)


def find_job(text: str, *, profile: str | None = None) -> Job:
    """Find a job by id, unique beginning of one, name (the newest) or ``last``."""
    return open_session(profile).job(text)


def list_jobs(limit: int = 100, *, profile: str | None = None) -> list[JobRecord]:
    """Records of your jobs, newest first."""
    return open_session(profile).jobs(limit)


def put_data(
    name: str,
    value: object,
    *,
    replace: bool = False,
    profile: str | None = None,
    backend: str | None = None,
) -> Dataset:
    """Store data in the job root under a name; the same content is uploaded once.

    Parameters
    ----------
    name
        Name of the dataset: ``inputs={"train": "data:NAME"}`` gives it to a job.
    value
        pandas or Spark DataFrame, Arrow table, NumPy array, dict of arrays, path, or list of paths.
    replace
        Give the name to this data even if it belongs to other data.
    profile, backend
        The cluster; None: the configured one.

    Returns
    -------
    Dataset
        With ``uri``, ``digest``, ``size`` (bytes), ``rows`` and ``schema``.

    Raises
    ------
    UsageError
        If the value cannot be stored, or the name belongs to other data.
    """
    return open_session(profile).put_data(name, value, replaces=replace, backend=backend)


def find_data(name: str, *, profile: str | None = None, backend: str | None = None) -> Dataset:
    """Find a dataset by its name, or by the beginning of its digest."""
    return open_session(profile).datasets(backend).find(name)


def list_data(*, profile: str | None = None, backend: str | None = None) -> list[Dataset]:
    """Your named datasets, sorted by name."""
    return open_session(profile).datasets(backend).names()


def load(job: Job | str, version: str = "", *, profile: str | None = None) -> Any:
    """Load a saved version of a job's model, or its final model, with its framework.

    Parameters
    ----------
    job
        A job, or an id, the beginning of one, a name or ``last``.
    version
        Name of the saved version; empty: the final model of an ended job.
    """
    return (find_job(job, profile=profile) if isinstance(job, str) else job).load_model(version)


def download_published(
    uri: str,
    target: str,
    *,
    alias: str = "",
    profile: str | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Copy a published model to a new directory, check its digests, and return its manifest.

    Parameters
    ----------
    uri
        The version, ``hdfs:///models/digits/7``; with an alias, the model.
    """
    session = open_session(profile)
    return session.download_published(uri, target, alias=alias, backend=backend)
