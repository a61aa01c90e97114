"""Print the state of a node as one line of JSON; a task of ``submarine doctor --nodes`` runs this.

The program's argument is JSON: ``targets`` (triples of name, host and port), ``clock`` (addresses
of the ResourceManagers), ``ca`` (PEM), ``seconds`` (limit of each question). The job's Python (3.8
or newer) runs it. No question raises an exception or waits longer than its limit.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

#: First word of the line.
MARK = "submarine-doctor"
_NVIDIA = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
_DOCKER = ["docker", "info", "--format", "{{.ServerVersion}}"]
#: Seconds that the probes of a gang try to connect to each other, and then still accept.
_MEETING, _STAYING = 10.0, 5.0
_MAX_TEXT = 200


def python(_request: Mapping[str, Any]) -> dict[str, Any]:
    """Return version and path of this interpreter."""
    return {"version": ".".join(map(str, sys.version_info[:3])), "path": sys.executable}


def gpus(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of the GPUs and the version of their driver."""
    if shutil.which(_NVIDIA[0]) is None:
        return {"names": [], "driver": ""}
    lines = [line.split(", ") for line in _output(_NVIDIA, request["seconds"]).splitlines()]
    named = [line for line in lines if len(line) == 2]
    return {"names": [line[0] for line in named], "driver": named[0][1] if named else ""}


def disk(_request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the space of the disk with the directories of containers."""
    usage = shutil.disk_usage(os.getcwd())
    return {"free": usage.free, "used": usage.used / usage.total if usage.total else 1.0}


def clock(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return by how many seconds this clock is ahead of the ResourceManager's."""
    # A refusal has the time too, and that of an invalid token even with Kerberos.
    headers = {"X-Hadoop-Delegation-Token": "none"}
    context = ssl.create_default_context(cadata=request["ca"] or None)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    failure = "there is no ResourceManager"
    for url in request["clock"]:
        query = urllib.request.Request(f"{url}/ws/v1/cluster/info", headers=headers)  # noqa: S310 - of Hadoop's configuration
        before = time.time()
        try:
            with opener.open(query, timeout=request["seconds"]) as answer:
                stamp = answer.headers.get("Date")
        except urllib.error.HTTPError as exc:
            stamp = exc.headers.get("Date")
        except OSError as exc:
            failure = str(getattr(exc, "reason", exc))
            continue
        if stamp:
            now = (before + time.time()) / 2 - 0.5  # The header has no fractions.
            return {"ahead": round(now - parsedate_to_datetime(stamp).timestamp(), 1)}
        failure = "the ResourceManager does not say what time it has"
    raise OSError(failure)


def names(_request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host's name, its address, and the name of that address."""
    own = os.environ.get("NM_HOST") or socket.gethostname()
    address = socket.getaddrinfo(own, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    try:
        back = socket.gethostbyaddr(str(address))[0]
    except OSError:
        back = ""
    return {"name": own, "address": address, "back": back}


def ports(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the targets that cannot be reached, with the reason, and the number of all."""
    closed: dict[str, str] = {}

    def dial(name: str, host: str, port: int) -> None:
        try:
            socket.create_connection((host, port), request["seconds"] / 2).close()
        except OSError as exc:
            closed[f"{name} {host}:{port}"] = exc.strerror or str(exc) or type(exc).__name__

    targets = [tuple(one) for one in request["targets"]]
    threads = [threading.Thread(target=dial, args=one, daemon=True) for one in targets]
    for thread in threads:
        thread.start()
    for number, (name, host, port) in enumerate(targets):
        thread = threads[number]
        thread.join(request["seconds"])
        if thread.is_alive():
            closed[f"{name} {host}:{port}"] = "no answer"
    return {"count": len(targets), "closed": dict(closed)}


def docker(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return Docker's version; empty: there is no command."""
    if shutil.which(_DOCKER[0]) is None:
        return {"version": ""}
    return {"version": _output(_DOCKER, request["seconds"]).strip()[:_MAX_TEXT]}


def network(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the address by which this container sends, and whether that is the node's."""
    address = ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _name, host, port in request["targets"][:1]:
            probe.connect((host, port))  # Sends nothing.
            address = probe.getsockname()[0]
    inside = os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
    own = True
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        own = False
        probe.bind((os.environ.get("NM_HOST") or socket.gethostname(), 0))
        own = True
    return {"address": address, "container": inside, "own": own}


class Peers:
    """The other probes of the same job: each listens at its reserved port and dials the others."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        role, port = environ.get("SUBMARINE_ROLE", ""), environ.get("SUBMARINE_PORT")
        index = int(environ.get("SUBMARINE_INDEX") or 0)
        try:
            members = json.loads(environ.get("CLUSTER_SPEC") or "{}")
        except ValueError:
            members = {}
        self._others = [
            (f"{other}:{number}", address)
            for other, addresses in sorted(members.items())
            for number, address in enumerate(addresses)
            if (other, number) != (role, index)
        ]
        self._listener: socket.socket | None = None
        if self._others and port:
            self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                self._listener.setsockopt(socket.SOL_SOCKET, option, 1)
            self._listener.bind(("", int(port)))
            self._listener.listen(64)
            threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            with suppress(OSError):
                self._listener.accept()[0].close()

    def meet(self) -> dict[str, Any]:
        """Return the other probes that cannot be reached, and the number of all."""
        deadline = time.monotonic() + _MEETING
        closed = {name: "no answer" for name, _address in self._others}
        while closed and time.monotonic() < deadline:
            for name, address in self._others:
                if name in closed:
                    host, _colon, port = address.rpartition(":")
                    try:
                        socket.create_connection((host.strip("[]"), int(port)), 2.0).close()
                        del closed[name]
                    except OSError as exc:
                        closed[name] = exc.strerror or str(exc)
            time.sleep(0.1)
        return {"count": len(self._others), "closed": closed}

    def stay(self) -> None:
        """Accept for a while: the other tasks may have started later."""
        if self._others:
            time.sleep(_STAYING)


QUESTIONS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    one.__name__: one for one in (python, gpus, disk, clock, names, ports, docker, network)
}


def report(request: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the answers by the name of the question; ``error`` in place of an answer."""
    answers: dict[str, Any] = {}

    def ask(name: str, question: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        try:
            answers[name] = question(request)
        except Exception as exc:
            answers[name] = {"error": f"{exc or type(exc).__name__}"[:_MAX_TEXT]}

    threads = {
        name: threading.Thread(target=ask, args=(name, question), daemon=True)
        for name, question in QUESTIONS.items()
    }
    for thread in threads.values():
        thread.start()
    deadline = time.monotonic() + 2 * float(request["seconds"])
    for name, thread in threads.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            answers[name] = {"error": "no answer within the time limit"}
    return dict(answers)


def _output(command: Sequence[str], seconds: float) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
    )
    if done.returncode:
        text = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise OSError(text.rpartition("\n")[2][:_MAX_TEXT] or f"exit code {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def main(arguments: Sequence[str]) -> int:
    """Print the report."""
    request = json.loads(arguments[0])
    try:
        peers = Peers(os.environ)
    except OSError as exc:
        found: dict[str, Any] = {"count": 1, "closed": {"own port": str(exc)}}
        answers = report(request, os.environ)
    else:
        answers = report(request, os.environ)
        found = peers.meet()
    answers["peers"] = found
    answers["node"] = f"{os.environ.get('NM_HOST', '')}:{os.environ.get('NM_PORT', '')}"
    print(MARK, json.dumps(answers), flush=True)
    if found["count"] and "own port" not in found["closed"]:
        peers.stay()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
