"""Take the stacks of the tasks of a job from their agents, in parallel and in a thread."""

from __future__ import annotations

import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPSConnection
from typing import Any, Callable, Mapping, Sequence

from submarine_runtime.coordinator.machine import TakeStacks
from submarine_runtime.coordinator.server.agent_stream import AgentEndpoint
from submarine_runtime.network import port_request
from submarine_runtime.protocol import wire
from submarine_runtime.stacks import report
from submarine_runtime.translation import _

#: Agents that are asked at the same time, and seconds for the answer of each.
PARALLEL = 16
ANSWER_SECONDS = 5.0


class StackCollector:
    """Asks the agents.

    Parameters
    ----------
    endpoints
        Returns task -> address of its agent, for tasks with a connected agent.
    post
        Posts a message to the event loop.
    """

    def __init__(
        self,
        token: str,
        context: ssl.SSLContext,
        endpoints: Callable[[], dict[str, AgentEndpoint]],
        post: Callable[[dict[str, Any]], None],
    ) -> None:
        self._token, self._context = token, context
        self._endpoints, self._post = endpoints, post

    def start(self, action: TakeStacks, ranks: Mapping[str, int | None], limit: float) -> None:
        """Take the stacks for the state machine; the report is posted as ``stacks``."""

        def run() -> None:
            entries = self.collect(action.running)
            for entry in entries:
                if entry["rank"] is None:
                    entry["rank"] = ranks.get(entry["task"])
            entries += [
                {"task": task, "rank": ranks.get(task), "process": 0, "ended": True}
                for task in action.ended
            ]
            found = report(entries, limit)
            self._post(
                {
                    "type": "stacks",
                    "epoch": action.epoch,
                    "stalled": found.stalled,
                    "sentence": found.sentence,
                    "tasks": found.tasks,
                    "again": found.again,
                    "data": found.summary(),
                }
            )

        threading.Thread(target=run, name="stacks", daemon=True).start()

    def collect(self, tasks: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the entries of some tasks, or of all that are connected; see ``stacks.take``."""
        endpoints = self._endpoints()
        names = list(endpoints) if tasks is None else list(tasks)
        with ThreadPoolExecutor(PARALLEL) as pool:
            answers = pool.map(lambda name: self._ask(name, endpoints.get(name)), names)
            return [entry for entries in answers for entry in entries]

    def _ask(self, task: str, endpoint: AgentEndpoint | None) -> list[dict[str, Any]]:
        why = _("its agent is not connected")
        if endpoint is not None:
            connection = HTTPSConnection(
                endpoint.host, endpoint.port, timeout=ANSWER_SECONDS, context=self._context
            )
            try:
                answer = port_request(connection, self._token, "GET", f"{wire.STACKS}?raw=1")
                content = json.loads(answer.body)
                if answer.status == 200:
                    return [_checked(entry, task) for entry in content["entries"]]
                why = str(content["error"])[:300]
            except (OSError, HTTPException) as exc:
                why = _("its agent does not answer: {error}").format(error=exc)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
                why = _("its agent sent an invalid answer")
        note = _("no stack of {task}: {why}").format(task=task, why=why.rstrip("."))
        return [{"task": task, "rank": None, "process": 0, "note": note}]


def _checked(entry: Any, task: str) -> dict[str, Any]:
    """Return an entry with the types that ``report`` expects; raise ValueError or TypeError."""
    rank = entry.get("rank")
    return {
        "task": task,
        "rank": None if rank is None else int(rank),
        "process": int(entry["process"]),
        "quiet": float(entry.get("quiet") or 0.0),
        "state": str(entry.get("state") or "")[:1],
        "connected": bool(entry.get("connected")),
        "note": str(entry.get("note") or "")[:500],
        "frames": [_frame(one) for one in entry.get("frames") or ()],
        "threads": [[_frame(one) for one in frames] for frames in entry.get("threads") or ()],
    }


def _frame(frame: Any) -> dict[str, Any]:
    checked = {
        "file": str(frame["file"])[:300],
        "line": int(frame["line"]),
        "function": str(frame["function"])[:200],
    }
    if frame.get("own"):
        checked.update(own=True, code=str(frame.get("code") or "")[:200])
        if frame.get("cell"):
            checked["cell"] = str(frame["cell"])[:100]
    return checked
