"""Kerberos of a cluster: realm, users, passwords, and the configuration of clients.

The KDC is a process of its own (``java/Kdc.java``). It reads the file of principals, derives their
keys from the passwords there and writes the keytabs.
"""

from __future__ import annotations

import secrets
import time

from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop.config import SERVICES
from submarine_minicluster.hadoop.ticket_cache import make_ticket_cache
from submarine_minicluster.layout import Layout
from submarine_minicluster.settings import SavedCluster
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

REALM = "MINICLUSTER.TEST"
USERS = ("alice", "bob")
"""Users of each cluster with Kerberos."""
HUB = "hub"
"""Service that may act for `USERS`."""
WEB = "HTTP"
"""Service of all web interfaces."""

_KEYTAB_TIMEOUT = 30.0

_KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  forwardable = true
  ticket_lifetime = {lifetime}s
  renew_lifetime = {renewable}s

[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""


def service_principal(name: str, saved: SavedCluster) -> str:
    """Return the principal of a daemon's user, or of the web interfaces."""
    return f"{name}/{saved.settings.host}@{REALM}"


def write_kerberos(layout: Layout, saved: SavedCluster) -> None:
    """Write the configuration and the principals, which keep the passwords of the last start."""
    for folder in (layout.keytab("").parent, layout.tickets("")):
        folder.mkdir(parents=True, exist_ok=True)
    settings = saved.settings
    text = _KRB5_CONF.format(
        realm=REALM,
        lifetime=settings.ticket_lifetime,
        renewable=settings.ticket_renewable,
        port=saved.ports["kdc"],
    )
    replace_file(layout.krb5_conf, text.encode())
    secret = layout.kerberos / "http-secret"
    if not secret.exists():
        replace_file(secret, secrets.token_hex(32).encode(), mode=0o600)
    write_principals(layout, saved)


def write_principals(layout: Layout, saved: SavedCluster) -> None:
    """Write the principals of the services and of the users of `saved`."""
    passwords = _passwords(layout)
    names = {f"krbtgt/{REALM}": "-"}  # its keytab is not written
    names |= {
        service_principal(name, saved).partition("@")[0]: f"keytabs/{name}.keytab"
        for name in (*SERVICES, WEB)
    }
    names |= {name: f"keytabs/{name}.keytab" for name in saved.users if name not in SERVICES}
    lines = [
        f"{name} {passwords.get(name) or secrets.token_urlsafe(12)} {keytab}\n"
        for name, keytab in names.items()
    ]
    replace_file(layout.principals, "".join(lines).encode(), mode=0o600)


def _passwords(layout: Layout) -> dict[str, str]:
    try:
        lines = layout.principals.read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {words[0]: words[1] for words in map(str.split, lines)}


def password(layout: Layout, user: str) -> str:
    """Return the password of a user.

    Raises
    ------
    MiniclusterError
        If the cluster has no such user.
    """
    try:
        return _passwords(layout)[user]
    except KeyError:
        known = ", ".join(name for name in _passwords(layout) if "/" not in name)
        raise MiniclusterError(
            _("There is no Kerberos user {user!r}. Use one of {known}.").format(
                user=user, known=known
            )
        ) from None


def await_keytabs(layout: Layout, saved: SavedCluster) -> None:
    """Wait until the KDC has written the keytabs of all users of `saved`.

    Raises
    ------
    MiniclusterError
        If it does not write them.
    """
    deadline = time.monotonic() + _KEYTAB_TIMEOUT
    for name in (*SERVICES, WEB, *saved.users):
        while not layout.keytab(name).exists():
            if time.monotonic() > deadline:
                raise MiniclusterError(
                    _("The KDC did not write {keytab} (log: {log}).").format(
                        keytab=layout.keytab(name), log=layout.log("kdc")
                    )
                )
            time.sleep(0.05)


def refresh_tickets(layout: Layout, saved: SavedCluster, user: str) -> str:
    """Write a ticket cache of a user or service and return the value of ``KRB5CCNAME``.

    Raises
    ------
    MiniclusterError
        If there is no such user, or the KDC does not answer.
    """
    if user in SERVICES:
        principal = service_principal(user, saved)
    else:
        principal = user
        password(layout, user)  # an unknown user is reported with the known ones
    path = layout.tickets(user)
    make_ticket_cache(
        principal,
        layout.keytab(user),
        path,
        krb5_conf=layout.krb5_conf,
        lifetime=saved.settings.ticket_lifetime,
        renewable=saved.settings.ticket_renewable,
    )
    return f"FILE:{path}"
