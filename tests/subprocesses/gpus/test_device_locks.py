"""Locks on devices: every one that can be taken is, and no user undoes another user's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.gpus import DeviceLocks, LockDirectories
from submarine_runtime.gpus.claims import WEAK
from tests.subprocesses.gpus.gpu_node import RUNTIME, Claimer

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can act as two other users and make files of root"
)
ADA, BOB = 64001, 64002

HOLDER = """
import json, os, sys
orders = json.loads(sys.argv[1])
sys.path.insert(0, orders["runtime"])
from submarine_runtime.gpus.device_locks import DeviceLocks, LockDirectories
if orders["uid"]:
    os.setgroups([]); os.setgid(orders["uid"]); os.setuid(orders["uid"])
locks = DeviceLocks(LockDirectories(tuple(orders["sticky"]), orders["shared"]), orders["files"])
taken = locks.take(orders["names"], 1)
print(json.dumps({"held": locks.held, "weak": locks.weak, "by": locks.holders(orders["names"])}),
      flush=True)
sys.stdin.read()
locks.release()
"""


class Node:
    """Directories and device files as root makes them, and agents of users in other processes."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.sticky = top / "lock"
        self.sticky.mkdir()
        self.sticky.chmod(0o1777)
        self.shared = top / "shared"
        self.device = top / "nvidia0"
        self._make_device()
        self._agents: list[subprocess.Popen[bytes]] = []

    def _make_device(self) -> None:
        """A device file where that is allowed (not in every container), else a plain file."""
        with suppress(OSError):
            os.mknod(self.device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            self.device.chmod(0o666)
            os.close(os.open(self.device, os.O_RDONLY))
            return
        with suppress(FileNotFoundError):
            self.device.unlink()
        self.device.touch()

    def places(self, access: str) -> dict[str, Any]:
        """What an agent can use whose access is named by letters: Device, sTicky, Shared."""
        nothing = f"{self.top}/closed/none"
        return {
            "files": {"a": str(self.device)} if "D" in access else {},
            "sticky": [str(self.sticky)] if "T" in access else [nothing],
            "shared": str(self.shared) if "S" in access else nothing,
        }

    def agent(self, uid: int, access: str = "DTS", names: tuple[str, ...] = ("a",)) -> Any:
        """Let a process of a user try to take a device; the process and what it got."""
        orders = {"runtime": str(RUNTIME), "uid": uid, "names": names, **self.places(access)}
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", HOLDER, json.dumps(orders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._agents.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def act(self, uid: int, code: str) -> str:
        """Run code as a user; its output, or the exception's last line."""
        drop = f"import os; os.setgroups([]); os.setgid({uid}); os.setuid({uid})\n"
        drop += f"os.chdir({str(self.top)!r})\n"
        done = subprocess.run(
            [sys.executable, "-I", "-c", drop + code], capture_output=True, text=True, timeout=60
        )
        return (done.stdout or done.stderr.splitlines()[-1]).strip()

    def end(self) -> None:
        """End all agents."""
        for process in self._agents:
            process.communicate(timeout=20)


@pytest.fixture
def node() -> Iterator[Node]:
    # Not below TMPDIR, which may be closed to other users.
    top = Path(tempfile.mkdtemp(dir="/tmp"))
    top.chmod(0o755)
    made = Node(top)
    # What the first agent of a node makes; here its owner is Ada, unless another test decides.
    if os.geteuid() == 0:
        made.shared.mkdir()
        os.chown(made.shared, ADA, ADA)
        made.shared.chmod(0o1777)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(top)


@needs_root
@pytest.mark.parametrize(
    ("first", "second"),
    [("DTS", "D"), ("DTS", "T"), ("DTS", "S"), ("D", "DTS"), ("TS", "DT"), ("S", "TS")],
)
def test_agents_that_share_one_place_exclude_each_other(
    node: Node, first: str, second: str
) -> None:
    holder, got = node.agent(ADA, first)
    assert (got["held"], got["weak"]) == (["a"], first == "S")
    assert node.agent(BOB, second)[1]["held"] == []
    holder.communicate(timeout=20)
    assert node.agent(BOB, second)[1]["held"] == ["a"]


@needs_root
def test_the_holder_is_named_with_its_user(node: Node) -> None:
    for access in ("D", "T", "S"):
        holder, _ = node.agent(ADA, access)
        assert node.agent(BOB, access)[1]["by"] == [f"process {holder.pid} (user {ADA})"]
        holder.communicate(timeout=20)


@needs_root
def test_no_user_can_undo_the_lock_of_another(node: Node) -> None:
    """The owner of the shared directory removes all that it may, and gets no device by that."""
    for access in ("DTS", "TS"):
        holder, got = node.agent(BOB, access)
        assert got["held"] == ["a"]
        removed = node.act(
            ADA,
            "for path in ('shared/a', 'shared/turn', 'nvidia0', *(f'lock/{n}' for n in"
            " os.listdir('lock'))):\n"
            "    try: os.unlink(path); print('removed', path)\n"
            "    except OSError as exc: print(exc.strerror, path.partition('.')[0])",
        ).splitlines()
        assert "removed shared/a" in removed
        assert "Permission denied nvidia0" in removed
        assert "Operation not permitted lock/submarine-device-a" in removed
        assert node.agent(ADA, access)[1]["held"] == []
        holder.communicate(timeout=20)


@needs_root
def test_files_of_another_user_do_not_block_claims(node: Node) -> None:
    (node.top / "precious").write_text("precious")
    spoilt = node.act(
        ADA,
        "for where in ('shared/', 'lock/submarine-device-'):\n"
        "    os.close(os.open(where + 'a' + '.closed', os.O_CREAT, 0o600))\n"
        "    os.close(os.open(where + 'turn', os.O_CREAT, 0o600))\n"
        "    os.symlink('../precious', where + 'a.link')\n"
        "    os.mkfifo(where + 'a.pipe')\n"
        "os.close(os.open('shared/a', os.O_CREAT, 0o600))\n"
        "print('done')",
    )
    assert spoilt == "done"
    got = node.agent(BOB, "TS")[1]
    assert (got["held"], got["weak"]) == (["a"], False)
    assert node.agent(ADA, "TS")[1]["held"] == []
    assert (node.top / "precious").read_text() == "precious"
    # With no other place than the spoilt one the device is not taken, and the report says why.
    got = node.agent(BOB, "S")[1]
    assert (got["held"], got["by"]) == ([], [f"a lock file of user {ADA}"])


@needs_root
def test_a_user_who_holds_every_lock_is_named(node: Node) -> None:
    other, _ = node.agent(BOB)
    other.communicate(timeout=20)
    code = (
        "held = [os.open(f, os.O_RDONLY) for f in ('nvidia0', 'shared/a')]\n"
        "[fcntl.flock(one, fcntl.LOCK_EX) for one in held]\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    drop = (
        f"import fcntl, os, sys; os.setgid({ADA}); os.setuid({ADA}); os.chdir({str(node.top)!r})\n"
    )
    with subprocess.Popen(
        [sys.executable, "-I", "-c", drop + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as hostile:
        assert hostile.stdout is not None
        assert hostile.stdout.readline() == b"held\n"
        got = node.agent(BOB)[1]
        assert (got["held"], got["by"]) == ([], [f"process {hostile.pid} (user {ADA})"])
        hostile.kill()


@needs_root
def test_directories_that_are_not_roots_do_not_count(node: Node) -> None:
    for owner, mode in ((ADA, 0o1777), (0, 0o777), (0, 0o755)):
        os.chown(node.sticky, owner, owner)
        node.sticky.chmod(mode)
        holder, got = node.agent(BOB, "TS")
        assert (got["held"], got["weak"]) == (["a"], True)
        assert os.listdir(node.sticky) == []
        holder.communicate(timeout=20)


RACE = """
import json, os, sys, time
orders = json.loads(sys.argv[1])
sys.path.insert(0, orders["runtime"])
from submarine_runtime.gpus import device_locks
names = [f"GPU-{n}" for n in range(5)]
def race(uid, places):
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
    for _ in range(3):
        locks = device_locks.DeviceLocks(places)
        assert locks.take_within(names, 2, 60.0)
        for name in locks.held:  # fails where another process has it now
            os.close(os.open(f"{orders['held']}/{name}", os.O_CREAT | os.O_EXCL))
        time.sleep(0.002)
        for name in locks.held:
            os.unlink(f"{orders['held']}/{name}")
        locks.release()
children = []
for number in range(24):
    pid = os.fork()
    if not pid:
        sticky = [orders["sticky"]] if number % 3 else []
        shared = orders["shared"]
        try:
            race(orders["users"][number % 2], device_locks.LockDirectories(tuple(sticky), shared))
        except BaseException as exc:
            print(repr(exc), flush=True)
            os._exit(1)
        os._exit(0)
    children.append(pid)
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in children))
"""


@needs_root
@pytest.mark.parametrize("patient", [True, False])
def test_two_users_never_receive_the_same_device(node: Node, patient: bool) -> None:
    """Also where a hostile process holds the turn, so that all take devices at the same time."""
    (node.top / "held").mkdir()
    (node.top / "held").chmod(0o777)
    orders = {
        "runtime": str(RUNTIME),
        "held": str(node.top / "held"),
        "sticky": str(node.sticky),
        "shared": str(node.shared),
        "users": [ADA, BOB],
    }
    race = RACE if patient else RACE.replace("names =", "device_locks.TURN_SECONDS = 0.0\nnames =")
    done = subprocess.run(
        [sys.executable, "-I", "-c", race, json.dumps(orders)], capture_output=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    # Released locks leave nothing behind but the file of the turn.
    assert os.listdir(node.sticky) == ["submarine-device-turn"]


def test_the_shared_directory_alone_comes_with_a_warning(tmp_path: Path) -> None:
    claimer = Claimer(tmp_path / "locks", environ={"NM_PORT": "1"}, claim_gpus=True)
    got = claimer.answer()
    claimer.end()
    assert (len(got["devices"]), got["warning"]) == (1, WEAK)


def test_an_unusable_shared_directory_is_replaced_by_another(tmp_path: Path) -> None:
    device, other = tmp_path / "nvidia0", tmp_path / "nvidia1"
    device.touch()
    spoilt = tmp_path / "file"
    spoilt.touch()
    files = {"a": str(device), "b": str(other)}
    locks = DeviceLocks(LockDirectories((), str(spoilt)), files)
    assert locks.take(["b", "a"], 1)  # b has no file, and nothing else to lock
    assert (locks.held, locks.weak) == (["a"], False)
    assert not DeviceLocks(LockDirectories((), str(spoilt)), files).take(["a"], 1)
    locks.release()


def test_agents_without_a_common_file_exclude_each_other(tmp_path: Path) -> None:
    """Two containers with images: each has its own `/tmp`, by the same name, and one network."""
    if not sys.platform.startswith("linux"):
        pytest.skip("abstract sockets are Linux's")
    shared = tmp_path / "submarine-devices"
    first = DeviceLocks(LockDirectories((), str(shared)))
    assert first.take(["a", "b"], 1)
    shared.rename(tmp_path / "tmp-of-first")
    second = DeviceLocks(LockDirectories((), str(shared)))
    assert second.take(["a", "b"], 1)
    assert (first.held, second.held) == (["a"], ["b"])
    shared.rename(tmp_path / "tmp-of-second")
    third = DeviceLocks(LockDirectories((), str(shared)))
    assert not third.take(["a", "b"], 1)
    first.release()
    assert third.take(["a", "b"], 1)
    second.release()
    third.release()
