"""Simulated NodeManagers and applications on a real ResourceManager.

The nodes register and send heartbeats by Hadoop RPC as NodeManagers do. They start nothing: a
container is reported as running with the next heartbeat. The applications have unmanaged masters,
which register with their own tokens and request containers. A node is smaller than any container of
Submarine, so jobs run on the real NodeManagers of the cluster only.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

from hadoop_rpc import RpcConnection, Token, as_bytes, as_int, messages_in

from submarine_minicluster import Minicluster
from submarine_runtime.protobuf import encode, fields

HEARTBEAT = 10.0
#: Parts of the nodes whose heartbeats are sent at once.
_PARTS = 100
_NODE_MB, _NODE_VCORES, _CONTAINER_MB = 192, 4, 64
_RUNNING, _COMPLETE = 2, 3
#: Memory in use, without which the ResourceManager cannot list a node.
_UTILIZATION = encode((1, 64), (2, 128))
_TRACKER = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
_CLIENT = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
_MASTER = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
#: Settings of a minicluster for simulations: masters and allocated containers do not expire.
PROPERTIES = (
    "yarn.am.liveness-monitor.expiry-interval-ms=21600000",
    "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms=21600000",
)


@dataclass
class Node:
    """A simulated NodeManager.

    Attributes
    ----------
    started, running
        Containers that were granted since the last heartbeat, and those that the last heartbeat
        reported as running; the next one reports their end.
    """

    identity: bytes
    keys: bytes = b""
    response: int = 0
    started: deque[bytes] = field(default_factory=deque)
    running: deque[bytes] = field(default_factory=deque)


class SimulatedNodes:
    """Simulated NodeManagers with heartbeats in a thread of their own.

    Parameters
    ----------
    cluster
        A running minicluster without Kerberos.
    count
        Number of nodes, at most 60,000.

    Attributes
    ----------
    heartbeats, late
        Number of heartbeats, and the largest delay of a part of them in seconds.
    """

    def __init__(self, cluster: Minicluster, count: int) -> None:
        self.heartbeats, self.late = 0, 0.0
        self._ended = threading.Event()
        # Numbers as names: the ResourceManager resolves the name of each node.
        hosts = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(count)]
        self._nodes = {host: Node(encode((1, host), (2, 45454))) for host in hosts}
        address = _address(cluster, "rm-tracker")
        self._connection = RpcConnection(address, _TRACKER, "yarn")
        self._thread = threading.Thread(target=self._run, daemon=True, name="heartbeats")

    def start(self) -> None:
        """Register all nodes and start the heartbeats."""
        size = encode((1, _NODE_MB), (2, _NODE_VCORES))
        nodes = list(self._nodes.values())
        for first in range(0, len(nodes), _PARTS):
            part = nodes[first : first + _PARTS]
            requests = [
                encode((1, node.identity), (3, 8042), (4, size), (5, "3.5.0")) for node in part
            ]
            answers = self._connection.call_all("registerNodeManager", requests)
            for node, answer in zip(part, answers, strict=True):
                found = dict(fields(answer))
                if found.get(3):
                    raise RuntimeError(f"the ResourceManager refuses a node: {found.get(5)!r}")
                node.keys = encode((2, as_bytes(found[1])), (3, as_bytes(found[2])))
            self._beat(part)
        self._thread.start()

    def start_container(self, host: str, container: bytes) -> None:
        """Report a granted container as running, and at the heartbeat after that as ended."""
        if host in self._nodes:
            self._nodes[host].started.append(container)

    def stop(self) -> None:
        """End the heartbeats; the ResourceManager loses the nodes later."""
        self._ended.set()
        self._thread.join(60)
        self._connection.close()

    def _run(self) -> None:
        nodes = list(self._nodes.values())
        parts = [nodes[number::_PARTS] for number in range(_PARTS)]
        due = time.monotonic()
        while True:
            for part in parts:
                due += HEARTBEAT / _PARTS
                if self._ended.wait(max(0.0, due - time.monotonic())):
                    return
                self.late = max(self.late, time.monotonic() - due)
                if part:
                    self._beat(part)

    def _beat(self, part: list[Node]) -> None:
        now = int(time.time() * 1000)
        healthy = encode((1, 1), (2, ""), (3, now))
        requests = []
        for node in part:
            ended, node.running = node.running, deque()
            while node.started:
                node.running.append(node.started.popleft())
            states = [(3, _status(container, _COMPLETE)) for container in ended]
            states += [(3, _status(container, _RUNNING)) for container in node.running]
            status = encode((1, node.identity), (2, node.response), *states, (4, healthy))
            status += encode((6, _UTILIZATION), (7, _UTILIZATION))
            requests.append(encode((1, status)) + node.keys)
        for node, answer in zip(
            part, self._connection.call_all("nodeHeartbeat", requests), strict=True
        ):
            found = dict(fields(answer))
            if found.get(4):
                raise RuntimeError(f"a node must register again: {found.get(8)!r}")
            node.response = as_int(found.get(1, 0))
        self.heartbeats += len(part)


def _status(container: bytes, state: int) -> bytes:
    exit_status = 0 if state == _COMPLETE else -1000
    return encode((1, container), (2, state), (3, ""), (4, exit_status))


@dataclass(frozen=True)
class Application:
    """A simulated application whose master has registered.

    Attributes
    ----------
    identity
        Its id, ``application_1795438692895_0001``.
    """

    identity: str
    token: Token


class SimulatedApplications:
    """Submits applications with unmanaged masters.

    Parameters
    ----------
    user
        A user whom the minicluster admits.
    """

    def __init__(self, cluster: Minicluster, user: str) -> None:
        self._master = _address(cluster, "rm-scheduler")
        self._client = RpcConnection(_address(cluster, "rm"), _CLIENT, user)

    def run(
        self,
        name: str,
        *,
        containers: int = 1,
        register: bool = True,
        kind: str = "SPARK",
        tags: tuple[str, ...] = (),
    ) -> Application:
        """Start an application.

        Parameters
        ----------
        containers
            Number of containers that it requests.
        register
            Whether its master registers; else its state remains ACCEPTED.
        kind
            YARN's type of the application.
        """
        identity = dict(fields(self._client.call("getNewApplication")))[1]
        size = encode((1, _CONTAINER_MB), (2, 1))
        labels = [(12, tag) for tag in tags]
        context = encode((1, as_bytes(identity)), (2, name), (3, "default"), (5, b""), (7, 1))
        context += encode((8, 1), (9, size), (10, kind), *labels)
        self._client.call("submitApplication", encode((1, context)))
        token = self._token(as_bytes(identity))
        if register:
            master = self.master(token)
            master.call("registerApplicationMaster", encode((1, "127.0.0.1"), (2, 1), (3, "")))
            master.call("allocate", allocation(0, containers))
            master.close()
        numbers = dict(fields(as_bytes(identity)))
        stamp, number = as_int(numbers[2]), as_int(numbers[1])
        return Application(f"application_{stamp}_{number:04}", token)

    def master(self, token: Token) -> RpcConnection:
        """Open a connection of an application's master."""
        return RpcConnection(self._master, _MASTER, token=token)

    def close(self) -> None:
        """Close the connection; the applications remain."""
        self._client.close()

    def _token(self, identity: bytes, seconds: float = 60.0) -> Token:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = self._client.call("getApplicationReport", encode((1, identity)))
            report = dict(fields(as_bytes(dict(fields(answer))[1])))
            if 19 in report:
                return Token.parse(as_bytes(report[19]))
            time.sleep(0.02)
        raise TimeoutError("the ResourceManager gives an application no token")


def allocation(response: int, count: int) -> bytes:
    """Encode a request of a master for containers on any node."""
    request = encode(
        *((1, encode((1, 1))), (2, "*"), (3, encode((1, _CONTAINER_MB), (2, 1)))),
        *((4, count), (5, 1)),
    )
    return encode((1, request), (4, response))


class ContainerStarts(threading.Thread):
    """Thread that has containers start on simulated nodes, one second after the other.

    Parameters
    ----------
    masters
        Running applications; each requests one container a second.

    Attributes
    ----------
    granted
        Number of containers that the scheduler granted.
    """

    def __init__(
        self, nodes: SimulatedNodes, applications: SimulatedApplications, masters: list[Application]
    ) -> None:
        super().__init__(daemon=True, name="container-starts")
        self.granted = 0
        self._nodes = nodes
        self._masters = [applications.master(one.token) for one in masters]
        self._responses = [1] * len(masters)
        self._ended = threading.Event()

    def run(self) -> None:
        """Request containers until ``stop``."""
        due = time.monotonic()
        while True:
            due += 1.0
            if self._ended.wait(max(0.0, due - time.monotonic())):
                return
            for number, master in enumerate(self._masters):
                answer = master.call("allocate", allocation(self._responses[number], 1))
                for number_of, value in fields(answer):
                    if number_of == 2:
                        self._responses[number] = as_int(value)
                for container in messages_in(answer, 3):
                    parts = dict(fields(container))
                    host = dict(fields(as_bytes(parts[2])))[1]
                    self._nodes.start_container(as_bytes(host).decode(), as_bytes(parts[1]))
                    self.granted += 1

    def stop(self) -> None:
        """End the thread and close its connections."""
        self._ended.set()
        self.join(60)
        for master in self._masters:
            master.close()


def _address(cluster: Minicluster, port: str) -> tuple[str, int]:
    return "127.0.0.1", cluster.saved.ports[port]
