"""Ticket cache files from keytabs, as `kinit -k` makes them, by the system's Kerberos library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_runtime.translation import _

_LIBRARY = "libkrb5.so.3"
#: More than any version of the library's structure of credentials needs.
_CREDENTIALS_BYTES = 1024


def make_ticket_cache(
    principal: str, keytab: Path, path: Path, *, krb5_conf: Path, lifetime: int, renewable: int
) -> None:
    """Write a cache with a ticket for a principal; an older file is replaced.

    Parameters
    ----------
    krb5_conf
        Configuration that names the realm's key distribution center.
    lifetime, renewable
        Requested seconds until the ticket expires, and until it cannot be renewed any more.

    Raises
    ------
    MiniclusterError
        If there is no library or no ticket.
    """
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with ExitStack() as stack:
        calls = _Calls(stack, krb5_conf)
        client = calls.make("krb5_parse_name", principal.encode(), free="krb5_free_principal")
        keys = calls.make("krb5_kt_resolve", f"FILE:{keytab}".encode(), free="krb5_kt_close")
        target = calls.make("krb5_cc_resolve", f"FILE:{draft}".encode(), free="krb5_cc_close")
        options = calls.make("krb5_get_init_creds_opt_alloc", free="krb5_get_init_creds_opt_free")
        calls.run("krb5_get_init_creds_opt_set_out_ccache", options, target)
        library = _library()
        library.krb5_get_init_creds_opt_set_forwardable(options, 1)
        library.krb5_get_init_creds_opt_set_tkt_life(options, lifetime)
        library.krb5_get_init_creds_opt_set_renew_life(options, renewable)
        ticket = ctypes.create_string_buffer(_CREDENTIALS_BYTES)
        calls.run("krb5_get_init_creds_keytab", ticket, client, keys, 0, None, options)
        library.krb5_free_cred_contents(calls.context, ticket)
    draft.replace(path)


class _Calls:
    """Calls of the library with one context; `stack` frees what they return."""

    def __init__(self, stack: ExitStack, krb5_conf: Path) -> None:
        self._stack = stack
        library = _library()
        profile = ctypes.c_void_p()
        code = library.profile_init_path(str(krb5_conf).encode(), ctypes.byref(profile))
        self.context = ctypes.c_void_p()
        # The context owns the profile.
        code = code or library.krb5_init_context_profile(profile, 0, ctypes.byref(self.context))
        if code:
            raise MiniclusterError(
                _("The Kerberos configuration {path} is not readable (error {code}).").format(
                    path=krb5_conf, code=code
                )
            )
        stack.callback(library.krb5_free_context, self.context)

    def make(self, name: str, *arguments: object, free: str) -> ctypes.c_void_p:
        """Call a function that returns an object in its last argument."""
        made = ctypes.c_void_p()
        self.run(name, *arguments, ctypes.byref(made))
        release: Callable[..., object] = getattr(_library(), free)
        self._stack.callback(release, self.context, made)
        return made

    def run(self, name: str, *arguments: object) -> None:
        """Call a function that returns an error code."""
        library = _library()
        code = getattr(library, name)(self.context, *arguments)
        if code:
            text = library.krb5_get_error_message(self.context, code)
            raise MiniclusterError(
                _("Kerberos gave no ticket: {reason}").format(
                    reason=text.decode(errors="replace") if text else code
                )
            )


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise MiniclusterError(
            _(
                "Kerberos needs the library {library} ({error}). Install it (Debian: apt-get "
                "install libgssapi-krb5-2)."
            ).format(library=_LIBRARY, error=error)
        ) from error
    library.krb5_get_error_message.restype = ctypes.c_char_p
    for name in ("profile_init_path", "krb5_init_context_profile"):
        getattr(library, name).restype = ctypes.c_int
    return library
