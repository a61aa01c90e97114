"""The registration of an agent in its gang; see ``register`` in ``protocol.link``."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from submarine_runtime.frameworks import process_count
from submarine_runtime.network import own_address
from submarine_runtime.protocol import SEAT_VARIABLE, AgentConfig, TaskRecord
from submarine_runtime.yarn import reachable_host


class Registration:
    """The ``register`` line's fields, computed for each connection.

    Parameters
    ----------
    port
        The agent's own port, from which logs are fetched.
    warn
        Called with a sentence if the requested interface does not exist.
    """

    def __init__(
        self, config: AgentConfig, task: TaskRecord, port: int, warn: Callable[[str], None]
    ) -> None:
        self._config = config
        self._task = task
        self._port = port
        self._warn = warn
        self._nonce = os.urandom(16).hex()

    def fields(
        self,
        local_address: str,
        ports: Sequence[int],
        devices: Sequence[str],
        running: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Return the fields.

        Parameters
        ----------
        local_address
            The local address of the connection to the coordinator.
        running
            ``epoch attempt state`` of the program that was started last.
        """
        config, task, environ = self._config, self._task, os.environ
        address, interface = self._network(local_address)
        host, port = environ.get("NM_HOST"), environ.get("NM_PORT")
        processes = process_count(
            config.spec.framework, config.task_role.processes, len(devices), gang=True
        )
        return {
            "task": task.task,
            "seat": environ.get(SEAT_VARIABLE, ""),
            "nonce": self._nonce,
            "container_id": task.container_id,
            "host": reachable_host(config.listen),
            "address": address,
            "pid": os.getpid(),
            "agent_port": self._port,
            "log_url": task.log_url,
            "ports": list(ports),
            "network": f"{interface} {address}".strip(),
            "gpus": list(devices),
            "node": f"{host}:{port}" if host and port else "local",
            "processes": processes,
            "extra": {"interface": interface},
            "running": running,
        }

    def _network(self, local_address: str) -> tuple[str, str]:
        local = self._config.record.backend == "local"
        try:
            return own_address(local_address, self._config.spec.network_interface, local)
        except ValueError as exc:
            self._warn(f"{exc}.")
            return own_address(local_address, None, local)
