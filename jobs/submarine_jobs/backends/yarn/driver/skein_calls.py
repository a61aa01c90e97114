"""Call skein's driver with timeouts; only this module uses internals of skein and gRPC.

skein's public client has no timeouts, pings in its constructor, and uses ``http_proxy``. Here each
call has a timeout and proxies are disabled. skein and grpc are imported for the first channel.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from submarine_jobs.backends.yarn.driver.refusals import translate
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.translation import _
from submarine_runtime.yarn import import_skein

#: The host name in skein's certificates.
_NAME = "skein-internal"


class DriverUnreachableError(ClusterError):
    """No driver, or not the expected driver, answers on the port."""


class DriverTimeoutError(ClusterError):
    """The driver did not answer in time, because its call to the cluster hangs."""


def new_credentials() -> tuple[bytes, bytes]:
    """Return a new certificate and key (PEM) in the form of skein."""
    security = import_skein().Security.new_credentials()
    return security._get_bytes("cert"), security._get_bytes("key")


def skein_jar() -> str:
    """Return the path of skein's jar in the installed package, without an import of skein.

    Raises
    ------
    ClusterError
        If the package is not installed.
    """
    found = importlib.util.find_spec("skein")
    if found is None or found.origin is None:
        raise ClusterError(_("The package skein is not installed."), _("pip install skein"))
    return str(Path(found.origin).parent / "java" / "skein.jar")


class Channel(Protocol):
    """The calls of a driver."""

    def close(self) -> None:
        """Close the connection."""

    def ping(self, timeout: float) -> None:
        """Raise unless the driver answers."""

    def submit(self, spec: Mapping[str, Any], timeout: float) -> str:
        """Submit an application; return its id."""

    def kill(self, application_id: str, user: str, timeout: float) -> None:
        """Kill an application."""


class DriverChannel:
    """A connection to a running driver; close it with ``close``.

    Parameters
    ----------
    port
        Port on the loopback interface.
    certificate, key
        PEM; the driver accepts only this pair.
    """

    def __init__(self, port: int, certificate: bytes, key: bytes) -> None:
        proto = import_skein().proto
        # cost: gRPC (10 MB), which only a connection needs.
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
        """Close the connection; the driver continues to run."""
        self._channel.close()

    def ping(self, timeout: float) -> None:
        """Raise unless the driver answers within ``timeout`` seconds."""
        self._call("ping", self._proto.Empty(), timeout)

    def submit(self, spec: Mapping[str, Any], timeout: float) -> str:
        """Submit an application (``Application.to_json``); return its id.

        Raises
        ------
        DriverUnreachableError, DriverTimeoutError
            The application may or may not have been submitted.
        RefusedError, ClusterError
            The application was not submitted.
        """
        checked = import_skein().ApplicationSpec.from_dict(dict(spec))
        return str(self._call("submit", checked.to_protobuf(), timeout).id)

    def kill(self, application_id: str, user: str, timeout: float) -> None:
        """Kill an application; no error if there is none with that id.

        Parameters
        ----------
        user
            As ``Application.user``.
        """
        request = self._proto.KillRequest(id=application_id, user=user)
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
            raise DriverUnreachableError(_("The YARN driver does not answer on its port."))
        if code == codes.DEADLINE_EXCEEDED:
            raise DriverTimeoutError(
                _("The YARN driver had no answer from the cluster within {timeout:g} s.").format(
                    timeout=timeout
                ),
                _("Check that ResourceManager and NameNode are up: `submarine doctor`."),
            )
        raise translate(details)
