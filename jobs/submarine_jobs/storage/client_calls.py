"""Calls of a client of HDFS: each within its time limit, each failure as one sentence.

The two storages of HDFS share it: ``hdfs`` (hdfs-native) and ``webhdfs``. Talks to nobody itself.
"""

from __future__ import annotations

import re
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

from submarine_jobs.concurrency import call_within, limited, note_silence
from submarine_jobs.errors import NoAccessError, NoAnswerError, NoRoomError, StorageError
from submarine_jobs.storage.base import Entry, Storage, bounded
from submarine_runtime.protocol.layout import TEMPORARY_PREFIX
from submarine_runtime.storage import NotThereError

T = TypeVar("T")
CHUNK = 4 << 20
#: A transfer of a whole file may take this many times the limit of a single call.
TRANSFER_FACTOR = 30
#: Hadoop's service access list, checked before any permission of a file.
_NOT_ADMITTED = re.compile(r"User (\S{1,100}) (?:\S{1,100} )?is not authorized for protocol")
_SPACE_QUOTA = re.compile(r"quota of (/\S{0,300}) is exceeded: ?quota ?= ?\d+ B = ([\d.]+ \w?B)")
_NAMES_QUOTA = re.compile(r"of directory (/\S{0,300}) is exceeded: ?quota ?= ?(\d+)")


class ClientStorage(Storage):
    """A storage whose work a client does.

    Parameters
    ----------
    prefix
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    timeout
        Seconds that one call may take.
    """

    def __init__(self, prefix: str, timeout: float) -> None:
        self.prefix = prefix.rstrip("/")
        self._timeout = timeout

    @property
    @abstractmethod
    def _client(self) -> Any:
        """What ``work`` is given; made when it is first asked for, within the time limit."""

    def _call(self, doing: str, path: str, work: Callable[[Any], T], factor: int = 1) -> T:
        try:
            limit = limited(self._timeout) if factor == 1 else self._timeout * factor
            return call_within(limit, lambda: work(self._client))
        except TimeoutError as exc:
            note_silence(str(exc))
            raise NoAnswerError(
                f"HDFS at {self.prefix} did not answer in time to {doing} {path}: {exc}.",
                "Check that the NameNode is up: `submarine doctor`.",
            ) from exc
        except (FileNotFoundError, NotThereError) as exc:
            raise FileNotFoundError(f"{self.prefix}{path}") from exc
        except (FileExistsError, StorageError):
            raise
        except Exception as exc:
            error = refusal(doing, self.prefix + path, exc)
            if not isinstance(error, (NoAccessError, NoRoomError)):
                note_silence(" ".join(str(exc).split())[:200])
            raise error from exc


def temporary_name(path: str) -> str:
    """A name beside ``path`` that listings leave out."""
    directory, _, name = path.rpartition("/")
    return f"{directory}/{TEMPORARY_PREFIX}{name}.{secrets.token_hex(6)}"


def visible(entries: Iterable[Entry]) -> list[Entry]:
    """By name, without what is being written."""
    kept = (entry for entry in entries if not entry.name.startswith(TEMPORARY_PREFIX))
    return sorted(bounded(kept), key=lambda entry: entry.name)


def pieces(stream: BinaryIO, heard: Callable[[int], None] | None) -> Iterator[bytes]:
    """What a file holds, ``heard`` being told how much was asked for so far."""
    done = 0
    while piece := stream.read(CHUNK):
        yield piece
        done += len(piece)
        if heard is not None:
            heard(done)


def refusal(doing: str, url: str, exc: Exception) -> StorageError:
    """What HDFS has refused, in one sentence and with what to do."""
    text = " ".join(str(exc).split())
    if "QuotaExceeded" in text or ("quota" in text.lower() and "exceeded" in text.lower()):
        return NoRoomError(
            f"Cannot {doing} {url}: {_quota(text)}.",
            "Remove what is not needed there, or ask the operator for more.",
        )
    # Not "AccessControl" alone: a Java stack names AccessController, whatever the exception is.
    if "AccessControlException" in text or "Permission denied" in text:
        return NoAccessError(
            f"Cannot {doing} {url}: permission denied.",
            "Choose a job root that you own (job_root in submarine.toml).",
        )
    if found := _NOT_ADMITTED.search(text):
        return NoAccessError(
            f"Cannot {doing} {url}: this cluster does not admit the user {found[1]}.",
            "Ask its operator (security.client.protocol.acl in hadoop-policy.xml), or work as a "
            "user whom it admits.",
        )
    return StorageError(*_sentence(doing, url, exc))


def _quota(text: str) -> str:
    """Which quota is used up, as the NameNode words it; see its ``DirectoryWithQuotaFeature``."""
    if found := _SPACE_QUOTA.search(text):
        where, most = found.groups()
        return f"{where} is full, its quota of {most} (with all replicas) is used up"
    if found := _NAMES_QUOTA.search(text):
        where, most = found.groups()
        return f"{where} is full, its quota of {most} files and directories is used up"
    return "the HDFS quota is used up"


def _sentence(doing: str, url: str, exc: Exception) -> tuple[str, str]:
    text = " ".join(str(exc).split())[:300]
    if "SafeMode" in text or "safe mode" in text:
        return (
            f"Cannot {doing} {url}: HDFS is in safe mode and takes no writes.",
            "Wait until the NameNode leaves it, or ask the operator.",
        )
    return f"Cannot {doing} {url}: {text}.", "`submarine doctor` checks HDFS."
