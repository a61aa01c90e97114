"""Locks on devices that all users of a node share: ``flock``, until released or process exit.

An agent takes every lock of a device that it can, so that agents with different access (of another
user, or in a container with its own `/tmp`) exclude each other if they share one place:

- the device file, which belongs to root: other users cannot remove or replace it;
- a file of the user in a directory of root with mode 1777 (`/run/lock`, `/dev/shm`). Other users
  see that it is locked and cannot remove it;
- one file for all users in `/tmp/submarine-devices`. The owners of that directory and of the file
  can remove it, so a device with this lock alone is reported as ``weak``;
- an abstract socket (Linux). Containers with images share no files, but those with the network of
  the node (``--net=host``) share its names, and no user can remove them.

Lock files are never written or read, and links are not followed. Another user can make an agent
wait, as by using the devices, but nothing else. This module is independent of GPUs.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import pwd
import socket
import stat
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Iterable, Mapping, Sequence

from submarine_runtime.translation import _

#: Maximum number of seconds to wait while another agent takes devices.
TURN_SECONDS = 5.0
_PAUSE = 0.02
_PREFIX = "submarine-device-"
#: No O_CREAT on a name that may exist: kernels refuse that for files of other users in a
#: directory with mode 1777 (fs.protected_regular).
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class LockDirectories:
    """The directories of a node that hold locks.

    Parameters
    ----------
    sticky
        Directories that are used only if they belong to root and have mode 1777.
    shared
        The directory that the first agent creates for all users.
    """

    sticky: tuple[str, ...] = ("/run/lock", "/dev/shm")  # noqa: S108 - see _open_sticky
    shared: str = "/tmp/submarine-devices"  # noqa: S108 - checked: see _open_shared


class LocksError(Exception):
    """No lock can be taken on this node; one sentence."""


class _HeldError(Exception):
    """Another process holds the lock."""


class DeviceLocks:
    """The locks of one node, as one process holds them.

    Child processes do not hold them: the descriptors are closed on exec, so a program that outlives
    its agent keeps none.

    Parameters
    ----------
    places
        Directories of the lock files; None: the default ones.
    files
        The device files, by name, of the names that have one.

    Attributes
    ----------
    weak
        Whether a device is locked only in the shared directory.
    choose
        Returns those of the free names that ``take`` keeps; None: the first ones.

    Raises
    ------
    LocksError
        If this process can use none of the places.
    """

    def __init__(
        self, places: LockDirectories | None = None, files: Mapping[str, str] | None = None
    ) -> None:
        places = places or LockDirectories()
        self._files = dict(files or {})
        self._held: dict[str, list[int]] = {}
        self.weak = False
        self.choose: Callable[[Sequence[str]], Sequence[str]] | None = None
        self._names = _SocketNames(places.shared)
        self._sticky = [one for one in map(_open_sticky, places.sticky) if one is not None]
        self._shared: _Shared | None = None
        try:
            self._shared = _Shared(_open_shared(places.shared))
        except LocksError:
            # Another user may have blocked it; jobs of the node continue with the other places.
            if not self._sticky and not self._files:
                raise

    @property
    def held(self) -> list[str]:
        """Names that this process holds, in order of acquisition."""
        return list(self._held)

    def take(self, names: Iterable[str], count: int) -> bool:
        """Take ``count`` free ones of ``names``, all or none; do not wait for them."""
        turns = self._turns()
        taken: dict[str, list[int]] = {}
        weak = set()
        try:
            for name in names:
                if len(taken) == count and self.choose is None:
                    break
                if name in self._held:
                    continue
                strong, last = self._lock(name)
                if strong or last:
                    taken[name] = strong + last
                    if not strong:
                        weak.add(name)
            if len(taken) < count:
                return False
            kept = list(taken) if self.choose is None else self.choose(list(taken))
            self._held.update({name: taken.pop(name) for name in kept})
            self.weak = self.weak or not weak.isdisjoint(kept)
            return True
        finally:
            self._drop(taken)
            _close(turns)

    def take_within(
        self,
        names: Sequence[str],
        count: int,
        seconds: float,
        wait: Callable[[float], object] = time.sleep,
    ) -> bool:
        """Call ``take`` repeatedly for at most ``seconds``.

        Parameters
        ----------
        wait
            Function that waits for some seconds, or less.
        """
        deadline = time.monotonic() + seconds
        pause = 0.1
        while not self.take(names, count):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            wait(min(pause, left))
            pause = min(1.0, pause * 1.5)
        return True

    def holders(self, names: Iterable[str]) -> list[str]:
        """Return the holders of ``names``: ``process 4711 (ada)``.

        If the process is not visible here, the owner of the lock file.
        """
        candidates: set[tuple[int, int]] = set()
        owners: set[int] = set()
        for name in names:
            for directory in self._directories:
                for entry in directory.entries(name):
                    candidates |= directory.identity(entry)
                    owners |= directory.holding_owner(entry)
            with suppress(KeyError, OSError):
                found = os.stat(self._files[name])
                candidates.add((found.st_dev, found.st_ino))
        processes = [
            _("process {pid}{pid_user_of}").format(pid=pid, pid_user_of=_user_of(pid))
            for pid in _lock_holders(candidates)
        ]
        return processes or [
            _("a lock file of {uid}").format(uid=_user_name(uid)) for uid in sorted(owners)
        ]

    def release(self) -> None:
        """Release all locks; may be called repeatedly."""
        self._drop(self._held)
        for directory in self._directories:
            directory.close()

    @property
    def _directories(self) -> list[_Directory]:
        return [*self._sticky, *([self._shared] if self._shared is not None else [])]

    def _drop(self, locks: dict[str, list[int]]) -> None:
        for directory in self._sticky:
            for name in locks:
                directory.remove(name)
        while locks:
            _close(locks.popitem()[1])

    def _lock(self, name: str) -> tuple[list[int], list[int]]:
        """Take all available locks of a device; return those that are not strong separately.

        Return two empty lists if another process holds one of them, or if there is no file to lock.
        """
        strong: list[int] = []
        others: list[int] = []
        try:
            file = self._files.get(name)
            _append(strong, _device_lock(file) if file else None)
            for directory in self._sticky:
                _append(strong, directory.lock(name))
            if self._shared is not None:
                _append(others, self._shared.lock(name))
            if strong or others:
                _append(others, self._names.lock(name))
        except _HeldError:
            self._drop({name: strong + others})
            return [], []
        return strong, others

    def _turns(self) -> list[int]:
        """Take the locks that serialize acquisition, so that no agent sees a tentative lock.

        A process that was stopped while it held one must not block the others, so after a time
        devices are taken without it. A device still has at most one holder then, but two agents may
        each see the other's tentative lock and both retry.
        """
        deadline = time.monotonic() + TURN_SECONDS
        turns: list[int] = []
        places: list[_SocketNames | _Directory] = [self._names, *self._directories]
        for place in places:
            while not place.take_turn(turns) and time.monotonic() < deadline:
                time.sleep(_PAUSE)
        return turns


class _SocketNames:
    """Names of abstract sockets, each bound by at most one process of a network namespace.

    Parameters
    ----------
    shared
        The directory of the same locks: other directories have other names.
    """

    def __init__(self, shared: str) -> None:
        self._shared = shared

    def lock(self, name: str) -> int | None:
        """Return a descriptor that holds a name; None if this system has no such sockets.

        Raises
        ------
        _HeldError
            If another process holds it.
        """
        if not sys.platform.startswith("linux"):
            return None
        digest = hashlib.sha256(f"{self._shared}/{name}".encode()).hexdigest()[:40]
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            bound.bind(f"\0{_PREFIX}{digest}")
        except OSError as exc:
            bound.close()
            if exc.errno == errno.EADDRINUSE:
                raise _HeldError from None
            return None
        return bound.detach()

    def take_turn(self, turns: list[int]) -> bool:
        """Take the lock that serializes acquisition; return False if another process holds it."""
        try:
            _append(turns, self.lock("turn"))
        except _HeldError:
            return False
        return True


class _Directory(ABC):
    """An open directory of lock files."""

    turn = _PREFIX + "turn"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Close it; may be called repeatedly."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @abstractmethod
    def lock(self, name: str) -> int | None:
        """Return a descriptor that holds the lock of a device; None if it cannot be locked here.

        Raises
        ------
        _HeldError
            If another process holds it.
        """

    @abstractmethod
    def entries(self, name: str) -> list[str]:
        """Return the names of the files that are locked for a device."""

    def identity(self, entry: str) -> set[tuple[int, int]]:
        """Return device and inode of a file; empty if it does not exist."""
        found = self._stat(entry)
        return set() if found is None else {(found.st_dev, found.st_ino)}

    def holding_owner(self, entry: str) -> set[int]:
        """Return the owner of a file that is locked, or not readable for this user."""
        found = self._stat(entry)
        if found is None:
            return set()
        descriptor = self._open(entry)
        if descriptor is None:
            return {found.st_uid}
        try:
            _flock(descriptor, fcntl.LOCK_SH)
        except _HeldError:
            return {found.st_uid}
        finally:
            os.close(descriptor)
        return set()

    def common_lock(self, entry: str) -> int | None:
        """Lock a file for all users, and create it if it is missing; None if it cannot be used."""
        for _unused in range(8):  # Its owner may remove it at any time.
            descriptor = self._open(entry)
            if descriptor is None:
                descriptor = self._create(entry)
            if descriptor is not None and self._lock_there(descriptor, entry):
                return descriptor
        return None

    def take_turn(self, turns: list[int]) -> bool:
        """Take the lock that serializes acquisition; return False if another process holds it."""
        try:
            _append(turns, self.common_lock(self.turn))
        except _HeldError:
            return False
        return True

    def _stat(self, entry: str) -> os.stat_result | None:
        try:
            return os.stat(entry, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return None

    def _open(self, entry: str) -> int | None:
        """Open an existing file; None for a link, another kind of file, or without permission."""
        try:
            descriptor = os.open(entry, _FLAGS, dir_fd=self._descriptor)
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None

    def _create(self, entry: str) -> int | None:
        """Create a file that every user can lock; None if that is not possible."""
        flags = _FLAGS | os.O_CREAT | os.O_EXCL
        try:
            descriptor = os.open(entry, flags, 0o444, dir_fd=self._descriptor)
        except OSError:
            return None
        with suppress(OSError):
            os.fchmod(descriptor, 0o444)  # The umask may have removed permissions.
        return descriptor

    def _lock_there(self, descriptor: int, entry: str) -> bool:
        """Lock an open file; close it and return False if it is no longer in the directory."""
        locked = False
        try:
            _flock(descriptor)
            there = self._stat(entry)
            locked = there is not None and there.st_ino == os.fstat(descriptor).st_ino
        finally:
            if not locked:
                os.close(descriptor)
        return locked


class _Shared(_Directory):
    """The directory with one file for all users."""

    turn = "turn"

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        # systemd-tmpfiles does not clean a locked directory.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def lock(self, name: str) -> int | None:
        """See ``_Directory``."""
        return self.common_lock(name)

    def entries(self, name: str) -> list[str]:
        """See ``_Directory``."""
        return [name]


class _Sticky(_Directory):
    """A directory of root in which each user locks their own files.

    The own file is locked first, and then the other users' files are tried: of two agents that take
    a device at the same time at least one finds the other's lock. Users cannot remove the files of
    other users.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._locked: dict[str, str] = {}

    def lock(self, name: str) -> int | None:
        """See ``_Directory``."""
        own, own_entry = self._own(name)
        if own is None:
            return None
        self._locked[name] = own_entry
        try:
            for entry in self.entries(name):
                if entry == own_entry:
                    continue
                # A file that cannot be opened was closed by its owner and does not count as a
                # lock: agents create files that all users can open.
                other = self._open(entry)
                if other is not None:
                    try:
                        _flock(other, fcntl.LOCK_SH)
                    finally:
                        os.close(other)
        except _HeldError:
            self.remove(name)
            os.close(own)
            raise
        return own

    def remove(self, name: str) -> None:
        """Remove the locked file; the file of a killed process remains and is used again."""
        entry = self._locked.pop(name, None)
        if entry is not None:
            with suppress(OSError):
                os.unlink(entry, dir_fd=self._descriptor)

    def entries(self, name: str) -> list[str]:
        """See ``_Directory``."""
        try:
            found = os.listdir(self._descriptor)
        except OSError:
            return []
        return sorted(entry for entry in found if entry.startswith(f"{_PREFIX}{name}."))

    def _own(self, name: str) -> tuple[int | None, str]:
        """Lock a file that belongs to this user."""
        for entry in self.entries(name):
            descriptor = self._open(entry)
            if descriptor is None:
                continue
            if os.fstat(descriptor).st_uid != os.geteuid():
                os.close(descriptor)
            elif self._lock_there(descriptor, entry):
                return descriptor, entry
        # Random, because another user could create a file with a predictable name.
        entry = f"{_PREFIX}{name}.{os.urandom(8).hex()}"
        made = self._create(entry)
        if made is not None and self._lock_there(made, entry):
            return made, entry
        return None, entry


def _flock(descriptor: int, kind: int = fcntl.LOCK_EX) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _HeldError from None


def _device_lock(path: str) -> int | None:
    """Return a descriptor that holds the lock of a device file; None if it cannot be opened."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        _flock(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _append(descriptors: list[int], descriptor: int | None) -> None:
    if descriptor is not None:
        descriptors.append(descriptor)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _open_sticky(path: str) -> _Sticky | None:
    """Open the directory if it belongs to root and every user may create files there."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    info = os.fstat(descriptor)
    if info.st_uid == 0 and stat.S_IMODE(info.st_mode) == 0o1777:
        return _Sticky(descriptor)
    os.close(descriptor)
    return None


def _open_shared(path: str) -> int:
    """Return a descriptor of the directory; create it for all users if it is missing."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as exc:
        raise LocksError(
            _("cannot make {path}: {strerror}").format(path=path, strerror=exc.strerror)
        ) from exc
    deadline = time.monotonic() + 1.0
    while True:  # Another user may be between mkdir and chmod.
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
            problem, passing = _("its mode is {mode:o} and not 1777").format(mode=mode), True
        if not passing or time.monotonic() > deadline:
            raise LocksError(
                _(
                    "{path} is not a directory that all users of this node share ({problem}); "
                    "its owner or root can remove it"
                ).format(path=path, problem=problem)
            )
        time.sleep(_PAUSE)


def _share(folder: int) -> bool:
    """Return whether all users can create files there and remove only their own; set that mode."""
    info = os.fstat(folder)
    if info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) != 0o1777:
        # Not with mkdir's mode, because of the umask.
        os.fchmod(folder, 0o1777)
        info = os.fstat(folder)
    return stat.S_IMODE(info.st_mode) == 0o1777


def _lock_holders(candidates: set[tuple[int, int]]) -> list[int]:
    """Return the ids of visible processes with a lock on one of these (device, inode)."""
    found = set()
    try:
        with open("/proc/locks", encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return []
    for line in lines:
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK" or not words[4].isdigit():
            continue
        major, minor, inode = words[5].split(":")
        if (os.makedev(int(major, 16), int(minor, 16)), int(inode)) in candidates:
            found.add(int(words[4]))
    return sorted(found)


def _user_of(pid: int) -> str:
    try:
        return f" ({_user_name(os.stat(f'/proc/{pid}').st_uid)})"
    except OSError:
        return ""


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return _("user {uid}").format(uid=uid)
