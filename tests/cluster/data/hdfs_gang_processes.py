"""A distributed job of this machine whose job directory is on HDFS, behind a proxy that can close.

Coordinator, agents and programs are processes, as in `GangProcesses`. A closed
proxy is a NameNode that refuses connections.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.model import read_record
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import JobRecord, JobStore, Role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.proxy import TcpProxy


class HdfsGangProcesses(GangProcesses):
    """Its job directory on HDFS is copied to ``job_dir`` when the job has ended."""

    def __init__(self, root: Path, storage: Storage, place: str) -> None:
        super().__init__(root)
        self.storage, self.place = storage, place
        store = storage.job_store(place)
        namenode = urlsplit(store.webhdfs[0])
        self.proxy = TcpProxy(namenode.port or 0, str(namenode.hostname))
        url = f"http://127.0.0.1:{self.proxy.port}"
        self.store = JobStore("webhdfs", store.path, [url], store.user)

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
        return read_record((self.job_dir / "record.json").read_text())

    def stop_all(self) -> None:
        super().stop_all()
        self.proxy.close()
