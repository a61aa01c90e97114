"""First process of a cell: prepares its file systems, users, devices and network, and reaps.

The cell ends when this process ends: when it is killed, or when its standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
import time
from pathlib import Path

HADOOP_GROUP = 2000
USERS = {"yarn": 2001, "alice": 2101, "bob": 2102}
ADDRESS = "10.77.0.1"
"""Address of the first node, on the bridge that connects the nodes."""
NODES = {"node1": "10.77.0.11", "node2": "10.77.0.12", "node3": "10.77.0.13"}
DEVICES = {f"nvidia{index}": (10, minor) for index, minor in enumerate((200, 229, 237, 257))}
"""Device files in place of NVIDIA's, of devices that every kernel lets open."""
_PLAIN = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}


def main() -> None:
    """Prepare the cell, report it on standard output, and wait."""
    plan = json.loads(sys.argv[1])
    _call("mount", "--make-rprivate", "/")
    _call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    _prepare_files(plan["readable"])
    _prepare_users()
    _prepare_devices()
    _prepare_network()
    _prepare_groups(plan["group"])
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        _reap()


def _call(*words: str) -> None:
    subprocess.run(words, check=True, timeout=30)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        time.sleep(0.2)


def _prepare_files(readable: list[str]) -> None:
    """Give the cell empty directories, and make `readable` accessible to all its users."""
    empty = {"/tmp": "1777", "/srv": "755", "/home": "755"}
    kept = []
    for number, path in enumerate(readable):
        hidden = next((str(one) for one in reversed(Path(path).parents) if _closed(one)), None)
        if hidden is not None:
            empty.setdefault(hidden, "755")
        if any(Path(path).is_relative_to(folder) for folder in empty):
            place = f"/run/keep/{number}"
            Path(place).mkdir(parents=True)
            _call("mount", "--rbind", path, place)
            kept.append((path, place))
    for top, mode in empty.items():
        _call("mount", "-t", "tmpfs", "-o", f"mode={mode},size=6g", "tmpfs", top)
    for path, place in kept:
        Path(path).mkdir(parents=True, exist_ok=True)
        _call("mount", "--rbind", place, path)


def _closed(folder: Path) -> bool:
    return not folder.stat().st_mode & stat.S_IXOTH


def _prepare_users() -> None:
    etc = Path("/run/etc")
    etc.mkdir()
    passwd = Path("/etc/passwd").read_text()
    group = Path("/etc/group").read_text() + f"hadoop:x:{HADOOP_GROUP}:\n"
    for name, uid in USERS.items():
        gid = HADOOP_GROUP if name == "yarn" else uid
        passwd += f"{name}:x:{uid}:{gid}::/home/{name}:/bin/bash\n"
        group += "" if name == "yarn" else f"{name}:x:{uid}:\n"
        home = Path("/home", name)
        home.mkdir(mode=0o700)
        os.chown(home, uid, gid)
    hosts = f"127.0.0.1 localhost\n{ADDRESS} node0\n"
    hosts += "".join(f"{address} {name}\n" for name, address in NODES.items())
    for name, text in {"passwd": passwd, "group": group, "hosts": hosts}.items():
        (etc / name).write_text(text)
        _call("mount", "--bind", str(etc / name), f"/etc/{name}")


def _prepare_devices() -> None:
    dev = Path("/run/dev")
    dev.mkdir()
    _call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(dev))
    numbers = {**{name: (1, minor) for name, minor in _PLAIN.items()}, "tty": (5, 0), **DEVICES}
    old = os.umask(0)
    for name, (major, minor) in numbers.items():
        os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
    os.umask(old)
    for name, target in {
        "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
        "ptmx": "pts/ptmx",
    }.items():  # fmt: skip
        (dev / name).symlink_to(target)
    (dev / "pts").mkdir()
    (dev / "shm").mkdir()
    _call("mount", "--rbind", "/dev/pts", str(dev / "pts"))
    _call("mount", "-t", "tmpfs", "-o", "mode=1777,size=2g", "tmpfs", str(dev / "shm"))
    _call("mount", "--rbind", str(dev), "/dev")


def _prepare_network() -> None:
    _call("hostname", "node0")
    _call("ip", "link", "set", "lo", "up")
    _call("ip", "link", "add", "br0", "type", "bridge")
    _call("ip", "address", "add", f"{ADDRESS}/24", "dev", "br0")
    _call("ip", "link", "set", "br0", "up")


def _prepare_groups(name: str) -> None:
    """Create the control group of the cell in each hierarchy, for the user of the NodeManager."""
    for controller in Path("/sys/fs/cgroup").iterdir():
        if controller.name in ("systemd", "unified") or not controller.is_dir():
            continue
        group = controller / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (group / setting).exists():
                (group / setting).write_text((controller / setting).read_text())
        for path in (group, *group.iterdir()):
            os.chown(path, USERS["yarn"], HADOOP_GROUP)


if __name__ == "__main__":
    main()
