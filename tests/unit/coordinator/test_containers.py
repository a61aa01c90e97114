"""Ends of containers, as YARN and the NodeManager report them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from submarine_runtime.coordinator.placement.yarn_placer import ending_of
from submarine_runtime.yarn import container_has_ended
from tests.unit.coordinator.helpers import config


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (404, {"RemoteException": {"exception": "NotFoundException"}}, True),
        (404, {}, False),
        (200, {"container": {"state": "DONE"}}, True),
        (200, {"container": {"state": "RUNNING"}}, False),
        (500, {}, False),
    ],
)
def test_the_node_manager_reports_the_end_of_a_container(
    status: int, body: object, gone: bool
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/ws/v1/node/containers/container_1"
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request).start()
    url = f"http://127.0.0.1:{server.server_port}/node/containerlogs/container_1/ada"
    assert container_has_ended(url, config(Path("/x"))) is gone
    server.server_close()
    assert container_has_ended(url, config(Path("/x"))) is False


@pytest.mark.parametrize(
    ("said", "reason", "detail"),
    [
        (
            "Container [pid=1] is running 5B beyond the 'PHYSICAL' memory limit. Current usage: "
            "4.1 GB of 4 GB physical memory used; 5 GB of 8 GB virtual memory used.",
            "out_of_memory",
            "The whole container used 4.1 GB of 4 GB.",
        ),
        ("Container released on a *lost* node", "node_lost", "Its node was lost."),
        ("Failed on local localizer", "localisation_failed", "Failed on local localizer"),
        (
            "Exception from container-launch.\nExit code: 7\nShell error output: No such image\n",
            "agent_lost",
            "Its container ended with exit code 7.",
        ),
        (
            "[2026-11-29]Container exited with a non-zero exit code 1. Error file: prelaunch.err.\n"
            "Last 4096 bytes of prelaunch.err :\nLast 4096 bytes of stderr :\n"
            "FileNotFoundError: lost node\x1b\n\n\n[2026-11-29]Container exited with 1.\n",
            "agent_lost",
            "Its container ended with exit code 1: FileNotFoundError: lost node",
        ),
        (
            "Container exited with a non-zero exit code 2. Error file: prelaunch.err.\n"
            "Last 4096 bytes of prelaunch.err :\n",
            "agent_lost",
            "Its container ended with exit code 2.",
        ),
        (
            "Container killed on request. Exit code is 143",
            "agent_lost",
            "Its container ended with exit code 143.",
        ),
        ("", "agent_lost", "YARN reports FAILED without a message."),
    ],
)
def test_yarn_messages_of_ended_containers(said: str, reason: str, detail: str) -> None:
    assert ending_of("FAILED", said) == {"reason": reason, "detail": detail}
