"""A gRPC server with the calls of skein's application master that a container makes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped,unused-ignore]
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.protobuf.json_format import (  # type: ignore[import-untyped,unused-ignore]
    MessageToDict,
)

from submarine_runtime.yarn import import_skein


class Master:
    """What the master was asked; it refuses a second page of the same route, as skein does."""

    def __init__(self, certificate: bytes, key: bytes) -> None:
        self.pages: list[dict[str, Any]] = []
        self.progress: list[float] = []
        messages = import_skein().proto
        self._empty = messages.Empty
        calls = {
            "AddProxy": (self._add_page, messages.Proxy),
            "SetProgress": (self._set_progress, messages.SetProgressRequest),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                call,
                request_deserializer=message.FromString,
                response_serializer=self._empty.SerializeToString,
            )
            for name, (call, message) in calls.items()
        }
        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("skein.AppMaster", handlers)]
        )
        # Like skein's, it admits only clients with the application's certificate.
        port = self._server.add_secure_port(
            "127.0.0.1:0",
            grpc.ssl_server_credentials([(key, certificate)], certificate, True),
        )
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait(20)

    def _add_page(self, request: Any, context: Any) -> Any:
        page = MessageToDict(request, preserving_proto_field_name=True)
        if page["route"] in [one["route"] for one in self.pages]:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "there is such a page")
        self.pages.append(page)
        return self._empty()

    def _set_progress(self, request: Any, context: Any) -> Any:
        self.progress.append(request.progress)
        return self._empty()


@contextmanager
def running_master(directory: Path) -> Iterator[Master]:
    """A master whose certificate and key are in the directory, as in a container."""
    certificate, key = new_certificate()
    (directory / ".skein.crt").write_bytes(certificate)
    (directory / ".skein.pem").write_bytes(key)
    master = Master(certificate, key)
    try:
        yield master
    finally:
        master.stop()


def new_certificate() -> tuple[bytes, bytes]:
    """A self-signed certificate with skein's name, and its key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "skein-internal")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
