"""``login``: get a Kerberos ticket by the user's password."""

from __future__ import annotations

import getpass

import click

from submarine_jobs.commands.grammar import Verb
from submarine_jobs.errors import ClusterError, UsageError, clock_fix
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import use_container_cache
from submarine_jobs.text import duration, printable
from submarine_runtime import kerberos
from submarine_runtime.translation import _


@click.command("login", cls=Verb, example=("login", "login alice@EXAMPLE.COM"))
@click.argument("principal", required=False)
@click.pass_obj
def login(frontend: Frontend, /, principal: str | None) -> Outcome:
    """Get a Kerberos ticket by your password, in your own ticket cache.

    The password is not stored. PRINCIPAL is your name on the cluster, with or without its realm;
    without it, the one of the present ticket, else the name of your account. Where kinit works, it
    has the same effect.
    """
    use_container_cache()
    principal = principal or _present_principal()
    password = frontend.ask_password(
        _("Password of {principal}:").format(principal=printable(principal, 200))
    )
    if password is None:
        raise UsageError(
            _("The password cannot be asked for here."),
            _("Run `submarine login` in a terminal, or set keytab and principal."),
        )
    if not password:
        raise UsageError(_("The password is empty; no ticket was requested."))
    try:
        kerberos.login(principal, password)
        state = kerberos.credential_state()
    except kerberos.GssError as exc:
        raise ClusterError(
            _("There is no ticket for {principal}: {error}.").format(
                principal=printable(principal, 200), error=str(exc).rstrip(".")
            ),
            clock_fix(str(exc))
            or _("Check name, realm and password, and that the KDC in krb5.conf is up."),
        ) from exc
    text = _("{principal} has a ticket for {lifetime}.").format(
        principal=state.principal, lifetime=duration(state.lifetime)
    )
    return Outcome(text, value={"principal": state.principal, "seconds": int(state.lifetime)})


def _present_principal() -> str:
    try:
        return kerberos.credential_state().principal
    except kerberos.GssError:
        return getpass.getuser()
