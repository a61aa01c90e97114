"""Base of the HDFS storages: time limit of each call, and one error sentence for each failure."""

from __future__ import annotations

import posixpath
import re
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TypeVar

from submarine_jobs.concurrency import call_with_timeout, current_timeout, fail_further_calls
from submarine_jobs.errors import (
    TRUST_CA,
    AclsDisabledError,
    NoAccessError,
    NoAnswerError,
    NoRoomError,
    StorageError,
    TicketError,
    impersonation_refusal,
)
from submarine_jobs.storage.base import Acl, Entry, Storage, bounded
from submarine_runtime.protocol.layout import TEMPORARY_PREFIX
from submarine_runtime.storage import (
    NotFoundError,
    UnauthenticatedError,
    UntrustedError,
    WebHdfsStore,
)
from submarine_runtime.translation import _

T = TypeVar("T")
CHUNK = 4 << 20
#: Factor of the time limit for the transfer of a whole file.
TRANSFER_FACTOR = 30
#: Hadoop's service access list, checked before any permission of a file.
_NOT_ADMITTED = re.compile(r"User (\S{1,100}) (?:\S{1,100} )?is not authorized for protocol")
#: The switch of ACLs in the configuration of the NameNode, which its error names.
_ACLS = "dfs.namenode.acls.enabled"
#: Errors of encryption zones: of hdfs-native, the NameNode and the key server.
_ZONE = re.compile(r"encryption zone|not allowed to do '\w{1,20}_EEK'|KMS (?:request|rejected)")
_NO_PROVIDER = "hadoop.security.key.provider.path"
#: hdfs-native: a structure with the text of libgssapi at its end.
_NO_TICKET = re.compile(r'GSSAPIError\(.{1,300}?, "([^"]{1,300})')
_SPACE_QUOTA = re.compile(r"quota of (/\S{0,300}) is exceeded: ?quota ?= ?\d+ B = ([\d.]+ \w?B)")
_NAMES_QUOTA = re.compile(r"of directory (/\S{0,300}) is exceeded: ?quota ?= ?(\d+)")


class ClientStorage(Storage):
    """Storage that calls a client with a time limit.

    Parameters
    ----------
    prefix
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    timeout
        Time limit of one call in seconds.
    """

    def __init__(self, prefix: str, timeout: float) -> None:
        self.prefix = prefix.rstrip("/")
        self._timeout = timeout
        self._outside: set[str] = set()

    @property
    @abstractmethod
    def _client(self) -> Any:
        """The argument of ``work``; created at the first call, within its time limit."""

    @property
    @abstractmethod
    def _web(self) -> WebHdfsStore:
        """The client of WebHDFS, for ACLs."""

    def in_encryption_zone(self, path: str) -> bool:
        """See ``Storage.in_encryption_zone``; a path outside is looked up once in a process."""
        if path in self._outside:
            return False
        there, entry = path, self.inspect(path)
        while entry is None and there != "/":
            there = posixpath.dirname(there)
            entry = self.inspect(there)
        if entry is not None and entry.encrypted:
            return True
        self._outside.add(path)
        return False

    def acl(self, path: str) -> Acl:
        """See ``Storage.acl``."""

        def work(_client: Any) -> Acl:
            answer = self._web.call("GET", path, "GETACLSTATUS").json_object()
            status = answer.get("AclStatus") or {}
            mode = int(str(status.get("permission") or "0"), 8)
            return Acl(str(status.get("owner")), mode, tuple(map(str, status.get("entries") or ())))

        return self._call("read the ACL of", path, work)

    def set_acl(self, path: str, entries: Sequence[str], *, replace: bool) -> None:
        """See ``Storage.set_acl``."""
        operation = "SETACL" if replace else "MODIFYACLENTRIES"
        query = {"aclspec": ",".join(entries)}
        self._call(
            "change the ACL of",
            path,
            lambda _client: self._web.call("PUT", path, operation, query),
        )

    def may_execute(self, path: str) -> bool:
        """See ``Storage.may_execute``; the NameNode evaluates the groups of the user."""
        query = {"fsaction": "--x"}
        try:
            self._call(
                "check the access to",
                path,
                lambda _client: self._web.call("GET", path, "CHECKACCESS", query),
            )
        except NoAccessError:
            return False
        return True

    def _call(self, operation: str, path: str, work: Callable[[Any], T], factor: int = 1) -> T:
        try:
            limit = current_timeout(self._timeout) if factor == 1 else self._timeout * factor
            return call_with_timeout(limit, lambda: work(self._client))
        except TimeoutError as exc:
            fail_further_calls(str(exc))
            raise NoAnswerError(
                _("HDFS at {prefix} did not answer in time to {operation} {path}: {error}.").format(
                    prefix=self.prefix, operation=operation, path=path, error=exc
                ),
                _("Check that the NameNode is up: `submarine doctor`."),
            ) from exc
        except (FileNotFoundError, NotFoundError) as exc:
            raise FileNotFoundError(f"{self.prefix}{path}") from exc
        except (FileExistsError, StorageError):
            raise
        except Exception as exc:
            error = storage_error(operation, self.prefix + path, exc)
            if not isinstance(error, (AclsDisabledError, NoAccessError, NoRoomError)):
                fail_further_calls(" ".join(str(exc).split())[:200])
            raise error from exc


def temporary_path(path: str) -> str:
    """Return a temporary path in the same directory; listings omit it."""
    directory, _, name = path.rpartition("/")
    return f"{directory}/{TEMPORARY_PREFIX}{name}.{secrets.token_hex(6)}"


def visible_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Sort entries by name and omit temporary files."""
    kept = (entry for entry in entries if not entry.name.startswith(TEMPORARY_PREFIX))
    return sorted(bounded(kept), key=lambda entry: entry.name)


def read_chunks(stream: BinaryIO, progress: Callable[[int], None] | None) -> Iterator[bytes]:
    """Yield the content of a file; call ``progress`` with the number of bytes read so far."""
    done = 0
    while piece := stream.read(CHUNK):
        yield piece
        done += len(piece)
        if progress is not None:
            progress(done)


def storage_error(operation: str, url: str, exc: Exception) -> StorageError:
    """Convert an exception of an HDFS client to an error with a fix."""
    text = " ".join(str(exc).split())
    if isinstance(exc, UnauthenticatedError):
        return TicketError(text)
    if isinstance(exc, UntrustedError):
        return StorageError(
            _("Cannot {operation} {url}: {text}.").format(operation=operation, url=url, text=text),
            _(TRUST_CA),
        )
    if found := _NO_TICKET.search(text):
        return TicketError(found[1])
    if _ACLS in text:
        return AclsDisabledError(_("HDFS keeps no ACLs ({setting} is false)").format(setting=_ACLS))
    if "QuotaExceeded" in text or ("quota" in text.lower() and "exceeded" in text.lower()):
        return NoRoomError(
            _("Cannot {operation} {url}: {quota}.").format(
                operation=operation, url=url, quota=_quota(text)
            ),
            _("Remove files there that you do not need, or ask the operator for a larger quota."),
        )
    if _ZONE.search(text):
        return StorageError(
            _("Cannot {operation} {url}, which lies in an encryption zone: {text}.").format(
                operation=operation, url=url, text=text[:300]
            ),
            _zone_fix(text),
        )
    if denied := impersonation_refusal(text):
        return NoAccessError(*denied)
    # Not "AccessControl" alone: every Java stack trace can contain AccessController.
    if "AccessControlException" in text or "Permission denied" in text:
        return NoAccessError(
            _("Cannot {operation} {url}: permission denied.").format(operation=operation, url=url),
            _("Ask its owner for access, or use a path of your own (job_root in submarine.toml)."),
        )
    if found := _NOT_ADMITTED.search(text):
        return NoAccessError(
            _("Cannot {operation} {url}: this cluster does not admit the user {user}.").format(
                operation=operation, url=url, user=found[1]
            ),
            _(
                "Ask its operator (security.client.protocol.acl in hadoop-policy.xml), or use a "
                "user that it admits."
            ),
        )
    return StorageError(*_sentence(operation, url, exc))


def _zone_fix(text: str) -> str:
    if _NO_PROVIDER in text:
        return _("Name the key server in core-site.xml: {setting}.").format(setting=_NO_PROVIDER)
    return _("Use a directory outside of encryption zones, or ask for access to the zone's key.")


def _quota(text: str) -> str:
    """Name the exceeded quota from the message of the NameNode (``DirectoryWithQuotaFeature``)."""
    if found := _SPACE_QUOTA.search(text):
        where, most = found.groups()
        return _("{where} is full, its quota of {quota} (with all replicas) is used up").format(
            where=where, quota=most
        )
    if found := _NAMES_QUOTA.search(text):
        where, most = found.groups()
        return _("{where} is full, its quota of {quota} files and directories is used up").format(
            where=where, quota=most
        )
    return _("the HDFS quota is used up")


def _sentence(operation: str, url: str, exc: Exception) -> tuple[str, str]:
    text = " ".join(str(exc).split())[:300]
    if "SafeMode" in text or "safe mode" in text:
        return (
            _("Cannot {operation} {url}: HDFS is in safe mode and accepts no writes.").format(
                operation=operation, url=url
            ),
            _("Wait until the NameNode leaves it, or ask the operator."),
        )
    return _("Cannot {operation} {url}: {text}.").format(
        operation=operation, url=url, text=text
    ), _("`submarine doctor` checks HDFS.")
