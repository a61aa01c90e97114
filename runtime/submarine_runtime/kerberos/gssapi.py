"""Tickets through the system's libgssapi_krb5, with ctypes: negotiation for HTTP, and caches.

The library is loaded for the first call. Names of its functions and constants are those of RFC 2744
and of MIT Kerberos (``gssapi_ext.h``). One call takes about 10 ms.
"""

from __future__ import annotations

import base64
import ctypes
import functools
import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from submarine_runtime.translation import _

_LIBRARY = "libgssapi_krb5.so.2"
_CALL = ctypes.c_uint32
_ERROR_MASK = 0xFFFF0000
_INDEFINITE = 0xFFFFFFFF
_INITIATE = 1
#: Mutual authentication, and detection of replays.
_FLAGS = 2 | 4


class _Oid(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("elements", ctypes.c_char_p)]


class _OidSet(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("elements", ctypes.POINTER(_Oid))]


class _Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class _KeyValue(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _KeyValues(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_KeyValue))]


def _oid(*octets: int) -> _Oid:
    return _Oid(len(octets), bytes(octets))


_HOST_SERVICE = _oid(0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x01, 0x04)
_PRINCIPAL = _oid(0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02, 0x01)
_KERBEROS = _oid(0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02)
_SPNEGO = _oid(0x2B, 0x06, 0x01, 0x05, 0x05, 0x02)
_FUNCTIONS = (
    "gss_acquire_cred_from",
    "gss_acquire_cred_with_password",
    "gss_delete_sec_context",
    "gss_display_name",
    "gss_display_status",
    "gss_import_name",
    "gss_init_sec_context",
    "gss_inquire_cred",
    "gss_release_buffer",
    "gss_release_cred",
    "gss_release_name",
    "gss_store_cred",
    "gss_store_cred_into",
)


class GssError(Exception):
    """Kerberos refused an operation; the message is that of the library."""


@dataclass(frozen=True)
class Credential:
    """The source of the tickets of a user.

    Parameters
    ----------
    principal
        ``name@REALM``; empty: the one of the ticket cache, or the first of the keytab.
    keytab
        Path of a keytab; empty: the ticket cache only.
    cache
        Ticket cache, such as ``FILE:/tmp/krb5cc_1000`` or ``MEMORY:name``; empty: the library's
        default, which ``KRB5CCNAME`` names.
    """

    principal: str = ""
    keytab: str = ""
    cache: str = ""


#: The user's own ticket cache.
DEFAULT = Credential()


@dataclass(frozen=True)
class CredentialState:
    """Principal and remaining lifetime (in seconds) of a credential."""

    principal: str
    lifetime: float


@functools.lru_cache(maxsize=None)
def _library() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
        for name in _FUNCTIONS:
            getattr(library, name).restype = _CALL
    except (OSError, AttributeError) as exc:
        raise GssError(
            _("the Kerberos library {library} cannot be loaded: {error}").format(
                library=_LIBRARY, error=exc
            )
        ) from exc
    return library


def gssapi_problem() -> str:
    """Return why the library cannot be used; empty if it can."""
    try:
        _library()
    except GssError as exc:
        return str(exc)
    return ""


class _Calls(ExitStack):
    """Calls of the library; what they allocate is released at the end of the block."""

    def __init__(self) -> None:
        super().__init__()
        self.library = _library()
        self.minor = _CALL()

    def check(self, major: int, mechanism: _Oid = _KERBEROS) -> None:
        """Raise GssError with the texts of both codes, if the call failed."""
        if not major & _ERROR_MASK:
            return
        texts = []
        # 1 and 2: the code is that of GSSAPI, and that of the mechanism.
        for code, kind in ((self.minor.value, 2), (major, 1)):
            more, minor, text = _CALL(), _CALL(), _Buffer()
            self.library.gss_display_status(
                ctypes.byref(minor), _CALL(code), kind, ctypes.byref(mechanism),
                ctypes.byref(more), ctypes.byref(text),
            )  # fmt: skip
            if text.value and code:
                raw = ctypes.string_at(text.value, text.length).rstrip(b"\0")
                texts.append(raw.decode(errors="replace"))
            self.library.gss_release_buffer(ctypes.byref(minor), ctypes.byref(text))
        raise GssError(texts[0] if texts else f"status {major:#x}")

    def _release(self, function: str, handle: Any, *more: Any) -> None:
        getattr(self.library, function)(ctypes.byref(_CALL()), ctypes.byref(handle), *more)

    def name(self, text: str, kind: _Oid) -> ctypes.c_void_p:
        raw = text.encode()
        buffer = _Buffer(len(raw), ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p))
        name = ctypes.c_void_p()
        major = self.library.gss_import_name(
            ctypes.byref(self.minor), ctypes.byref(buffer), ctypes.byref(kind), ctypes.byref(name)
        )
        self.check(major)
        self.callback(self._release, "gss_release_name", name)
        return name

    def acquire(self, credential: Credential, mechanism: _Oid = _KERBEROS) -> ctypes.c_void_p:
        """Return the handle of a credential; a keytab obtains a ticket when one is needed."""
        pairs = [(b"client_keytab", credential.keytab), (b"ccache", credential.cache)]
        entries = [_KeyValue(key, os.fsencode(value)) for key, value in pairs if value]
        array = (_KeyValue * len(entries))(*entries)
        store = _KeyValues(len(entries), array)
        mechanisms = _OidSet(1, ctypes.pointer(mechanism))
        principal = credential.principal
        who = self.name(principal, _PRINCIPAL) if principal else ctypes.c_void_p()
        handle = ctypes.c_void_p()
        major = self.library.gss_acquire_cred_from(
            ctypes.byref(self.minor), who, _CALL(_INDEFINITE), ctypes.byref(mechanisms),
            ctypes.c_int(_INITIATE), ctypes.byref(store), ctypes.byref(handle), None, None,
        )  # fmt: skip
        try:
            self.check(major, mechanism)
        except GssError as exc:
            if not credential.keytab:
                raise
            raise GssError(
                _("{reason} (for {principal} with the keytab {keytab})").format(
                    reason=exc, principal=principal, keytab=credential.keytab
                )
            ) from exc
        self.callback(self._release, "gss_release_cred", handle)
        return handle

    def password_credential(self, principal: str, password: str) -> ctypes.c_void_p:
        """Return the handle of a credential from a password."""
        raw = password.encode()
        buffer = _Buffer(len(raw), ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p))
        mechanisms = _OidSet(1, ctypes.pointer(_KERBEROS))
        handle = ctypes.c_void_p()
        major = self.library.gss_acquire_cred_with_password(
            ctypes.byref(self.minor), self.name(principal, _PRINCIPAL), ctypes.byref(buffer),
            _CALL(_INDEFINITE), ctypes.byref(mechanisms), ctypes.c_int(_INITIATE),
            ctypes.byref(handle), None, None,
        )  # fmt: skip
        self.check(major)
        self.callback(self._release, "gss_release_cred", handle)
        return handle

    def text_of(self, name: ctypes.c_void_p) -> str:
        text = _Buffer()
        major = self.library.gss_display_name(
            ctypes.byref(self.minor), name, ctypes.byref(text), None
        )
        self.check(major)
        self.callback(self._release, "gss_release_buffer", text)
        return ctypes.string_at(text.value, text.length).decode() if text.value else ""


#: Two threads that obtain the same ticket would both write the cache.
_lock = threading.Lock()


def negotiate(host: str, credential: Credential = DEFAULT, service: str = "HTTP") -> str:
    """Return the value of ``Authorization: Negotiate`` for a request to ``host``.

    Parameters
    ----------
    host
        Name of the host, as in the service's principal ``HTTP/host``.

    Raises
    ------
    GssError
        If the library is missing, there is no valid ticket, or the KDC refuses one.
    """
    with _lock, _Calls() as calls:
        target = calls.name(f"{service}@{host}", _HOST_SERVICE)
        try:
            handle = calls.acquire(credential, _SPNEGO)
        except GssError:
            # SPNEGO reports only that it has no mechanism; Kerberos has the reason.
            calls.acquire(credential)
            raise
        context, output, empty = ctypes.c_void_p(), _Buffer(), _Buffer()
        major = calls.library.gss_init_sec_context(
            ctypes.byref(calls.minor), handle, ctypes.byref(context), target,
            ctypes.byref(_SPNEGO), _CALL(_FLAGS), _CALL(0), None, ctypes.byref(empty), None,
            ctypes.byref(output), None, None,
        )  # fmt: skip
        calls.callback(calls._release, "gss_release_buffer", output)
        if context:
            calls.callback(calls._release, "gss_delete_sec_context", context, None)
        calls.check(major, _SPNEGO)
        return base64.b64encode(ctypes.string_at(output.value, output.length)).decode()


def credential_state(credential: Credential = DEFAULT) -> CredentialState:
    """Return principal and remaining lifetime; with a keytab, a ticket is obtained.

    Raises
    ------
    GssError
        If there is no valid ticket.
    """
    with _lock, _Calls() as calls:
        handle = calls.acquire(credential)
        name, lifetime = ctypes.c_void_p(), _CALL()
        major = calls.library.gss_inquire_cred(
            ctypes.byref(calls.minor), handle, ctypes.byref(name), ctypes.byref(lifetime),
            None, None,
        )  # fmt: skip
        calls.check(major)
        calls.callback(calls._release, "gss_release_name", name)
        seconds = float("inf") if lifetime.value == _INDEFINITE else float(lifetime.value)
        return CredentialState(calls.text_of(name), seconds)


def copy_to_cache(credential: Credential, cache: str) -> None:
    """Write the ticket of ``credential`` to another cache, replacing its content.

    Parameters
    ----------
    cache
        Such as ``FILE:/path``; a new file has mode 0600.

    Raises
    ------
    GssError
        If there is no valid ticket, or the cache cannot be written.
    """
    with _lock, _Calls() as calls:
        handle = calls.acquire(credential)
        entry = _KeyValue(b"ccache", os.fsencode(cache))
        store = _KeyValues(1, ctypes.pointer(entry))
        overwrite, default = _CALL(1), _CALL(1)
        major = calls.library.gss_store_cred_into(
            ctypes.byref(calls.minor), handle, ctypes.c_int(_INITIATE), ctypes.byref(_KERBEROS),
            overwrite, default, ctypes.byref(store), None, None,
        )  # fmt: skip
        calls.check(major)


def login(principal: str, password: str) -> None:
    """Obtain a ticket by a password, and store it in the user's default cache.

    Parameters
    ----------
    principal
        ``name`` or ``name@REALM``.

    Raises
    ------
    GssError
        If the KDC refuses or does not answer, or the cache cannot be written.
    """
    with _lock, _Calls() as calls:
        handle = calls.password_credential(principal, password)
        major = calls.library.gss_store_cred(
            ctypes.byref(calls.minor), handle, ctypes.c_int(_INITIATE), ctypes.byref(_KERBEROS),
            _CALL(1), _CALL(1), None, None,
        )  # fmt: skip
        calls.check(major)
