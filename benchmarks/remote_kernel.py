"""A kernel in a YARN container compared with a local kernel and with plain skein, in one run.

Round trip: from sending ``1`` to the reply on shell, and to idle on iopub, alternating between the
kernels. With a delay: the same through a relay, in its own process, that delays every byte by half
of ``--delay`` in each direction; the round trip of the relay is measured too. Cold start: from the
submission to the kernel's first answer; plain skein starts ipykernel in the container of the
application master, with a connection file. Loss: from the end of the container until a page of a
Jupyter server has both the reason and the state "dead".

Run: ``python benchmarks/remote_kernel.py [--runs N] [--minicluster NAME]``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import queue
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from on_minicluster import open_session, run_on_minicluster

from submarine_jobs.access import tunnel_loop
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Job, Session
from submarine_kernel.kernelspecs.installation import install_kernel
from submarine_kernel.remote.remote_kernel import RemoteKernel

# The page is a part of the tests, which are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.kernel.kernel_server import Loss, losses, server

#: Limits: milliseconds above a local kernel, and above a delayed round trip; ratio to plain skein.
OVER_LOCAL, OVER_DELAY, COLD = 2.0, 5.0, 1.2
#: The same for the 95th percentile of the time to idle on iopub.
IDLE_OVER_LOCAL = 8.0
#: Seconds until a loss is reported with its reason; losses with a running cell, and without.
LOSS, LOSSES = 3.0, 10
DELAY = 20.0
TURNS = 300
PATIENCE = 120.0

RELAY = """\
import asyncio, socket, sys
host, port, half = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
class Side(asyncio.Protocol):
    other = None
    def __init__(self): self.held = []
    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def data_received(self, data): asyncio.get_running_loop().call_later(half, self.give, data)
    def give(self, data):
        if self.other is None: self.held.append(data)
        else: self.other.transport.write(data)
    def connection_lost(self, exc):
        if self.other is not None: self.other.transport.close()
class Front(Side):
    def connection_made(self, transport):
        super().connection_made(transport)
        self.task = asyncio.get_running_loop().create_task(self.reach())
    async def reach(self):
        _, back = await asyncio.get_running_loop().create_connection(Side, host, port)
        self.other, back.other = back, self
        for data in self.held: back.transport.write(data)
async def main():
    server = await asyncio.get_running_loop().create_server(Front, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def main() -> int:
    """Run the benchmark; return 1 if a limit is missed."""
    result = run_on_minicluster(__doc__, "remote-kernel", measure, report)
    return 0 if all(value <= bar for _, value, bar in judged(result)) else 1


def measure(scratch: Path, runs: int) -> dict[str, Any]:
    """Measure all figures of one run."""
    import skein

    os.environ["SUBMARINE_STATE_DIR"] = str(scratch / "state")
    kernels = scratch / "share" / "jupyter" / "kernels"
    run = {"backend": "yarn", "memory": "512M"}
    stanza = {"provisioner_name": "submarine-yarn", "config": {"run": run}}
    install_kernel(name="far", prefix=str(scratch), container=stanza)
    install_kernel(name="near", prefix=str(scratch))
    specs = KernelSpecManager(kernel_dirs=[str(kernels)])
    session = open_session(scratch / "state", {})
    cold: dict[str, list[float]] = {"bare skein": [], "submarine": []}
    try:
        with skein.Client(log=False) as client:
            bare(client, scratch)  # Start drivers and fill caches.
            ours(specs)
            for _ in range(runs):
                cold["bare skein"].append(bare(client, scratch))
                cold["submarine"].append(ours(specs))
        trips = round_trips(specs)
        (scratch / "work").mkdir()
        cluster = {name: os.environ[name] for name in ("HADOOP_CONF_DIR", "JAVA_HOME", "PATH")}
        with server(scratch, env={**cluster, "SUBMARINE_BACKEND": "yarn"}) as port:
            lost = [loss.__dict__ | {"named": loss.named} for loss in each_loss(port, session)]
    finally:
        stop_driver(session.profile)
    return {
        "cold start, seconds": cold,
        "round trips, ms": trips,
        "losses": lost,
        "load": os.getloadavg(),
    }


def each_loss(port: int, session: Session) -> Iterator[Loss]:
    """Yield the losses, each printed after its measurement."""
    for loss in losses(port, "far", session, LOSSES):
        words = f"{'with' if loss.running else 'without'} a running cell"
        print(f"loss of {loss.kind:12} {words:22} {loss.told:6.2f} {loss.dead:6.2f}", flush=True)
        yield loss


def bare(client: Any, scratch: Path) -> float:
    """Return the seconds from skein's submission to the answer of ipykernel in its container."""
    import skein

    path, info = write_connection_file(str(scratch / "bare.json"))
    master = skein.Master(
        files={"bare.json": path},
        resources=skein.Resources(memory="512 MiB", vcores=1),
        script=f"{sys.executable} -m ipykernel_launcher -f bare.json",
    )
    began = time.monotonic()
    application = client.submit(skein.ApplicationSpec(name="bare-kernel", master=master))
    try:
        with connected(info) as kernel:
            answered(kernel)
            return time.monotonic() - began
    finally:
        client.kill_application(application)
        time.sleep(1.0)  # The next run starts on an idle cluster.


def job_of(manager: KernelManager) -> Job:
    """Return the job of the kernel."""
    provisioner: Any = manager.provisioner
    job: Job = provisioner._remote.job
    return job


def ours(specs: KernelSpecManager) -> float:
    """Return the seconds from the kernel manager's start to the answer of the kernel."""
    manager = KernelManager(kernel_name="far", kernel_spec_manager=specs)
    began = time.monotonic()
    manager.start_kernel()
    try:
        with connected(manager.get_connection_info()) as kernel:
            answered(kernel)
            return time.monotonic() - began
    finally:
        job = job_of(manager)
        manager.shutdown_kernel(now=True)
        job.wait(PATIENCE)
        time.sleep(1.0)


@contextlib.contextmanager
def connected(info: Any) -> Iterator[BlockingKernelClient]:
    """Return a client for the content of a connection file."""
    client = BlockingKernelClient()
    client.load_connection_info(info)
    client.start_channels()
    try:
        yield client
    finally:
        client.stop_channels()
        client.context.destroy(linger=0)


def answered(client: BlockingKernelClient) -> None:
    """Wait for an answer; the heartbeat is checked only after the kernel has started."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        client.kernel_info()
        with contextlib.suppress(queue.Empty):
            client.get_shell_msg(timeout=1.0)
            return
    raise TimeoutError("the kernel has not answered")


def listening(client: BlockingKernelClient) -> None:
    """Wait until iopub is subscribed: messages that are published before are lost."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        client.kernel_info()
        with contextlib.suppress(queue.Empty):
            client.get_iopub_msg(timeout=1.0)
            return
    raise TimeoutError("no message was received on iopub")


def round_trips(specs: KernelSpecManager) -> dict[str, Any]:
    """Return p50 and p95 of the alternating kernels, and of the kernel behind a delay."""
    managers = {
        name: KernelManager(kernel_name=name, kernel_spec_manager=specs) for name in ("near", "far")
    }
    with contextlib.ExitStack() as stack:
        clients = {}
        for name, manager in managers.items():
            manager.start_kernel()
            stack.callback(manager.shutdown_kernel, now=True)
            clients[name] = stack.enter_context(connected(manager.get_connection_info()))
        job = job_of(managers["far"])
        address = job.directory.address()
        assert address is not None
        port = stack.enter_context(relayed(address.host, address.port))
        remote = RemoteKernel(job, "look")
        opening = remote.open(replace(address, host="127.0.0.1", port=port))
        asyncio.run_coroutine_threadsafe(opening, tunnel_loop()).result(PATIENCE)
        clients["delayed"] = stack.enter_context(connected(remote.connection))
        for client in clients.values():
            answered(client)
            listening(client)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in clients}
        for turn in range(TURNS + 20):
            for name, client in clients.items():
                if name == "delayed" and turn % 3:
                    continue
                trip = round_trip(client)
                if turn >= 20:
                    taken[name].append(trip)
        asyncio.run_coroutine_threadsafe(remote.close(), tunnel_loop()).result(PATIENCE)
    return {
        **{name: summary(trips) for name, trips in taken.items()},
        "delay": relay_round_trip(),
    }


def round_trip(client: BlockingKernelClient) -> tuple[float, float]:
    """Return the milliseconds to the reply, and to idle."""
    began = time.perf_counter()
    sent = client.execute("1", store_history=False)
    while client.get_shell_msg(timeout=PATIENCE)["parent_header"].get("msg_id") != sent:
        pass
    replied = time.perf_counter()
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if (
            message["parent_header"].get("msg_id") == sent
            and message["content"].get("execution_state") == "idle"
        ):
            return (replied - began) * 1e3, (time.perf_counter() - began) * 1e3


def summary(trips: list[tuple[float, float]]) -> dict[str, float]:
    """Return medians and 95th percentiles."""
    replies, idles = zip(*trips, strict=True)
    found = {}
    for word, values in (("reply", replies), ("idle", idles)):
        found[f"{word} p50"] = statistics.median(values)
        found[f"{word} p95"] = statistics.quantiles(values, n=20)[18]
    return found


@contextlib.contextmanager
def relayed(host: str, port: int) -> Iterator[int]:
    """Listen on a port that is forwarded with half of ``DELAY`` in each direction."""
    words = [sys.executable, "-c", RELAY, host, str(port), str(DELAY / 2000)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as relay:
        assert relay.stdout is not None
        try:
            yield int(relay.stdout.readline())
        finally:
            relay.kill()


def relay_round_trip() -> float:
    """Return the median milliseconds of 200 bytes through such a relay and back."""
    echo = (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\nc = s.accept()[0]\n"
        "c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n"
        "while d := c.recv(4096): c.sendall(d)\n"
    )
    words = [sys.executable, "-c", echo]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with (
            relayed("127.0.0.1", int(process.stdout.readline())) as port,
            socket.create_connection(("127.0.0.1", port)) as client,
        ):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            times = []
            for _ in range(50):
                began = time.perf_counter()
                client.sendall(b"x" * 200)
                left = 200
                while left:
                    left -= len(client.recv(left))
                times.append((time.perf_counter() - began) * 1e3)
        process.kill()
    return statistics.median(times)


def judged(result: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return the figures with a limit: name, value, limit."""
    trips, cold = result["round trips, ms"], result["cold start, seconds"]
    near, far, delayed = (trips[name]["reply p50"] for name in ("near", "far", "delayed"))
    idle = trips["far"]["idle p95"] - trips["near"]["idle p95"]
    slowest = {
        running: max(
            max(loss["told"], loss["dead"]) if loss["named"] else math.inf
            for loss in result["losses"]
            if loss["running"] is running
        )
        for running in (True, False)
    }
    ratio = statistics.median(cold["submarine"]) / statistics.median(cold["bare skein"])
    return [
        ("round trip over a local kernel, ms", far - near, OVER_LOCAL),
        ("idle p95 over a local kernel, ms", idle, IDLE_OVER_LOCAL),
        ("delayed, over local and one round trip, ms", delayed - near - trips["delay"], OVER_DELAY),
        ("cold start, ratio to bare skein", ratio, COLD),
        ("slowest report of a loss, running cell, s", slowest[True], LOSS),
        ("slowest report of a loss, no cell, s", slowest[False], LOSS),
    ]


def report(result: dict[str, Any]) -> None:
    """Print the figures."""
    trips = result["round trips, ms"]
    for name in ("near", "far", "delayed"):
        each = "  ".join(f"{word} {value:6.2f}" for word, value in trips[name].items())
        print(f"{name:10} ms  {each}")
    ratio = trips["far"]["idle p95"] / trips["near"]["idle p95"]
    print(f"idle p95, ratio to a local kernel: {ratio:.2f}; load {result['load'][0]:.1f}")
    print(f"round trip of the relay alone: {trips['delay']:.2f} ms")
    for word, values in result["cold start, seconds"].items():
        print(f"cold start {word:12} s  {' '.join(f'{value:.2f}' for value in values)}")
    for word, value, bar in judged(result):
        print(f"{word:44}{value:8.2f}  at most {bar}")
    print(json.dumps({word: round(value, 3) for word, value, _ in judged(result)}))


if __name__ == "__main__":
    raise SystemExit(main())
