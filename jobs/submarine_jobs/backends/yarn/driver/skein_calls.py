"""The one place that touches skein's and gRPC's insides: calls to the driver, each with a timeout.

skein's public client takes no timeout, pings without one when it is made, and goes through a proxy
when ``http_proxy`` is set; here each call has a limit and proxies are off. skein and grpc are
imported when the first channel is made, not before. Does not start drivers (``driver``).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from submarine_jobs.backends.yarn.driver.refusals import translate
from submarine_jobs.errors import ClusterError, RefusedError

#: skein's certificates name this host, whatever the real one.
_NAME = "skein-internal"
_IMPORT = threading.Lock()


class DriverUnreachableError(ClusterError):
    """Nobody, or nobody of ours, answers on the driver's port."""


class DriverTimeoutError(ClusterError):
    """The driver answers, but not in time: what it asks of the cluster hangs."""


def skein_module() -> Any:
    """The package skein, imported by one thread at a time: its modules import each other."""
    with _IMPORT:
        if "skein" in sys.modules:
            return importlib.import_module("skein")
        with _plain_distutils():
            return importlib.import_module("skein")


@contextlib.contextmanager
def _plain_distutils() -> Iterator[None]:
    """Have ``distutils.version``, all that skein wants of it, come from the standard library.

    Where setuptools is installed it comes with all of setuptools: 10 MB and a third of a second.
    From Python 3.12 on there is no other.
    """
    before = set(sys.modules)
    theirs = [one for one in sys.meta_path if type(one).__module__ == "_distutils_hack"]
    if "distutils" in before or not theirs or sys.version_info >= (3, 12):
        yield
        return
    try:
        for one in theirs:
            sys.meta_path.remove(one)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        sys.meta_path[:0] = theirs
        # Whoever wants it next gets that of setuptools, as without us.
        for name in {"distutils", "distutils.version"} & (set(sys.modules) - before):
            del sys.modules[name]


def new_credentials() -> tuple[bytes, bytes]:
    """A fresh certificate and key (PEM), as skein makes them."""
    security = skein_module().Security.new_credentials()
    return security._get_bytes("cert"), security._get_bytes("key")


def skein_jar() -> str:
    """Path of skein's jar in the installed package, which is not imported for it.

    Raises
    ------
    ClusterError
        If the package is not there.
    """
    found = importlib.util.find_spec("skein")
    if found is None or found.origin is None:
        raise ClusterError("The package skein is not installed.", "pip install skein")
    return str(Path(found.origin).parent / "java" / "skein.jar")


class Channel(Protocol):
    """What a driver can be asked for."""

    def close(self) -> None:
        """Give up the connection."""

    def ping(self, timeout: float) -> None:
        """Ask whether it lives."""

    def submit(self, spec: Mapping[str, Any], timeout: float) -> str:
        """Submit an application; its id."""

    def kill(self, application_id: str, timeout: float) -> None:
        """Kill an application."""


class DriverChannel:
    """A connection to a running driver; cheap to make, closed with ``close``.

    Parameters
    ----------
    port
        On the loopback device.
    certificate, key
        PEM; the driver trusts exactly this pair.
    """

    def __init__(self, port: int, certificate: bytes, key: bytes) -> None:
        proto = skein_module().proto
        import grpc  # type: ignore[import-untyped]

        self._grpc = grpc
        self._proto = proto
        credentials = grpc.ssl_channel_credentials(certificate, key, certificate)
        self._channel = grpc.secure_channel(
            f"127.0.0.1:{port}",
            credentials,
            options=[
                ("grpc.ssl_target_name_override", _NAME),
                ("grpc.default_authority", _NAME),
                ("grpc.enable_http_proxy", 0),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self._stub = proto.DriverStub(self._channel)

    def close(self) -> None:
        """Give up the connection; the driver stays."""
        self._channel.close()

    def ping(self, timeout: float) -> None:
        """Raise unless the driver answers within ``timeout`` seconds."""
        self._call("ping", self._proto.Empty(), timeout)

    def submit(self, spec: Mapping[str, Any], timeout: float) -> str:
        """Submit an application (``Application.to_json``); its id.

        Raises
        ------
        DriverUnreachableError, DriverTimeoutError
            The application may or may not have been submitted.
        RefusedError, ClusterError
            It was not; the message says why.
        """
        checked = skein_module().ApplicationSpec.from_dict(dict(spec))
        return str(self._call("submit", checked.to_protobuf(), timeout).id)

    def kill(self, application_id: str, timeout: float) -> None:
        """Kill an application; no error when there is none of that id."""
        request = self._proto.KillRequest(id=application_id, user="")
        try:
            self._call("kill", request, timeout)
        except RefusedError as exc:
            if "Unknown ApplicationId" not in str(exc):
                raise

    def _call(self, method: str, request: Any, timeout: float) -> Any:
        try:
            return getattr(self._stub, method)(request, timeout=timeout)
        except self._grpc.RpcError as exc:
            code, details = exc.code(), exc.details() or ""
        codes = self._grpc.StatusCode
        if code == codes.UNAVAILABLE:
            raise DriverUnreachableError("The YARN driver does not answer on its port.")
        if code == codes.DEADLINE_EXCEEDED:
            raise DriverTimeoutError(
                f"The YARN driver had no answer from the cluster within {timeout:g} s.",
                "Check that ResourceManager and NameNode are up: `submarine doctor`.",
            )
        raise translate(details)
