"""What `bounds_test.py` runs with each combination of Python, protobuf and grpcio: skein's modules.

Imports them, passes a specification through their protobuf code, and calls servers of both of
skein's gRPC services over TLS: the driver's and the application master's, with a stream. The
servers are generated from skein's protocol and answer what they receive. No Hadoop, no JVM.
"""

from __future__ import annotations

import importlib
import sys
from concurrent import futures
from importlib.metadata import version
from pathlib import Path
from typing import Any

APPLICATION = "application_1_0001"
MODULES = ("core", "exceptions", "kv", "model", "objects", "proto", "ui", "utils")


def main() -> None:
    """Run the test and print the versions."""
    # As the product imports it: Python 3.12 and later have no distutils.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))
    skein = importlib.import_module("submarine_runtime.yarn").import_skein()
    for name in MODULES:
        importlib.import_module(f"skein.{name}")
    spec = specification(skein)
    check_serialization(skein, spec)
    check_services(skein, spec)
    print(
        f"{sys.version_info.major}.{sys.version_info.minor}",
        *(f"{name} {version(name)}" for name in ("protobuf", "grpcio", "cryptography")),
        implementation(),
    )


def specification(skein: Any) -> Any:
    """Return a specification, without ``max_attempts``, which ``from_protobuf`` does not read."""
    service = skein.Service(
        resources=skein.Resources("1 GiB", 1, gpus=1),
        instances=0,
        script="true",
        env={"A": "b"},
        files={"f": skein.File(source="hdfs:///f", type="archive", visibility="private")},
        node_label="gpu",
        max_restarts=0,
        allow_failures=True,
    )
    master = skein.Master(
        resources=skein.Resources("512 MiB", 1), script="true", env={"C": "d"}, log_level="INFO"
    )
    acls = skein.ACLs(enable=True, view_users=["*"])
    return skein.ApplicationSpec(
        name="x", queue="q", user="ada", tags={"t"}, master=master, acls=acls,
        services={"s": service},
    )  # fmt: skip


def check_serialization(skein: Any, spec: Any) -> None:
    """The specification is equal after protobuf's bytes, and after JSON and YAML."""
    kind = skein.ApplicationSpec
    message = spec.to_protobuf()
    again = type(message).FromString(message.SerializeToString())
    assert again == message
    assert kind.from_protobuf(again) == spec
    assert kind.from_dict(spec.to_dict()) == spec
    assert kind.from_json(spec.to_json()) == spec
    assert kind.from_yaml(spec.to_yaml()) == spec


def check_services(skein: Any, spec: Any) -> None:
    """Call stub servers through skein's own clients."""
    grpc = importlib.import_module("grpc")
    proto = importlib.import_module("skein.proto")
    services = importlib.import_module("skein.proto.skein_pb2_grpc")
    security = skein.Security.new_credentials()
    certificate, key = security._get_bytes("cert"), security._get_bytes("key")
    received: dict[str, Any] = {}

    class Driver(services.DriverServicer):  # type: ignore[misc,name-defined]
        def ping(self, request: Any, context: Any) -> Any:
            return proto.Empty()

        def submit(self, request: Any, context: Any) -> Any:
            received["spec"] = skein.ApplicationSpec.from_protobuf(request)
            return proto.Application(id=APPLICATION)

        def kill(self, request: Any, context: Any) -> Any:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"Unknown ApplicationId {request.id}")

    class Master(services.AppMasterServicer):  # type: ignore[misc,name-defined]
        def addContainer(self, request: Any, context: Any) -> Any:  # noqa: N802
            received["env"] = dict(request.env)
            return proto.Container(service_name=request.service_name, instance=7, state="WAITING")

        def getContainers(self, request: Any, context: Any) -> Any:  # noqa: N802
            return services.skein__pb2.ContainersResponse(
                containers=[proto.Container(service_name="s", instance=7, state="RUNNING")]
            )

        def PutKey(self, request: Any, context: Any) -> Any:  # noqa: N802
            received["key"] = (request.key, request.value)
            return proto.PutKeyResponse()

        def Watch(self, requests: Any, context: Any) -> Any:  # noqa: N802
            for request in requests:
                if request.HasField("create"):
                    yield proto.WatchResponse(watch_id=1, type="CREATE")
                    yield proto.WatchResponse(
                        watch_id=1, type="PUT", event=[proto.KeyValue(key="k", value=b"v")]
                    )
                else:
                    yield proto.WatchResponse(watch_id=1, type="CANCEL")

    server = grpc.server(futures.ThreadPoolExecutor(4))
    services.add_DriverServicer_to_server(Driver(), server)
    services.add_AppMasterServicer_to_server(Master(), server)
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=certificate, require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        with skein.Client(address=f"127.0.0.1:{port}", security=security) as client:
            assert client.submit(spec) == APPLICATION
            assert received["spec"] == spec
            refused = ""
            try:
                client.kill_application("application_9_0009")
            except ValueError as error:
                refused = str(error)
            assert "application_9_0009" in refused, refused
        with skein.ApplicationClient(f"127.0.0.1:{port}", APPLICATION, security) as master:
            assert master.add_container("s", env={"TASK": "worker:3"}).id == "s_7"
            assert received["env"] == {"TASK": "worker:3"}
            assert [str(one.state) for one in master.get_containers()] == ["RUNNING"]
            master.kv.put("k", b"v")
            assert received["key"] == ("k", b"v")
            check_stream(master)
    finally:
        server.stop(0)


def check_stream(master: Any) -> None:
    """Receive an event by a stream in both directions."""
    with master.kv.events(key="k") as events:
        event = events.get(timeout=20)
    assert (event.key, event.result.value) == ("k", b"v")


def implementation() -> str:
    """Return how protobuf is implemented: ``upb`` is its compiled code."""
    api = importlib.import_module("google.protobuf.internal.api_implementation")
    return str(api.Type())


if __name__ == "__main__":
    main()
