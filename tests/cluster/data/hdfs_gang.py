"""A distributed job of this machine whose job directory is on HDFS, behind a proxy that can close.

Coordinator, agents and programs are processes, as in ``tests.local.coordinator.gang_rig``; a closed
proxy is a NameNode that refuses connections.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.storage import Storage
from submarine_runtime.protocol.agent_config import JobStore
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.spec import Role
from tests.local.coordinator.gang_rig import GangRig


class ClosingProxy:
    """Passes TCP connections on to ``url`` until it is closed; opens again on the same port."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        self.open()
        self.url = f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        if self._listener is not None:
            # The thread that waits in accept() keeps the port until it is woken.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(near,), daemon=True).start()

    def _pass(self, near: socket.socket) -> None:
        """Carry one connection, both ways, to its end."""
        with near, suppress(OSError), socket.create_connection(self._target) as far:
            self._open |= {near, far}
            back = threading.Thread(target=self._carry, args=(far, near), daemon=True)
            back.start()
            self._carry(near, far)
            back.join()
            self._open -= {near, far}

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class HdfsGangRig(GangRig):
    """Its job directory on HDFS is copied to ``job_dir`` when the job has ended."""

    def __init__(self, root: Path, storage: Storage, place: str) -> None:
        super().__init__(root)
        self.storage, self.place = storage, place
        store = storage.job_store(place)
        self.proxy = ClosingProxy(store.webhdfs[0])
        self.store = JobStore("webhdfs", store.path, [self.proxy.url], store.user)

    def prepare(
        self,
        program: str,
        roles: list[Role],
        agent: dict[str, Any] | None = None,
        **config: Any,
    ) -> None:
        super().prepare(program, roles, agent, store=self.store, **config)

    def wait(self, seconds: float = 180.0) -> JobRecord:
        assert self.supervisor is not None
        self.supervisor.wait(seconds)
        self.proxy.close()
        for path, _ in self.storage.walk(self.place):
            target = self.job_dir / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.storage.read(f"{self.place}/{path}"))
        assert (self.job_dir / "record.json").exists(), self.story()
        return JobRecord.from_json(json.loads((self.job_dir / "record.json").read_text()))

    def stop_all(self) -> None:
        super().stop_all()
        self.proxy.close()
