"""One task of a distributed job: join the gang, run the program on each start order, leave.

The coordinator decides and writes the job's record; the agent keeps its program, its logs and its
outputs. Its parts: ``link``, ``orders``, ``task_run``, ``attempt``.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Mapping

from submarine_runtime.agent.gang_task.end_messages import ended_line
from submarine_runtime.agent.gang_task.orders import Orders
from submarine_runtime.agent.gang_task.registration import Registration
from submarine_runtime.agent.gang_task.task_end import (
    TERMINATION_SECONDS,
    leave,
    link_lost,
    terminate,
)
from submarine_runtime.agent.gang_task.task_run import TaskContext, TaskRun
from submarine_runtime.agent.gang_task.task_status import TaskStatus
from submarine_runtime.agent.link import Link
from submarine_runtime.agent.outputs import VersionSaver
from submarine_runtime.agent.preparation import Preparation
from submarine_runtime.agent.program import Ending, SigtermInterrupt, Wakeup
from submarine_runtime.agent.shipping import LogFiles, LogShippingThread
from submarine_runtime.frameworks import setting_of
from submarine_runtime.network import PortRangeError, Reservation, bind_port
from submarine_runtime.protocol import (
    COORDINATOR_VARIABLE,
    TASK_VARIABLE,
    AgentConfig,
    EndReason,
    expected_members,
)
from submarine_runtime.protocol.layout import split_task
from submarine_runtime.record import new_record
from submarine_runtime.storage import Scratch, TokenRefresh, WriteGate, open_store
from submarine_runtime.translation import _
from submarine_runtime.yarn import wait_reporter, write_traceback


class TaskAgent:
    """Runs one task; ``run`` is called once.

    Parameters
    ----------
    secret
        ``token``, ``certificate`` and ``key`` of the job.
    directory
        Working directory of the container.

    Raises
    ------
    ValueError
        If the environment does not identify the task.
    """

    def __init__(self, config: AgentConfig, secret: Mapping[str, str], directory: str) -> None:
        environ = os.environ
        self._task = environ[TASK_VARIABLE]
        role, config.index = split_task(self._task)
        if role != config.role:
            raise ValueError(f"{TASK_VARIABLE}={self._task}, but agent.json is of {config.role}")
        host, _unused, port = environ[COORDINATOR_VARIABLE].rpartition(":")
        self._config = config
        self._secret = secret
        self._run: TaskRun | None = None
        wakeup = Wakeup()
        scratch = Scratch.of(directory, config, environ)
        orders = Orders(wakeup.wake, wakeup.wait)
        gate = WriteGate()
        store = open_store(config.store)
        store.gate = gate.check
        link = Link(
            (host.strip("[]"), int(port)),
            secret,
            self._fields,
            lambda: self._context.status.measures(),
            self._receive,
            self._on_silence,
            self._on_over,
            gate,
        )
        status = TaskStatus(new_record(config, self._task), link.send)
        store.on_wait = wait_reporter(status.report_wait)
        self._context = TaskContext(
            config=config,
            store=store,
            scratch=scratch,
            status=status,
            wakeup=wakeup,
            orders=orders,
            link=link,
            shipping=LogShippingThread(
                lambda sentence: status.event(
                    "warning", _("Shipping waits: {sentence}").format(sentence=sentence)
                ),
                wakeup.wake,
            ),
            logs=LogFiles(scratch),
            ports=Reservation(0),
        )
        self._tokens = TokenRefresh(
            config.store, store, lambda sentence: status.event("warning", sentence)
        )
        self._listener, self._failed_port = _listener(config)
        self._registration = Registration(
            config,
            status.first_task,
            int(self._listener.getsockname()[1]),
            lambda sentence: status.event("warning", sentence),
        )
        self._versions = VersionSaver(self._context.store, scratch, link.send)
        self._preparing = Preparation(
            config,
            self._context.store,
            scratch,
            wakeup.wait,
            status.event,
            lambda detail, share: link.send(
                {"type": "state", "state": "preparing", "detail": detail, "progress": share}
            ),
            lambda: orders.must_end,
        )
        self._context.resources = self._preparing.resources
        self._serving = False

    def run(self) -> int:
        """Run the task; return the agent's exit code: 0 if the coordinator released it."""
        try:
            return self._live()
        except SigtermInterrupt:
            return terminate(self._context, self._run)
        except Exception as exc:
            if self._context.wakeup.terminated:
                return terminate(self._context, self._run)
            write_traceback()
            if self._run is not None:
                self._run.fence()
            self._report_unstarted(
                Ending(EndReason.AGENT_LOST, _("The agent failed: {error!r}").format(error=exc))
            )
            self._context.link.wait_sent(TERMINATION_SECONDS)
            return 1
        finally:
            self._preparing.release()

    def _live(self) -> int:
        context = self._context
        failed = self._preparing.claim_devices()
        context.devices = self._preparing.devices
        context.measured = context.devices if self._preparing.driver else ()
        failed = failed or self._failed_port or self._reserve_ports()
        self._tokens.start(watch=False)
        context.link.start()
        failed = failed or self._preparing.place()
        if not context.orders.wait_welcome():
            return link_lost(context, self._run)
        failed = failed or self._preparing.unpack_environment()
        failed = failed or self._preparing.fetch(expected_members(self._config.spec.roles))
        if failed is not None:
            self._report_unstarted(failed)
        else:
            context.link.send({"type": "state", "state": "ready"})
        while True:
            order = context.orders.get()
            if order is None:
                return link_lost(context, self._run)
            kind = order.get("type")
            if kind == "start":
                self._start(order)
            elif kind == "ports":
                kept = self._reserve_ports()
                if kept is not None:  # The earlier ones are still reserved.
                    context.status.event("warning", kept.detail)
                context.link.send({"type": "ports", "ports": list(context.ports.ports)})
            elif kind == "save":
                self._versions.save(order)
            elif kind == "leave":
                return leave(context, self._run, order)

    def _receive(self, order: dict[str, Any]) -> None:
        """Queue an order of the coordinator; tokens are used at once, in the link's thread."""
        if order.get("type") != "tokens":
            self._context.orders.add(order)
            return
        try:
            self._tokens.receive(str(order.get("tokens")))
        except ValueError:
            self._context.status.event("warning", _("The coordinator sent malformed tokens."))

    def _start(self, order: Mapping[str, Any]) -> None:
        before = self._run
        if before is not None:
            if not before.is_newer(order):
                return  # A repeated order.
            before.end_helpers()
            before.give_up_saving()
            before.wait_idle(self._config.save_grace)
        self._run = TaskRun(
            self._context, order, self._preparing.fetch, self._versions.save, self._serve
        )
        self._run.run()

    def _report_unstarted(self, ending: Ending) -> None:
        """Report that the program has not been started, and will not be."""
        run = self._run
        epoch, attempt = (run.epoch, run.attempt_number) if run is not None else (0, 0)
        self._context.link.send(ended_line(ending, epoch, attempt, {}, {}))

    def _reserve_ports(self) -> Ending | None:
        """Reserve as many ports as the framework needs, instead of earlier ones."""
        old = self._context.ports
        try:
            count = int(setting_of(self._config.spec.framework, "PORTS"))
            self._context.ports = Reservation(count, self._config.port_range)
        except (ValueError, OSError) as exc:
            return Ending(EndReason.LAUNCH_FAILED, str(exc)[:500])
        old.release()
        return None

    def _fields(self, seen: str) -> dict[str, Any]:
        """Return the fields of the registration."""
        run, context = self._run, self._context
        running = None
        if run is not None:
            running = {"epoch": run.epoch, "attempt": run.attempt_number, "state": run.phase}
            running["synced"] = run.synced
        return self._registration.fields(seen, context.ports.ports, context.devices, running)

    def _on_silence(self) -> None:
        if self._run is not None:
            self._run.fence()
        self._context.wakeup.wake()

    def _on_over(self) -> None:
        """Handle the end of the link; after a refusal another attempt may write."""
        if self._context.link.refused is not None and self._run is not None:
            self._run.fence()
        self._context.orders.close()

    def _serve(self) -> None:
        """Serve on the agent's port after the program has started: loading the server is slow."""
        if self._serving:
            return
        self._serving = True
        # cost: the program starts before they are loaded.
        from submarine_runtime.agent.live import LiveRequests
        from submarine_runtime.network import Tunnels
        from submarine_runtime.port import PortServer

        context = self._context
        tunnels = Tunnels(context.scratch.root)
        server = PortServer(self._listener, self._secret)
        requests = LiveRequests(
            context.status,
            self._task,
            context.logs,
            tunnels,
            take_stacks=lambda: self._run.attempt.stacks() if self._run is not None else [],
        )
        server.set_handlers(requests.accept)
        server.serve_in_background()


def _listener(config: AgentConfig) -> tuple[socket.socket, Ending | None]:
    """Return the listener of the agent's port, and the failure if its range is full.

    The coordinator learns of the failure over the link; until then a port that no other machine
    reaches stands for the missing one.
    """
    try:
        return bind_port(config.listen, ports=config.port_range), None
    except PortRangeError as exc:
        return bind_port("127.0.0.1"), Ending(EndReason.LAUNCH_FAILED, str(exc))
