"""The ticket of the user's own cache, read and renewed by the system's MIT library (libkrb5).

GSSAPI reports neither when a ticket ends nor whether it can be renewed, and cannot renew it. The
names of functions and structures are those of ``krb5.h``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.text import timestamp
from submarine_runtime.kerberos import GssError
from submarine_runtime.translation import _

_LIBRARY = "libkrb5.so.3"
#: Flag of a ticket that the KDC renews.
_RENEWABLE = 0x00800000
#: Caches in files; a collection (DIR) has a file for each principal.
_FILES = ("FILE", "DIR")


class _KeyBlock(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_int32),
        ("enctype", ctypes.c_int32),
        ("length", ctypes.c_uint),
        ("contents", ctypes.c_void_p),
    ]


class _Data(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_int32), ("length", ctypes.c_uint), ("data", ctypes.c_void_p)]


class _Credentials(ctypes.Structure):
    """``krb5_creds``; times are seconds since the epoch as 32 bits."""

    _fields_ = [
        ("magic", ctypes.c_int32),
        ("client", ctypes.c_void_p),
        ("server", ctypes.c_void_p),
        ("keyblock", _KeyBlock),
        ("authtime", ctypes.c_uint32),
        ("starttime", ctypes.c_uint32),
        ("endtime", ctypes.c_uint32),
        ("renew_till", ctypes.c_uint32),
        ("is_skey", ctypes.c_uint),
        ("ticket_flags", ctypes.c_uint32),
        ("addresses", ctypes.c_void_p),
        ("ticket", _Data),
        ("second_ticket", _Data),
        ("authdata", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class CachedTicket:
    """The ticket-granting ticket of a cache.

    Attributes
    ----------
    start, end
        The time of its validity, in seconds since the epoch.
    renewable_until
        Until when the KDC renews it; 0: it is not renewable.
    """

    principal: str
    start: float
    end: float
    renewable_until: float

    @property
    def expired(self) -> bool:
        """Whether it has ended; the KDC does not renew it then."""
        return self.end <= time.time()

    @property
    def can_be_renewed(self) -> bool:
        """Whether a renewal would extend it."""
        return not self.expired and self.renewable_until > self.end


def cached_ticket() -> CachedTicket | None:
    """Return the ticket of the user's cache, valid or expired; None if there is none.

    The cache is the library's default one, which ``KRB5CCNAME`` or ``krb5.conf`` names. A cache in
    memory, or in a file of another user, counts as none.
    """
    try:
        with ExitStack() as stack:
            return _Cache(stack).ticket()
    except GssError:
        return None


def ticket_problem(error: Exception) -> str:
    """Return why a sign-in by the user's cache failed: when its ticket expired, if it has."""
    found = cached_ticket()
    if found is None or not found.expired:
        return str(error)
    return _("the one of {principal} expired at {time}").format(
        principal=found.principal, time=timestamp(found.end)
    )


def renew_ticket() -> None:
    """Renew the ticket of the user's cache, as ``kinit -R`` does.

    A cache in a file is replaced by a new file, so that other processes read the whole old one or
    the whole new one. If another process replaces it at the same time, that one remains. Other
    caches (KEYRING, KCM) are changed by the library itself.

    Raises
    ------
    GssError
        If the KDC refuses or does not answer, or the cache is not the user's or cannot be written.
    """
    with ExitStack() as stack:
        _Cache(stack).renew()


class _Cache:
    """The default cache; ``stack`` frees what the library returns."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._library = stack, _library()
        self._context = ctypes.c_void_p()
        code = self._library.krb5_init_context(ctypes.byref(self._context))
        if code:
            raise GssError(_("krb5.conf is not readable (error {code})").format(code=code))
        stack.callback(self._library.krb5_free_context, self._context)
        self._cache = self._make("krb5_cc_default", free="krb5_cc_close")
        name = ctypes.c_void_p()
        self._run("krb5_cc_get_full_name", self._cache, ctypes.byref(name))
        stack.callback(self._library.krb5_free_string, self._context, name)
        full = os.fsdecode(ctypes.string_at(name.value or 0))
        self._kind, _colon, rest = full.partition(":")
        # The name of a member of a collection is DIR::PATH.
        self._file = Path(rest.removeprefix(":")).resolve() if self._kind in _FILES else None
        if self._kind == "MEMORY" or (self._file and not _is_own(self._file)):
            raise GssError(_("{cache} is not your own ticket cache").format(cache=full))
        self._client = self._make("krb5_cc_get_principal", self._cache, free="krb5_free_principal")

    def ticket(self) -> CachedTicket:
        """Return the ticket that obtains all others."""
        principal = self._text(self._client)
        realm = principal.rpartition("@")[2]
        wanted = _Credentials(client=self._client.value)
        server = self._make(
            "krb5_parse_name", f"krbtgt/{realm}@{realm}".encode(), free="krb5_free_principal"
        )
        wanted.server = server.value
        found = _Credentials()
        self._run(
            "krb5_cc_retrieve_cred", self._cache, 0, ctypes.byref(wanted), ctypes.byref(found)
        )
        self._library.krb5_free_cred_contents(self._context, ctypes.byref(found))
        return CachedTicket(
            principal,
            found.starttime or found.authtime,
            found.endtime,
            found.renew_till if found.ticket_flags & _RENEWABLE else 0,
        )

    def renew(self) -> None:
        """Replace the content of the cache by a renewed ticket."""
        before, old = _version(self._file), self.ticket()
        renewed = _Credentials()
        self._run("krb5_get_renewed_creds", ctypes.byref(renewed), self._client, self._cache, None)
        self._stack.callback(
            self._library.krb5_free_cred_contents, self._context, ctypes.byref(renewed)
        )
        if renewed.endtime <= old.end:
            raise GssError(_("the KDC did not extend it"))
        if self._file is None:
            self._store(self._cache, renewed)
            return
        try:
            # Of mode 0700, beside the cache: no other user can replace the file before the rename.
            with tempfile.TemporaryDirectory(
                dir=self._file.parent, prefix=".submarine-ticket-"
            ) as draft:
                new = Path(draft) / "krb5cc"
                cache = self._make("krb5_cc_resolve", b"FILE:" + bytes(new), free="krb5_cc_close")
                self._store(cache, renewed)
                if _version(self._file) == before:
                    new.replace(self._file)
        except OSError as exc:
            raise GssError(
                _("{path} cannot be replaced: {error}").format(path=self._file, error=exc)
            ) from exc

    def _store(self, cache: ctypes.c_void_p, credentials: _Credentials) -> None:
        self._run("krb5_cc_initialize", cache, self._client)
        self._run("krb5_cc_store_cred", cache, ctypes.byref(credentials))

    def _text(self, principal: ctypes.c_void_p) -> str:
        name = ctypes.c_void_p()
        self._run("krb5_unparse_name", principal, ctypes.byref(name))
        self._stack.callback(self._library.krb5_free_unparsed_name, self._context, name)
        return ctypes.string_at(name.value or 0).decode(errors="replace")

    def _make(self, function: str, *arguments: object, free: str) -> ctypes.c_void_p:
        """Call a function that returns an object in its last argument."""
        made = ctypes.c_void_p()
        self._run(function, *arguments, ctypes.byref(made))
        release: Callable[..., object] = getattr(self._library, free)
        self._stack.callback(release, self._context, made)
        return made

    def _run(self, function: str, *arguments: object) -> None:
        """Call a function that returns an error code."""
        code = getattr(self._library, function)(self._context, *arguments)
        if code:
            text = self._library.krb5_get_error_message(self._context, code)
            raise GssError(text.decode(errors="replace") if text else f"error {code}")


def _is_own(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _version(path: Path | None) -> tuple[int, ...]:
    """Return what distinguishes the versions of a file."""
    if path is None:
        return ()
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
        library.krb5_get_error_message.restype = ctypes.c_char_p
        library.krb5_get_renewed_creds.restype = ctypes.c_int
    except (OSError, AttributeError) as exc:
        raise GssError(
            _("the Kerberos library {library} cannot be loaded: {error}").format(
                library=_LIBRARY, error=exc
            )
        ) from exc
    return library
