"""The cell: namespaces in which the tests of this package run, as seen from outside."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from submarine_minicluster.hadoop import cache_dir

REPOSITORY = Path(__file__).parents[2]
CGROUPS = Path("/sys/fs/cgroup")
PREFIX = "submarine-test-"
"""Names of the control groups of cells start with this."""
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "blkio", "pids")
TOOLS = ("unshare", "nsenter", "setpriv", "ip", "mount")
_START_SECONDS = 30.0


def docker_dir() -> Path:
    """Return the directory with Docker and the files of an image (`scripts/setup.sh docker`)."""
    return cache_dir() / "docker"


def missing() -> str:
    """Return why this machine cannot have a cell; empty if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root of a Linux machine can make namespaces"
    if tools := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"{', '.join(tools)} of util-linux and iproute2 are missing"
    if not docker_dir().is_dir():
        return "Docker is not unpacked: run `scripts/setup.sh docker`"
    if not (CGROUPS / "devices").is_dir():
        return "there is no control group hierarchy for devices (cgroup v1)"
    if not os.access(CGROUPS / "devices", os.W_OK):
        return "control groups cannot be made here"
    attempt = ["unshare", "--mount", "--net", "--pid", "--fork", "--uts", "--ipc", "true"]
    if subprocess.run(attempt, capture_output=True, timeout=30, check=False).returncode:
        return "namespaces cannot be made here"
    return ""


class Cell:
    """Namespaces that end with one process.

    Attributes
    ----------
    group
        Name of the control group of everything in the cell, below each controller.
    """

    def __init__(self) -> None:
        _remove_groups()
        self.group = f"{PREFIX}{os.getpid()}"
        readable = [REPOSITORY, sys.prefix, sys.base_prefix, cache_dir()]
        plan = {"group": self.group, "readable": sorted({str(path) for path in readable})}
        namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        self._process = subprocess.Popen(
            ["unshare", *namespaces, "--mount-proc", sys.executable, "-m",
             "tests.containers.first_process", json.dumps(plan)],
            cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            self.close()
            raise RuntimeError("the cell did not start; its first process wrote the reason")
        self._first = self._find_first()

    def _find_first(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return int(children.read_text().split()[0])

    def command(
        self, words: Sequence[str], *, user: str = "root", env: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the command that runs `words` in the cell as a user, in the user's home."""
        home = pwd.getpwuid(0).pw_dir if user == "root" else f"/home/{user}"
        values = {"HOME": home, "USER": user, "LANG": "C.UTF-8", **(env or {})}
        values.setdefault("PATH", "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin")
        become = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        return [
            "nsenter", "--target", str(self._first), "--mount", "--net", "--pid", "--uts", "--ipc",
            *(become if user != "root" else ()),
            "env", "-i", "-C", home, *(f"{name}={value}" for name, value in values.items()), *words,
        ]  # fmt: skip

    def run(
        self,
        words: Sequence[str],
        *,
        user: str = "root",
        env: Mapping[str, str] | None = None,
        timeout: float = 120,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the cell and return its output, standard error included.

        Raises
        ------
        AssertionError
            If it fails and `check` is set, or with its output when it takes too long.
        """
        process = subprocess.Popen(
            self.command(words, user=user, env=env), text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"{list(words)} took more than {timeout} s:\n{output}") from None
        if check and process.returncode:
            raise AssertionError(f"{list(words)} ended with {process.returncode}:\n{output}")
        return subprocess.CompletedProcess(list(words), process.returncode, output)

    @contextmanager
    def background(self, words: Sequence[str], *, ready: str = "") -> Iterator[None]:
        """Run a command as root during the block, which begins when it has written `ready`."""
        process = subprocess.Popen(
            self.command(words), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            if ready and process.stdout.readline().strip() != ready:
                raise AssertionError(f"{list(words)} did not write {ready}")
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def path(self, inside: str | Path) -> Path:
        """Return the path by which this process reads a file of the cell."""
        return Path(f"/proc/{self._first}/root") / str(inside).lstrip("/")

    def write(self, inside: str, text: str, owner: str = "alice") -> str:
        """Write a file of the cell, below a directory that exists, and return its path there."""
        self.path(inside).write_text(text)
        self.run(["chown", f"{owner}:{owner}", inside])
        return inside

    def close(self) -> None:
        """End all processes of the cell and remove its control groups."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=_START_SECONDS)
        deadline = time.monotonic() + _START_SECONDS
        while _remove_groups(self.group) and time.monotonic() < deadline:
            time.sleep(0.1)


def _remove_groups(only: str = f"{PREFIX}*") -> bool:
    """Remove control groups without processes; return whether some remain."""
    remain = False
    for top in CGROUPS.glob(f"*/{only}"):
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                remain = True
    return remain
