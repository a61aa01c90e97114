"""A laptop that reaches only the edge node, by SSH: forwards of the cluster's ports and of a range.

The laptop is a network namespace; the edge node is this machine, with an sshd of its own. The
cluster listens on addresses of the edge node that the laptop does not reach.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import cache_dir
from tests.waiting import until

EDGE, LAPTOP, SSH_PORT = "10.213.77.1", "10.213.77.2", 2222
#: The job's ports on the nodes, and on the laptop by the forwards.
FIRST, LAST = 28700, 28707
DAEMONS = ("rm", "rm-http", "namenode", "namenode-http", "datanode", "datanode-http")
#: `scripts/setup.sh ssh` unpacks Debian's openssh-server there.
UNPACKED = cache_dir() / "ssh"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(
        not (shutil.which("ssh") and shutil.which("ip") and shutil.which("nsenter")),
        reason="there is no ssh, ip or nsenter on this machine",
    ),
]


def sshd() -> list[str]:
    """Return the command of an SSH server with its libraries; skip without one."""
    found = shutil.which("sshd", path=f"{os.defpath}:/usr/sbin")
    if found:
        return [found]
    unpacked = UNPACKED / "usr" / "sbin" / "sshd"
    if not unpacked.is_file():
        pytest.skip("there is no sshd: scripts/setup.sh ssh unpacks one")
    libraries = ":".join(str(path) for path in UNPACKED.glob("*lib/x86_64-linux-gnu"))
    libraries += ":" + ":".join(str(path) for path in UNPACKED.glob("usr/lib/*-linux-gnu"))
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(unpacked)]


def command(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=30)


class Edge:
    """The laptop's namespace and the edge node's SSH server."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes = ExitStack()
        self._link = f"sub{os.getpid() % 100000}"

    def _start(self, words: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        with (self._directory / log).open("wb") as file:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )

        def end() -> None:
            process.terminate()
            process.wait(20)

        self._processes.callback(end)
        return process

    def open(self) -> None:
        server = sshd()
        laptop = self._start(["unshare", "--net", "sleep", "3600"], "laptop.log")
        self.pid = laptop.pid
        until(lambda: os.readlink(f"/proc/{self.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
        command("ip", "link", "add", self._link, "type", "veth", "peer", "name", f"{self._link}l",
                "netns", str(self.pid))  # fmt: skip
        command("ip", "addr", "add", f"{EDGE}/30", "dev", self._link)
        command("ip", "link", "set", self._link, "up")
        for words in (
            ("addr", "add", f"{LAPTOP}/30", "dev", f"{self._link}l"),
            ("link", "set", f"{self._link}l", "up"),
            ("link", "set", "lo", "up"),
        ):
            command(*self.on_laptop("ip", *words))
        for key in ("host_key", "id"):
            command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.file(key)))
        config = (
            f"Port {SSH_PORT}\nListenAddress {EDGE}\nHostKey {self.file('host_key')}\n"
            f"AuthorizedKeysFile {self.file('id.pub')}\nPidFile none\nStrictModes no\n"
            "UsePAM no\nPasswordAuthentication no\n"
        )
        self.file("sshd_config").write_text(config)
        # sshd needs a user of its own: in a mount namespace, so that /etc stays as it is.
        users = Path("/etc/passwd").read_text()
        if "\nsshd:" not in users:
            users += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
        self.file("passwd").write_text(users)
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
        script = f'mount --bind "{self.file("passwd")}" /etc/passwd && exec "$@"'
        run = [*server, "-D", "-e", "-f", str(self.file("sshd_config"))]
        self._start(["unshare", "--mount", "sh", "-c", script, "sh", *run], "sshd.log")
        until(lambda: "listening" in self.file("sshd.log").read_text(), self._log)

    def _log(self) -> str:
        return self.file("sshd.log").read_text()[-2000:]

    def file(self, name: str) -> Path:
        return self._directory / name

    def on_laptop(self, *words: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *words]

    def forward(self, ports: Sequence[int]) -> None:
        """Run the documented command on the laptop."""
        forwards = [word for port in ports for word in ("-L", f"{port}:127.0.0.1:{port}")]
        options = ["-i", str(self.file("id")), "-p", str(SSH_PORT), "-F", "none"]
        for name, value in (
            ("StrictHostKeyChecking", "no"),
            ("UserKnownHostsFile", "/dev/null"),
            ("ExitOnForwardFailure", "yes"),
        ):
            options += ["-o", f"{name}={value}"]
        words = self.on_laptop("ssh", "-N", *options, *forwards, f"root@{EDGE}")
        self._start(words, "ssh.log")
        until(lambda: "Accepted publickey" in self._log(), self._log)
        time.sleep(0.5)

    def close(self) -> None:
        self._processes.close()
        subprocess.run(["ip", "link", "del", self._link], capture_output=True, timeout=30)


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    made = Edge(tmp_path)
    try:
        made.open()
        yield made
    finally:
        made.close()


def test_a_laptop_submits_and_follows_a_job_through_forwards(
    edge: Edge, minicluster: Minicluster, tmp_path: Path
) -> None:
    environ = {
        **os.environ,
        **minicluster.environ(),
        "SUBMARINE_STATE_DIR": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path),
    }

    def submarine(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            edge.on_laptop(sys.executable, "-m", "submarine_jobs.cli", *words),
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=400,
        )

    def ports_of_doctor() -> str:
        checks = json.loads(submarine("doctor", "--json").stdout)["checks"]
        return str(next(one["status"] for one in checks if one["name"] == "ports"))

    assert ports_of_doctor() == "error", "the laptop must not reach the cluster"
    edge.forward([*(minicluster.saved.ports[name] for name in DAEMONS), *range(FIRST, LAST + 1)])
    assert ports_of_doctor() == "ok"
    (tmp_path / "hello.py").write_text("import time\nprint('hello', flush=True)\ntime.sleep(90)\n")
    try:
        done = submarine(
            "run", "hello.py", "--memory", "200M", "--conf", f"port_range={FIRST}-{LAST}", "--json"
        )
        assert done.returncode == 0, done.stderr
        job = json.loads(done.stdout)["job_id"]
        # Only the job's port has the status of the running program.
        live = (
            "import sys; from submarine_jobs.client import Session\\n"
            "from submarine_jobs.config import load_config\\n"
            "job = Session(load_config().profile).job(sys.argv[1])\\n"
            "agent = job.agent()\\n"
            "print(agent.status().state.value if agent else 'none')"
        ).replace("\\n", "\n")

        def state() -> str | None:
            asked = subprocess.run(
                edge.on_laptop(sys.executable, "-c", live, job),
                env=environ,
                capture_output=True,
                text=True,
                timeout=100,
            )
            return asked.stdout if asked.stdout == "RUNNING\n" else None

        until(state)
        assert "hello" in submarine("logs", job).stdout
        assert submarine("cancel", job, "--yes").returncode == 0
    finally:
        submarine("doctor", "--stop-driver")
