"""Publish a job and its model to an MLflow server by its REST interface.

The job becomes a run, found again by its tag, with parameters, metrics and the lineage as tags. The
files of the model go into the server's own store, and a version of the registered model names them.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from submarine_jobs.errors import ClusterError, RefusedError, UsageError
from submarine_jobs.outputs import read_event_scalars, read_metrics
from submarine_jobs.trained_models.lineage import read_lineage
from submarine_jobs.trained_models.publishing import Published
from submarine_jobs.trained_models.source import ModelSource
from submarine_runtime.protocol import State
from submarine_runtime.snapshots import digest_of
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

ALLOWED_SCHEMES = "MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES"
_TIMEOUT = 60.0
_MAX_ANSWER = 16 << 20
#: Limits of one request of the server.
_BATCH, _MAX_PARAMS, _MAX_TEXT = 500, 100, 5000
_JOB, _VERSION, _DIGEST = "submarine.job", "submarine.version", "submarine.digest"
_LOGGED = "submarine.logged"


def publish_to_mlflow(
    job: JobHandle,
    source: ModelSource,
    uri: str = "",
    *,
    name: str = "",
    aliases: Sequence[str] = (),
) -> Published:
    """Log a job as a run and register its model.

    Parameters
    ----------
    uri
        Address of the server; empty: ``MLFLOW_TRACKING_URI``.
    name
        Name of the registered model; empty: the name of the job.

    Raises
    ------
    UsageError
        If no usable address is given.
    RefusedError
        If the server refuses a request.
    ClusterError
        If it cannot be reached.
    """
    server = Server(uri or os.environ.get("MLFLOW_TRACKING_URI", ""))
    experiment = _experiment(server, os.environ.get("MLFLOW_EXPERIMENT_NAME") or "submarine")
    lineage = read_lineage(job, source.version)
    run, created = _run(server, experiment, job, lineage)
    _log(server, run, job, lineage)
    files = [{"path": path, "sha256": sha256} for path, sha256 in source.hashes()]
    digest = digest_of(files)
    name = name or job.name
    version = _find_version(server, name, run["info"]["run_id"], digest)
    already = version is not None and not created
    if version is None:
        version = _register(server, run["info"], job, source, name, digest)
    for alias in aliases:
        value = {"name": name, "alias": alias, "version": version["version"]}
        server.call("POST", "registered-models/alias", value)
    run_id, number = str(run["info"]["run_id"]), str(version["version"])
    details = {"run_id": run_id, "model": name, "model_version": number}
    total = sum(source.files.values())
    url = f"{server.uri}/#/models/{quote(name, safe='')}/versions/{number}"
    return Published(url, digest, total, len(files), tuple(aliases), already, details)


class Server:
    """A client of one MLflow server.

    The credentials of the environment are sent to this server only: a redirect to another address
    is refused.
    """

    def __init__(self, uri: str) -> None:
        self.uri = _checked(uri)
        certificates = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
        try:
            context = ssl.create_default_context(cafile=certificates or None)
        except OSError as exc:
            raise UsageError(
                _("MLFLOW_TRACKING_SERVER_CERT_PATH cannot be read: {error}.").format(
                    error=exc.strerror or exc
                )
            ) from exc
        self._open = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _SameServer(self.uri)
        ).open

    def call(self, method: str, path: str, value: Mapping[str, Any] | None = None) -> Any:
        """Send a request of the tracking interface and return its answer.

        Raises
        ------
        RefusedError
            If the server refuses it; ``code`` is in the message.
        """
        url = f"{self.uri}/api/2.0/mlflow/{path}"
        if method == "GET" and value:
            url, value = f"{url}?{urlencode(value)}", None
        data = json.dumps(value).encode() if value is not None else None
        headers = {"Content-Type": "application/json"}
        answer = self._send(urllib.request.Request(url, data, headers, method=method))  # noqa: S310 - `_checked`
        try:
            return json.loads(answer or b"{}")
        except ValueError as exc:
            raise ClusterError(
                _("{uri} does not answer as an MLflow server.").format(uri=self.uri),
                _("Check the address."),
            ) from exc

    def put_artifact(self, path: str, size: int, blocks: Iterable[bytes]) -> None:
        """Write one file of the server's store."""
        url = f"{self.uri}/api/2.0/mlflow-artifacts/artifacts/{quote(path)}"
        request = urllib.request.Request(url, method="PUT")  # noqa: S310 - `_checked`
        request.add_header("Content-Length", str(size))
        request.add_header("Content-Type", "application/octet-stream")
        request.data = iter(blocks) if size else b""
        self._send(request)

    def _send(self, request: urllib.request.Request) -> bytes:
        for header, value in _authorization():
            request.add_unredirected_header(header, value)
        try:
            with self._open(request, timeout=_TIMEOUT) as answer:
                return bytes(answer.read(_MAX_ANSWER))
        except urllib.error.HTTPError as exc:
            with exc:
                code, words = _refusal(exc)
            raise MlflowRefusedError(self.uri, exc.code, code, words) from exc
        except (OSError, http.client.HTTPException) as exc:
            reason = getattr(exc, "reason", None) or exc
            raise ClusterError(
                _("The MLflow server {uri} cannot be reached: {reason}.").format(
                    uri=self.uri, reason=reason
                ),
                _("Check the address, and run the command again."),
            ) from exc


class MlflowRefusedError(RefusedError):
    """The MLflow server has refused a request; ``code`` is its error code."""

    def __init__(self, uri: str, status: int, code: str, words: str) -> None:
        fix = ""
        if status in (401, 403):
            fix = _(
                "Set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, in the environment."
            )
        super().__init__(
            _("The MLflow server {uri} refuses the request ({status} {code}): {words}.").format(
                uri=uri, status=status, code=code, words=words.rstrip(".")
            ),
            fix,
        )
        self.code = code


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follow redirects to the same server only."""

    def __init__(self, uri: str) -> None:
        self._server = urlsplit(uri)[:2]

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Refuse another server, and methods that a redirect would change."""
        if urlsplit(newurl)[:2] != self._server or req.get_method() not in ("GET", "HEAD"):
            there = urlsplit(newurl)
            fp.close()
            raise RefusedError(
                _("The MLflow server redirects to {there}.").format(
                    there=f"{there.scheme}://{there.hostname}"[:200]
                ),
                _("Give the final address of the server."),
            )
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None:
            for header, value in _authorization():
                request.add_unredirected_header(header, value)
        return request


def _checked(uri: str) -> str:
    parts = urlsplit(uri)
    if not uri:
        raise UsageError(
            _("No MLflow server is named."),
            _("Write --to mlflow:URI, or set MLFLOW_TRACKING_URI."),
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            _("{uri!r} is not the address of an MLflow server.").format(
                uri=uri.rpartition("@")[2][:200]
            ),
            _("Write for example mlflow:https://mlflow.example.org."),
        )
    if "@" in parts.netloc:
        raise UsageError(
            _("The address of the MLflow server contains a user or a password."),
            _("Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead."),
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def _authorization() -> Iterator[tuple[str, str]]:
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    user = os.environ.get("MLFLOW_TRACKING_USERNAME")
    if user:
        password = os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
        yield "Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    elif token:
        yield "Authorization", f"Bearer {token}"


def _refusal(exc: urllib.error.HTTPError) -> tuple[str, str]:
    try:
        answer = json.loads(exc.read(1 << 16))
        return str(answer["error_code"])[:100], str(answer.get("message") or "")[:500]
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return "", str(exc.reason)[:200]


def _experiment(server: Server, name: str) -> str:
    try:
        found = server.call("GET", "experiments/get-by-name", {"experiment_name": name})
        return str(found["experiment"]["experiment_id"])
    except MlflowRefusedError as exc:
        if exc.code != "RESOURCE_DOES_NOT_EXIST":
            raise
    try:
        return str(server.call("POST", "experiments/create", {"name": name})["experiment_id"])
    except MlflowRefusedError as exc:
        if exc.code != "RESOURCE_ALREADY_EXISTS":  # Created by another client meanwhile.
            raise
    found = server.call("GET", "experiments/get-by-name", {"experiment_name": name})
    return str(found["experiment"]["experiment_id"])


def _run(
    server: Server, experiment: str, job: JobHandle, lineage: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return the run of the job, and whether it was created now."""
    query = {"experiment_ids": [experiment], "filter": f"tags.`{_JOB}` = '{job.id}'"}
    for run in server.call("POST", "runs/search", {**query, "max_results": 1}).get("runs") or ():
        return run, False
    tags = {
        _JOB: job.id,
        "submarine.job_dir": job.directory.url,
        "submarine.bundle_digest": lineage.get("bundle_digest"),
        "submarine.notebook": lineage.get("notebook"),
        "submarine.data": json.dumps(lineage.get("data") or []),
        "submarine.environment": json.dumps(lineage.get("environment") or {}),
    }
    created = job.record().created or 0.0
    value = {
        "experiment_id": experiment,
        "run_name": job.id,
        "start_time": int(created * 1000),
        "tags": _pairs({key: value for key, value in tags.items() if value}),
    }
    return server.call("POST", "runs/create", value)["run"], True


def _log(
    server: Server, run: Mapping[str, Any], job: JobHandle, lineage: Mapping[str, Any]
) -> None:
    """Log parameters and metrics, once for each run, and set its end."""
    run_id, record = run["info"]["run_id"], job.record()
    tags = {tag["key"]: tag["value"] for tag in run.get("data", {}).get("tags") or ()}
    state = record.state.value
    if tags.get(_LOGGED) == state:
        return
    # The parameters of a run cannot change; the same value again is no error.
    params = _pairs(dict(list((lineage.get("parameters") or {}).items())[:_MAX_PARAMS]))
    if params:
        server.call("POST", "runs/log-batch", {"run_id": run_id, "params": params})
    # The event files of a running job are not complete: its metrics follow after its end.
    metrics = list(_metrics(job)) if record.state.ended else []
    for start in range(0, len(metrics), _BATCH):
        value = {"run_id": run_id, "metrics": metrics[start : start + _BATCH]}
        server.call("POST", "runs/log-batch", value)
    status = {State.SUCCEEDED: "FINISHED", State.CANCELLED: "KILLED"}.get(record.state, "FAILED")
    ended = {"end_time": int((record.finished or 0.0) * 1000)} if record.state.ended else {}
    if not record.state.ended:
        status = "RUNNING"
    server.call("POST", "runs/update", {"run_id": run_id, "status": status, **ended})
    server.call("POST", "runs/set-tag", {"run_id": run_id, "key": _LOGGED, "value": state})


def _metrics(job: JobHandle) -> Iterator[dict[str, Any]]:
    """Yield the scalars of the chief: from its event files with the steps of the training.

    Scalars that it only prints have no step: each new value counts as one.
    """
    written = set()
    for point in read_event_scalars(job.directory):
        written.add(point.name)
        yield {
            "key": point.name,
            "value": point.value,
            "timestamp": int(point.time * 1000),
            "step": point.step,
        }
    values: dict[str, float] = {}
    steps: dict[str, int] = {}
    for row in read_metrics(job.directory, job.chief):
        for key, value in row.scalars.items():
            if key in written or values.get(key) == value:
                continue
            values[key], steps[key] = value, steps.get(key, -1) + 1
            time = int(row.time * 1000)
            yield {"key": key, "value": value, "timestamp": time, "step": steps[key]}


def _find_version(server: Server, name: str, run_id: str, digest: str) -> dict[str, Any] | None:
    query = {"filter": f"run_id = '{run_id}'", "max_results": 100}
    found = server.call("GET", "model-versions/search", query).get("model_versions") or ()
    for version in found:
        tags = {tag["key"]: tag["value"] for tag in version.get("tags") or ()}
        if version["name"] == name and tags.get(_DIGEST) == digest:
            return dict(version)
    return None


def _register(
    server: Server,
    run: Mapping[str, Any],
    job: JobHandle,
    source: ModelSource,
    name: str,
    digest: str,
) -> dict[str, Any]:
    """Copy the files to the server's store, if it has one, and create the version."""
    stored_at = job.directory.storage.url(job.directory.file(source.folder))
    store = urlsplit(str(run["artifact_uri"]))
    if store.scheme == "mlflow-artifacts" and not store.netloc:
        folder = f"{store.path.strip('/')}/{source.version or 'model'}-{digest[:12]}"
        for path, size in source.files.items():
            server.put_artifact(f"{folder}/{path}", size, source.blocks(path)())
        place = f"mlflow-artifacts:/{folder}"
    else:
        place = stored_at
    try:
        server.call("POST", "registered-models/create", {"name": name})
    except MlflowRefusedError as exc:
        if exc.code != "RESOURCE_ALREADY_EXISTS":
            raise
    tags = {_JOB: job.id, _VERSION: source.version, _DIGEST: digest, "submarine.uri": stored_at}
    value = {"name": name, "source": place, "run_id": run["run_id"], "tags": _pairs(tags)}
    try:
        return dict(server.call("POST", "model-versions/create", value)["model_version"])
    except MlflowRefusedError as exc:
        if place != stored_at or exc.code != "INVALID_PARAMETER_VALUE":
            raise
        raise RefusedError(
            _("The MLflow server keeps no files of clients and does not accept {uri}.").format(
                uri=stored_at
            ),
            _("Its operator allows hdfs: sources with {variable}=hdfs.").format(
                variable=ALLOWED_SCHEMES
            ),
        ) from exc


def _pairs(values: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {"key": key, "value": (value if isinstance(value, str) else json.dumps(value))[:_MAX_TEXT]}
        for key, value in values.items()
    ]
