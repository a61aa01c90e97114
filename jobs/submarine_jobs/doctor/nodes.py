"""``submarine doctor --nodes``: run a small probe on nodes, and judge what it reports.

The probes are jobs: one role for each host, placed by its name. Few run at once
(``probes_at_once``); a job whose nodes are busy starts with those that have room, and the others
become rows without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from submarine_jobs.doctor.cluster import MAX_SKEW
from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.node_probe import MARK, QUESTIONS
from submarine_jobs.doctor.result import Status
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.options import RoleOptions, RunOptions, spec_from_options
from submarine_jobs.program import Bundle, Cell, build_bundle
from submarine_jobs.text import size
from submarine_runtime.translation import _, ngettext
from submarine_runtime.yarn import Node, Size, find_queue, nodes_of, queues_of

if TYPE_CHECKING:
    from submarine_jobs.client import Session

#: Nodes without ``--all`` or ``--node-list``, and the largest number of probes of one job.
DEFAULT_NODES = MAX_AT_ONCE = 20
#: Share of the queue that probes and their master use at most.
QUEUE_SHARE = 0.05
#: Seconds: limit of each question of a probe, of the wait for containers, and of a probe's run.
QUESTION_SECONDS, CONTAINER_SECONDS, PROBE_SECONDS = 6.0, 90.0, 90.0
_JOB_SECONDS = 2 * CONTAINER_SECONDS + PROBE_SECONDS
_MEMORY = 128
_PROBE = Path(__file__).with_name("node_probe.py")
_MAX_USED, _LEAST_FREE = 0.90, 1 << 30
_OLDEST_PYTHON = (3, 8)
COLUMNS = ("node", "Python", "GPUs", "driver", "disk", "clock", "DNS", "ports", "Docker", "network")


@dataclass
class NodeRow:
    """One row of the table.

    Parameters
    ----------
    cells
        Column -> text, without the node.
    problems
        Sentences, each with a fix.
    """

    node: str
    status: Status = Status.OK
    cells: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    report: Mapping[str, Any] = field(default_factory=dict)

    def add(self, status: Status, sentence: str, fix: str) -> None:
        """Add a problem."""
        self.problems.append((sentence, fix))
        if self.status is not Status.ERROR:
            self.status = status

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "node": self.node,
            "status": self.status.value,
            "cells": self.cells,
            "problems": [{"sentence": one, "fix": fix} for one, fix in self.problems],
            "report": dict(self.report),
        }


def choose_nodes(nodes: Sequence[Node], listed: Sequence[str], *, everything: bool) -> list[Node]:
    """Return the running nodes to probe, in the order of their names.

    Parameters
    ----------
    listed
        Host names, or names with the port of the NodeManager; empty: the first
        ``DEFAULT_NODES`` nodes, or all.

    Raises
    ------
    UsageError
        If a listed node does not run.
    """
    running = sorted((node for node in nodes if node.running), key=lambda node: node.name)
    names = {name for node in running for name in (node.host, node.name)}
    for name in listed:
        if name not in names:
            hosts = list(dict.fromkeys(node.host for node in running))
            some = ", ".join(hosts[:5]) or _("none")
            raise UsageError(
                _("There is no running node {name}.").format(name=name[:100]),
                _("Running nodes are {some}{more}.").format(
                    some=some, more=" …" if len(hosts) > 5 else ""
                ),
            )
    if listed:
        return [node for node in running if node.host in listed or node.name in listed]
    return running if everything else running[:DEFAULT_NODES]


def probes_at_once(queue: Size | None, master: Size, probe: Size) -> int:
    """Return how many probes run at once: with their master 5 % of the queue, at least one.

    Parameters
    ----------
    queue
        Resources of the queue; None: unknown, so one.
    """
    if queue is None:
        return 1
    counts = [
        int((limit * QUEUE_SHARE - base) // each)
        for limit, base, each in ((queue.memory, master.memory, probe.memory),
                                  (queue.vcores, master.vcores, probe.vcores))
        if limit > 0 and each > 0
    ]  # fmt: skip
    return max(1, min([*counts, MAX_AT_ONCE])) if counts else 1


def probe_nodes(
    session: Session,
    context: DoctorContext,
    nodes: Sequence[Node],
    say: Callable[[str], None],
) -> list[NodeRow]:
    """Run the probe on ``nodes``; return their rows in the same order.

    Raises
    ------
    SubmarineError
        If the cluster refuses the first job: nothing ran.
    """
    bundle = _bundle()
    hosts: dict[str, list[Node]] = {}
    for node in nodes:
        hosts.setdefault(node.host, []).append(node)
    spec = _spec(context, bundle, nodes)
    count = _at_once(context, _with_roles(spec, [nodes[:1]]))
    rows: dict[str, NodeRow] = {}
    done = 0
    for batch in _batches(list(hosts.values()), count):
        probed = [node for group in batch for node in group]
        say(
            _("Probing {first} to {last} of {count} nodes.").format(
                first=done + 1, last=done + len(probed), count=len(nodes)
            )
        )
        found, why = _try(session, _with_roles(spec, batch), bundle, first=not rows)
        for group in batch:
            answers = found
            if len(batch) > 1 and any(not _answer(found, node, group) for node in group):
                # Others had room earlier, and the job started without it.
                answers, why = _try(session, _with_roles(spec, [group]), bundle)
            for node in group:
                rows[node.name] = judge(node.name, _answer(answers, node, group), why)
        done += len(probed)
    return [rows[node.name] for node in nodes]


def _try(
    session: Session, spec: JobSpec, bundle: Bundle, *, first: bool = False
) -> tuple[dict[str, Any], str]:
    """Run a job; unless it is the first, a refusal is only the reason of missing reports."""
    try:
        return _run(session, spec, bundle)
    except SubmarineError as exc:
        if first:
            raise
        return {}, exc.message


def _answer(answers: Mapping[str, Any], node: Node, group: Sequence[Node]) -> Any:
    """Return the report of a node; that of a host with one NodeManager whatever its port."""
    if node.name in answers or len(group) > 1:
        return answers.get(node.name)
    return next((one for name, one in answers.items() if name.split(":")[0] == node.host), None)


def _batches(hosts: list[list[Node]], count: int) -> Iterator[list[list[Node]]]:
    """Yield hosts with at most ``count`` nodes together; a host is never divided."""
    batch: list[list[Node]] = []
    for group in hosts:
        if batch and sum(map(len, batch)) + len(group) > count:
            yield batch
            batch = []
        batch.append(group)
    if batch:
        yield batch


def _bundle() -> Bundle:
    return build_bundle([Cell("probe", _PROBE.read_text(encoding="utf-8"))])


def _spec(context: DoctorContext, bundle: Bundle, nodes: Sequence[Node]) -> JobSpec:
    conf, access = context.conf, context.yarn.identity.access
    targets = [(_("ResourceManager"), *_place(url)) for url in conf.resourcemanagers]
    targets += [("WebHDFS", *_place(url)) for url in conf.webhdfs]
    name_node = urlsplit(conf.default_fs).netloc
    if ":" in name_node:
        targets.append(("NameNode", *_place(conf.default_fs)))
    addresses = {node["nodeHTTPAddress"] for node in _raw_nodes(context) if _is_one(node, nodes)}
    targets += [("NodeManager", *_place(f"//{one}")) for one in sorted(addresses)[:MAX_AT_ONCE]]
    request = {
        "targets": targets,
        "clock": list(conf.resourcemanagers),
        "ca": access.ca,
        "seconds": QUESTION_SECONDS,
    }
    options = RunOptions(
        name="doctor",
        args=(json.dumps(request),),
        roles=(RoleOptions("worker", 1),),
        memory=_MEMORY,
        framework="any",
    )
    return replace(
        spec_from_options(options, context.profile, bundle),
        timeout=PROBE_SECONDS,
        gang_timeout=CONTAINER_SECONDS,
        gang_retries=0,
        max_restarts=0,
        policy="fraction",
        allowed_failures=1.0,
    )


def _raw_nodes(context: DoctorContext) -> list[dict[str, Any]]:
    answer = context.rm_response("/nodes") or {}
    found = (answer.get("nodes") or {}).get("node") or []
    return [one for one in found if isinstance(one, dict) and one.get("nodeHTTPAddress")]


def _is_one(raw: Mapping[str, Any], nodes: Sequence[Node]) -> bool:
    return raw.get("id") in {node.name for node in nodes}


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 0


def _with_roles(spec: JobSpec, hosts: Sequence[Sequence[Node]]) -> JobSpec:
    """Return the spec with one role for each host; the job starts with those that have room."""
    roles = [
        Role(
            f"node{number}",
            len(group),
            Resources(memory=_MEMORY),
            nodes=(group[0].host,),
            spread=len(group) > 1,
            least=0 if len(hosts) > 1 else None,
        )
        for number, group in enumerate(hosts)
    ]
    return replace(spec, roles=tuple(roles))


def _at_once(context: DoctorContext, spec: JobSpec) -> int:
    plan = context.yarn.plan(spec)
    if plan.errors:
        raise UsageError(plan.errors[0], _("Choose another queue with --queue."))
    master, probe = (Size(int(one["memory"]), int(one["vcores"]), 0) for one in plan.containers[:2])
    queue = find_queue(queues_of(context.rm_response("/scheduler")), str(plan.extra["queue"]))
    limit = queue.limit if queue is not None else None
    return probes_at_once(limit, master, probe)


def _run(session: Session, spec: JobSpec, bundle: Bundle) -> tuple[dict[str, Any], str]:
    """Run one job; return the reports by ``host:port`` of the node, and why others lack."""
    job = session.submit(spec, bundle)
    try:
        record = job.wait(_JOB_SECONDS, on_interrupt="cancel")
    except TimeoutError:
        record = job.cancel(_("doctor: the probes took too long"))
    answers: dict[str, Any] = {}
    for task in job.task_names:
        report = read_report(job.log("stdout", task=task).data)
        if report is not None:
            answers[str(report.get("node"))] = report
    why = record.detail or (record.pending or "")
    return answers, why


def read_report(output: bytes) -> dict[str, Any] | None:
    """Return the report in a probe's output; None if there is none. The output is untrusted."""
    for line in output.decode("utf-8", "replace").splitlines():
        if line.startswith(f"{MARK} "):
            try:
                found = json.loads(line[len(MARK) :])
            except (ValueError, RecursionError):
                return None
            return found if isinstance(found, dict) else None
    return None


def judge(name: str, report: Mapping[str, Any] | None, why: str = "") -> NodeRow:
    """Return the row of a node.

    Parameters
    ----------
    report
        What its probe has printed; None: nothing.
    why
        The reason that the job gives for that.
    """
    row = NodeRow(name, report=report or {})
    if report is None:
        row.add(
            Status.ERROR,
            _("The node gave no answer{why}").format(why=f": {why}" if why else "."),
            _("See its NodeManager's page and log, and `submarine logs` of the job doctor."),
        )
        return row
    for question in (*QUESTIONS, "peers"):
        answer = report.get(question)
        if not isinstance(answer, dict) or "error" in answer:
            _judge_failure(row, question, answer)
        else:
            try:
                _JUDGES[question](row, answer)
            except (KeyError, TypeError, ValueError) as exc:
                _judge_failure(row, question, {"error": f"{type(exc).__name__}: {exc}"})
    return row


#: Question -> column.
_COLUMN = {
    "python": "Python",
    "gpus": "GPUs",
    "disk": "disk",
    "clock": "clock",
    "names": "DNS",
    "ports": "ports",
    "docker": "Docker",
    "network": "network",
    "peers": "ports",
}
#: Questions of which a failure prevents no job.
_OPTIONAL = frozenset({"gpus", "docker", "clock"})


def _judge_failure(row: NodeRow, question: str, answer: Any) -> None:
    error = str(answer.get("error") if isinstance(answer, dict) else _("no answer"))[:200]
    row.cells[_COLUMN[question]] = "?"
    row.add(
        Status.WARNING if question in _OPTIONAL else Status.ERROR,
        _("{column} cannot be determined: {error}.").format(
            column=_COLUMN[question], error=error.rstrip(".")
        ),
        _("Run `submarine doctor --node` there."),
    )


def _judge_python(row: NodeRow, answer: Mapping[str, Any]) -> None:
    version = str(answer["version"])[:20]
    row.cells["Python"] = version
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_PYTHON:
        row.add(
            Status.ERROR,
            _("{path} is Python {version}, and jobs need 3.8 or newer.").format(
                path=str(answer["path"])[:200], version=version
            ),
            _("Choose another python_env."),
        )


def _judge_gpus(row: NodeRow, answer: Mapping[str, Any]) -> None:
    names = [str(name)[:40] for name in answer["names"]]
    row.cells["GPUs"] = f"{len(names)} {names[0]}" if names else "0"
    row.cells["driver"] = str(answer["driver"])[:20] or "-"


def _judge_disk(row: NodeRow, answer: Mapping[str, Any]) -> None:
    free, used = int(answer["free"]), float(answer["used"])
    row.cells["disk"] = _("{free} free").format(free=size(free))
    if used > _MAX_USED or free < _LEAST_FREE:
        row.add(
            Status.ERROR if used > _MAX_USED else Status.WARNING,
            _("The disk of the containers is {used:.0%} full.").format(used=used),
            _("Free some space; YARN stops using a disk above 90 %."),
        )


def _judge_clock(row: NodeRow, answer: Mapping[str, Any]) -> None:
    ahead = float(answer["ahead"])
    row.cells["clock"] = f"{ahead:+.0f} s"
    if abs(ahead) > MAX_SKEW:
        row.add(
            Status.WARNING,
            _("The clock is {seconds:.0f} s off the ResourceManager's.").format(seconds=abs(ahead)),
            _("Synchronize both with NTP; Kerberos fails at 300 s."),
        )


def _judge_names(row: NodeRow, answer: Mapping[str, Any]) -> None:
    name, address, back = (str(answer[key])[:100] for key in ("name", "address", "back"))
    row.cells["DNS"] = f"{address} {back or '-'}"
    if not back:
        row.add(
            Status.WARNING,
            _("{name} is {address}, but {address} has no name.").format(name=name, address=address),
            _("Add the reverse entry to the DNS or to /etc/hosts."),
        )


def _judge_ports(row: NodeRow, answer: Mapping[str, Any]) -> None:
    closed, count = dict(answer["closed"]), int(answer["count"])
    row.cells["ports"] = f"{count - len(closed)}/{count}"
    _add_closed(row, closed)


def _judge_peers(row: NodeRow, answer: Mapping[str, Any]) -> None:
    closed, count = dict(answer["closed"]), int(answer["count"])
    if count:
        row.cells["ports"] = f"{row.cells.get('ports', '?')}, {count - len(closed)}/{count}"
    _add_closed(row, closed)


def _add_closed(row: NodeRow, closed: Mapping[str, Any]) -> None:
    if closed:
        listed = "; ".join(f"{name}: {why}" for name, why in list(closed.items())[:5])
        row.add(
            Status.ERROR,
            _("Cannot be reached from there: {listed}.").format(listed=listed[:400]),
            _("See the table of ports for firewalls, and the setting port_range."),
        )


def _judge_docker(row: NodeRow, answer: Mapping[str, Any]) -> None:
    row.cells["Docker"] = str(answer["version"])[:20] or "-"


def _judge_network(row: NodeRow, answer: Mapping[str, Any]) -> None:
    row.cells["network"] = str(answer["address"])[:40] or "-"
    if not answer["own"]:
        row.add(
            Status.WARNING,
            _("The container has another address than its node: other tasks cannot reach it."),
            _("Run Docker containers with the network host, setting docker_network."),
        )


_JUDGES: Mapping[str, Callable[[NodeRow, Mapping[str, Any]], None]] = {
    "python": _judge_python,
    "gpus": _judge_gpus,
    "disk": _judge_disk,
    "clock": _judge_clock,
    "names": _judge_names,
    "ports": _judge_ports,
    "docker": _judge_docker,
    "network": _judge_network,
    "peers": _judge_peers,
}


def table_rows(rows: Sequence[NodeRow]) -> list[tuple[str, ...]]:
    """Return the cells of the table, in the order of ``COLUMNS``."""
    return [(row.node, *(row.cells.get(column, "-") for column in COLUMNS[1:])) for row in rows]


def summary(rows: Sequence[NodeRow], running: int) -> str:
    """Return the last line: how many nodes were probed, and how many have problems."""
    bad = sum(row.status is not Status.OK for row in rows)
    return _("{probed} of {nodes} probed, {bad}.").format(
        probed=len(rows),
        nodes=ngettext("{count} running node", "{count} running nodes", running).format(
            count=running
        ),
        bad=ngettext("{count} with a problem", "{count} with problems", bad).format(count=bad),
    )


def running_nodes(context: DoctorContext) -> list[Node]:
    """Return the nodes of the ResourceManager's answer."""
    return nodes_of(context.rm_response("/nodes"))
