"""One locked file a device: who holds the lock has the device, until released or dead.

All users of a node share one directory. Nothing is ever written to a file or read from one, links
are not followed and files of others are only locked, so the worst that another user can do there is
what that user could do by using all devices: make us wait. Knows nothing of GPUs.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from typing import Callable, Iterable, Sequence

#: Where every user may write and which the node empties when it starts.
DIRECTORY = "/tmp/submarine-devices"  # noqa: S108 - checked: see _open_directory
#: Most seconds that another may be in the middle of taking devices.
TURN = 5.0
_PAUSE = 0.02


class LocksError(Exception):
    """The directory of locks cannot be used; one sentence."""


class DeviceLocks:
    """The locks of one node, as one process holds them.

    The process holds them and not its children: the descriptors are closed on exec, so a program
    that outlives its agent keeps none.

    Raises
    ------
    LocksError
        If ``directory`` is no directory that all users share.
    """

    def __init__(self, directory: str = DIRECTORY) -> None:
        self._directory = directory
        self._folder = _open_directory(directory)
        self._held: dict[str, int] = {}
        # systemd-tmpfiles leaves alone what lies in a directory that somebody has locked.
        fcntl.flock(self._folder, fcntl.LOCK_SH | fcntl.LOCK_NB)

    @property
    def held(self) -> list[str]:
        """Names that this process holds, in the order of taking."""
        return list(self._held)

    def take(self, names: Iterable[str], count: int) -> bool:
        """Take the first ``count`` free ones of ``names``, all or none; waits for nobody's end."""
        turn = self._turn()
        try:
            taken: dict[str, int] = {}
            for name in names:
                if len(taken) == count:
                    break
                descriptor = None if name in self._held else self._try(name)
                if descriptor is not None:
                    taken[name] = descriptor
            if len(taken) < count:
                for descriptor in taken.values():
                    os.close(descriptor)
                return False
            self._held.update(taken)
            return True
        finally:
            if turn is not None:
                os.close(turn)

    def take_within(
        self,
        names: Sequence[str],
        count: int,
        seconds: float,
        wait: Callable[[float], object] = time.sleep,
    ) -> bool:
        """Like ``take``, again and again for at most ``seconds``."""
        deadline = time.monotonic() + seconds
        pause = 0.1
        while not self.take(names, count):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            wait(min(pause, left))
            pause = min(1.0, pause * 1.5)
        return True

    def holders(self, names: Iterable[str]) -> list[int]:
        """Process ids that hold one of ``names``, as far as this user may see."""
        return _lock_holders({self._inode(name) for name in names})

    def release(self) -> None:
        """Give everything back; no matter how often."""
        while self._held:
            os.close(self._held.popitem()[1])
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _inode(self, name: str) -> int | None:
        try:
            return os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_ino
        except OSError:
            return None

    def _turn(self) -> int | None:
        """The lock under which devices are taken: so nobody sees one that is only being tried.

        Somebody who was stopped while holding it must not stop everybody: then it goes without.
        """
        deadline = time.monotonic() + TURN
        while True:
            descriptor = self._try("turn")
            if descriptor is not None or time.monotonic() > deadline:
                return descriptor
            time.sleep(_PAUSE)

    def _try(self, name: str) -> int | None:
        """A descriptor that holds the lock of ``name``, or None while somebody else does."""
        while True:
            descriptor = self._open(name)
            if descriptor is None:
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = os.fstat(descriptor)
                there = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            except FileNotFoundError:
                os.close(descriptor)  # somebody has emptied the directory: lock the new file
                continue
            except OSError:
                os.close(descriptor)
                return None
            if mine.st_ino == there.st_ino:
                return descriptor
            os.close(descriptor)

    def _open(self, name: str) -> int | None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        for _ in range(3):
            try:
                # Never O_CREAT on a name that may be there: kernels refuse that for files of
                # other users in a directory like this (fs.protected_regular).
                descriptor = os.open(name, flags, dir_fd=self._folder)
            except FileNotFoundError:
                try:
                    descriptor = os.open(
                        name, flags | os.O_CREAT | os.O_EXCL, 0o444, dir_fd=self._folder
                    )
                    os.fchmod(descriptor, 0o444)
                except FileExistsError:
                    continue
                except OSError as exc:
                    raise LocksError(
                        f"cannot make {self._directory}/{name}: {exc.strerror}"
                    ) from exc
            except OSError:
                return None  # a link, or a file that we may not read: never ours
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            os.close(descriptor)
            return None
        return None


def _open_directory(path: str) -> int:
    """A descriptor of the directory, made for all users where it is missing."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as exc:
        raise LocksError(f"cannot make {path}: {exc.strerror}") from exc
    deadline = time.monotonic() + 1.0
    while True:  # another user may be between mkdir and chmod
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as exc:
            problem = exc.strerror or str(exc)
            passing = isinstance(exc, PermissionError)
        else:
            if _share(folder):
                return folder
            mode = stat.S_IMODE(os.fstat(folder).st_mode)
            os.close(folder)
            problem, passing = f"its mode is {mode:o} and not 1777", True
        if not passing or time.monotonic() > deadline:
            raise LocksError(
                f"{path} is no directory that all users of this node share ({problem}); its owner "
                "or root can remove it"
            )
        time.sleep(_PAUSE)


def _share(folder: int) -> bool:
    """Whether everybody may make files there and only remove their own; our own is made so."""
    info = os.fstat(folder)
    if info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) != 0o1777:
        # Not by mkdir's mode: the umask would take the others' rights away.
        os.fchmod(folder, 0o1777)
        info = os.fstat(folder)
    return stat.S_IMODE(info.st_mode) == 0o1777


def _lock_holders(inodes: set[int | None]) -> list[int]:
    found = []
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return []
    for line in lines:
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK":
            inode = words[5].rpartition(":")[2]
            if inode.isdigit() and int(inode) in inodes and words[4].isdigit():
                found.append(int(words[4]))
    return found
