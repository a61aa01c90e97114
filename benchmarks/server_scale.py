"""CPU time, memory and ResourceManager calls of the server extension with many jobs and pages.

The jupyter-server is a real process. The ResourceManager is simulated by a small HTTP server that
sends recorded answers and counts requests. The pages are websockets that show the jobs list, and
later the cards of waiting jobs. During the measurement jobs are submitted like from a kernel. There
is no HDFS: a poll does not read it. Exits with 1 if the server is above the limits, or a poll needs
more than two calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil
from simulated_cluster import USER, ResourceManager, fill, known
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from submarine_jobs.tracking import JobStore
from submarine_minicluster.machine import free_port
from submarine_runtime.protocol import State

TOKEN = "a-token-of-the-benchmark"
#: Limits: percent of a core, MiB, seconds.
CPU, MEMORY, FIRST = 20.0, 300.0, 1.0


class Server:
    """A jupyter-server with the extension only, on the simulated cluster."""

    def __init__(self, scratch: Path, rm: ResourceManager) -> None:
        self.port = free_port()
        conf = scratch / "conf"
        conf.mkdir()
        rm_address = f"127.0.0.1:{rm.port}"
        for name, values in (
            ("core-site", {"fs.defaultFS": "hdfs://127.0.0.1:1"}),
            ("yarn-site", {"yarn.resourcemanager.webapp.address": rm_address}),
        ):
            entries = "".join(
                f"<property><name>{key}</name><value>{value}</value></property>"
                for key, value in values.items()
            )
            (conf / f"{name}.xml").write_text(f"<configuration>{entries}</configuration>")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SUBMARINE_", "HADOOP_"))}
        places = {
            f"JUPYTER_{word}_DIR": str(scratch / word) for word in ("CONFIG", "DATA", "RUNTIME")
        }
        self.log = (scratch / "server.log").open("wb")
        extensions = "{'submarine_server': True, 'jupyterlab': False, 'notebook': False}"
        words = [
            *("--no-browser", "--allow-root", f"--ServerApp.port={self.port}"),
            *(f"--ServerApp.root_dir={scratch}", f"--IdentityProvider.token={TOKEN}"),
            f"--ServerApp.jpserver_extensions={extensions}",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words],
            env={
                **kept,
                **places,
                "HOME": str(scratch),
                "HADOOP_USER_NAME": USER,
                "SUBMARINE_HADOOP_CONF_DIR": str(conf),
                "SUBMARINE_STATE_DIR": str(scratch / "state"),
            },
            stdout=self.log,
            stderr=self.log,
        )

    async def page(self) -> WebSocketClientConnection:
        """Open the websocket of a page."""
        request = HTTPRequest(
            f"ws://127.0.0.1:{self.port}/submarine/api/v1/channel",
            headers={
                "Authorization": f"token {TOKEN}",
                "Origin": f"http://127.0.0.1:{self.port}",
            },
        )
        return await websocket_connect(request)

    async def first_page(self) -> WebSocketClientConnection:
        """Open a page as soon as the server answers."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return await self.page()
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
            await asyncio.sleep(0.2)

    def stop(self) -> None:
        """Stop the server."""
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


async def painted(page: WebSocketClientConnection) -> tuple[float, int]:
    """Return the seconds until a page has its jobs list, and the number of its rows."""
    began = time.monotonic()
    await page.write_message(json.dumps({"op": "subscribe", "id": 1, "kind": "jobs"}))
    while True:
        message = json.loads(await page.read_message() or "{}")
        if message.get("type") == "jobs":
            return time.monotonic() - began, len(message["rows"])


async def show(page: WebSocketClientConnection, job_ids: list[str]) -> None:
    """Open cards of these jobs in a page."""
    for number, job_id in enumerate(job_ids, 2):
        words = {"op": "subscribe", "id": number, "kind": "job", "job": job_id}
        await page.write_message(json.dumps(words))


async def drain(page: WebSocketClientConnection, counts: Counter[str]) -> None:
    """Count the messages to a page."""
    while (text := await page.read_message()) is not None:
        counts["messages"] += 1
        counts["bytes"] += len(text)


async def measure(options: argparse.Namespace, scratch: Path) -> bool:
    """Measure all figures; return whether the server is within the limits."""
    rm = ResourceManager()
    store = JobStore(scratch / "state" / "jobs.sqlite")
    rows = []
    for number in range(options.jobs):
        runs = number % (options.jobs // options.running) == 0
        rows.append(known(number, State.RUNNING if runs else State.SUCCEEDED))
        if runs:
            rm.apps[str((rows[-1].handle or {})["application_id"])] = rows[-1].job_id
    waits = [known(options.jobs + number, State.PENDING) for number in range(options.waiting)]
    for row in waits:
        rm.waiting[str((row.handle or {})["application_id"])] = row.job_id
    rows += waits
    store.put(rows[0])
    fill(scratch / "state" / "jobs.sqlite", rows)
    server = Server(scratch, rm)
    try:
        pages = [await server.first_page()]
        first, shown = await painted(pages[0])
        pages += [await server.page() for _ in range(options.pages - 1)]
        times = [(await painted(page))[0] for page in pages[1:]]
        counts: Counter[str] = Counter()
        tasks = [asyncio.create_task(drain(page, counts)) for page in pages]
        process = psutil.Process(server.process.pid)
        print(
            f"{options.jobs} jobs, {len(rm.apps)} running, {len(rm.waiting)} waiting, "
            f"{len(pages)} pages"
        )
        print(
            f"first list of a cold server {first:.2f} s, {shown} rows; the others at most "
            f"{max(times, default=0):.2f} s"
        )
        await asyncio.sleep(5)
        good = max(first, *times) < FIRST
        for name, every in (("quiet", 0), ("a submit every 5 s", 5)):
            good &= await stretch(name, options.seconds, every, process, rm, store, counts, options)
        for number, page in enumerate(pages):
            some = [waits[(number + step) % len(waits)].job_id for step in range(4) if waits]
            await show(page, list(dict.fromkeys(some)))
        name = f"the same, and {len(waits)} jobs that wait on display"
        good &= await stretch(name, options.seconds, 5, process, rm, store, counts, options)
        for task in tasks:
            task.cancel()
        return good
    finally:
        server.stop()


async def stretch(
    name: str,
    seconds: float,
    every: float,
    process: psutil.Process,
    rm: ResourceManager,
    store: JobStore,
    counts: Counter[str],
    options: argparse.Namespace,
) -> bool:
    """Measure the server for some time; return whether it is within the limits."""
    rm.asked.clear()
    counts.clear()
    before, began = process.cpu_times(), time.monotonic()
    while time.monotonic() - began < seconds:
        if every:
            number = options.jobs + options.waiting + len(rm.apps)
            row = known(number, State.RUNNING)
            rm.apps[str((row.handle or {})["application_id"])] = row.job_id
            await asyncio.to_thread(store.put, row)
        await asyncio.sleep(every or seconds)
    took, after = time.monotonic() - began, process.cpu_times()
    cpu = 100 * (after.user + after.system - before.user - before.system) / took
    memory = process.memory_info().rss / (1 << 20)
    polls = rm.asked["/apps"]
    calls = sum(rm.asked.values())
    print(
        f"{name}: {cpu:.1f} % of a core, {memory:.0f} MiB, {polls} polls with {calls} calls "
        f"{dict(rm.asked)} in {took:.0f} s, {counts['messages']} messages with "
        f"{counts['bytes'] >> 10} KiB"
    )
    return cpu < CPU and memory < MEMORY and calls <= 2 * polls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--waiting", type=int, default=20)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(0 if asyncio.run(measure(options, Path(scratch))) else 1)


if __name__ == "__main__":
    main()
