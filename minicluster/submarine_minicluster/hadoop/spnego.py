"""Kerberos by the system's GSS-API library: SPNEGO tokens for HTTP.

The library is loaded at the first use. It reads the configuration file that ``KRB5_CONFIG`` names.
"""

from __future__ import annotations

import base64
import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, cast

from submarine_minicluster.errors import MiniclusterError
from submarine_runtime.translation import _

_LIBRARY = "libgssapi_krb5.so.2"
_FAILED = 0xFFFF0000
_INITIATE = 1
_INDEFINITE = 0xFFFFFFFF
_MUTUAL_AND_SEQUENCE = 2 | 8
_GSS_CODE, _MECHANISM_CODE = 1, 2


class SpnegoError(MiniclusterError):
    """The Kerberos library is missing, or gives no ticket."""


class _Oid(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("elements", ctypes.c_char_p)]


class _OidSet(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("elements", ctypes.POINTER(_Oid))]


class _Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class _Entry(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _Store(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_Entry))]


def _oid(elements: bytes) -> _Oid:
    return _Oid(len(elements), elements)


_HOST_SERVICE = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04")
_PRINCIPAL = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01")
_KERBEROS = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")
_SPNEGO = _oid(b"\x2b\x06\x01\x05\x05\x02")


def negotiate(
    host: str,
    *,
    principal: str | None = None,
    keytab: str | None = None,
    ccache: str | None = None,
    service: str = "HTTP",
) -> str:
    """Return the token of an ``Authorization: Negotiate`` header for a server, in base64.

    Parameters
    ----------
    host
        Host name in the URL and in the server's principal.
    principal
        The client's principal; None: that of the ticket cache or keytab.
    keytab
        Keytab that gives tickets that the cache does not contain.
    ccache
        Ticket cache, such as ``FILE:/path``; None: the default one.
    service
        First part of the server's principal.

    Raises
    ------
    SpnegoError
        If there is no library or no ticket.
    """
    with ExitStack() as stack:
        target = stack.enter_context(_name(f"{service}@{host}", _HOST_SERVICE))
        credential = ctypes.c_void_p()
        if principal or keytab or ccache:
            credential = stack.enter_context(_credential(principal, keytab, ccache, _SPNEGO))
        return base64.b64encode(_first_token(credential, target)).decode()


@cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise SpnegoError(
            _(
                "Kerberos needs the library {library} ({error}). Install it (Debian: apt-get "
                "install libgssapi-krb5-2)."
            ).format(library=_LIBRARY, error=error)
        ) from error


def _gss(name: str) -> Callable[..., int]:
    function: Any = getattr(_library(), name)
    function.restype = ctypes.c_uint32
    return cast(Callable[..., int], function)


@contextmanager
def _name(text: str, kind: _Oid) -> Iterator[ctypes.c_void_p]:
    """Import a name, and release it at the end."""
    raw = ctypes.create_string_buffer(text.encode())
    buffer = _Buffer(len(raw) - 1, ctypes.cast(raw, ctypes.c_void_p))
    minor, name = ctypes.c_uint32(), ctypes.c_void_p()
    major = _gss("gss_import_name")(
        ctypes.byref(minor), ctypes.byref(buffer), ctypes.byref(kind), ctypes.byref(name)
    )
    _check(major, minor, _("{text!r} is not a Kerberos name").format(text=text))
    try:
        yield name
    finally:
        _gss("gss_release_name")(ctypes.byref(minor), ctypes.byref(name))


@contextmanager
def _credential(
    principal: str | None, keytab: str | None, ccache: str | None, mechanism: _Oid
) -> Iterator[ctypes.c_void_p]:
    """Acquire a credential of a client, and release it at the end."""
    chosen: Mapping[bytes, str | None] = {b"client_keytab": keytab, b"ccache": ccache}
    entries = [_Entry(key, value.encode()) for key, value in chosen.items() if value]
    store = _Store(len(entries), (_Entry * len(entries))(*entries))
    mechanisms = _OidSet(1, ctypes.pointer(mechanism))
    minor, credential = ctypes.c_uint32(), ctypes.c_void_p()
    with ExitStack() as stack:
        name = stack.enter_context(_name(principal, _PRINCIPAL)) if principal else None
        major = _gss("gss_acquire_cred_from")(
            ctypes.byref(minor), name, ctypes.c_uint32(_INDEFINITE), ctypes.byref(mechanisms),
            _INITIATE, ctypes.byref(store), ctypes.byref(credential), None, None,
        )  # fmt: skip
    where = keytab or ccache or principal
    _check(major, minor, _("no Kerberos ticket from {where}").format(where=where))
    try:
        yield credential
    finally:
        _gss("gss_release_cred")(ctypes.byref(minor), ctypes.byref(credential))


def _first_token(credential: ctypes.c_void_p, target: ctypes.c_void_p) -> bytes:
    minor, context = ctypes.c_uint32(), ctypes.c_void_p()
    token, nothing = _Buffer(), _Buffer()
    major = _gss("gss_init_sec_context")(
        ctypes.byref(minor), credential, ctypes.byref(context), target, ctypes.byref(_SPNEGO),
        ctypes.c_uint32(_MUTUAL_AND_SEQUENCE), ctypes.c_uint32(0), None, ctypes.byref(nothing),
        None, ctypes.byref(token), None, None,
    )  # fmt: skip
    try:
        _check(major, minor, _("no Kerberos ticket for the server"))
        return ctypes.string_at(token.value or 0, token.length)
    finally:
        _gss("gss_release_buffer")(ctypes.byref(ctypes.c_uint32()), ctypes.byref(token))
        if context:
            _gss("gss_delete_sec_context")(
                ctypes.byref(ctypes.c_uint32()), ctypes.byref(context), None
            )


def _check(major: int, minor: ctypes.c_uint32, doing: str) -> None:
    """Raise an error with the library's own messages if a call has failed."""
    if not major & _FAILED:
        return
    reasons = [_message(major, _GSS_CODE), _message(minor.value, _MECHANISM_CODE)]
    raise SpnegoError(f"{doing}: {'; '.join(reasons)}")


def _message(code: int, kind: int) -> str:
    minor, more, text = ctypes.c_uint32(), ctypes.c_uint32(0), _Buffer()
    _gss("gss_display_status")(
        ctypes.byref(minor), ctypes.c_uint32(code), kind, ctypes.byref(_KERBEROS),
        ctypes.byref(more), ctypes.byref(text),
    )  # fmt: skip
    if not text.value:
        return str(code)
    words = ctypes.string_at(text.value, text.length).decode(errors="replace")
    _gss("gss_release_buffer")(ctypes.byref(minor), ctypes.byref(text))
    return words
