"""Checks of a secure cluster: Kerberos library, ticket, names, certificates, encryption zones."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

from submarine_jobs.backends.yarn.cluster import cached_ticket
from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_jobs.errors import TRUST_CA, ConfigError
from submarine_jobs.model import format_duration
from submarine_jobs.storage import check_job_root
from submarine_jobs.text import duration, timestamp
from submarine_runtime.cluster_http import HttpClient, NoAnswerError, connect
from submarine_runtime.kerberos import HDFS_TOKEN, RM_TOKEN, gssapi_problem
from submarine_runtime.translation import _

#: Seconds below which a ticket will soon expire.
_SOON = 3600.0
#: Seconds for one request.
_TIMEOUT = 5.0


def ticket(context: DoctorContext) -> Finding:
    """Check the Kerberos library, and the user's ticket or delegation tokens."""
    if not context.conf.kerberos:
        return skipped(_("The cluster uses simple authentication."))
    if (tokens := context.yarn.identity.tokens) is not None:
        found = {token.kind for token in tokens.tokens()}
        missing = [kind for kind in (HDFS_TOKEN, RM_TOKEN) if kind not in found]
        if missing:
            return error(
                _("{file} contains no {kind}.").format(file=tokens.path, kind=", ".join(missing)),
                _("Restart your server in the JupyterHub, or get a ticket with `submarine login`."),
            )
        if context.yarn.identity.own_tokens:
            return warning(
                _(
                    "{user} can watch jobs by the tokens of this container, but not submit one."
                ).format(user=context.yarn.identity.user),
                _("Get a ticket with `%submarine login` (in a terminal `submarine login`)."),
            )
        return ok(
            _("{user} uses the delegation tokens in {file}.").format(
                user=context.yarn.identity.user, file=tokens.path
            )
        )
    if problem := gssapi_problem():
        return error(
            _("Kerberos cannot be used: {problem}.").format(problem=problem),
            _("Install MIT Kerberos: libgssapi-krb5-2 (Debian, Ubuntu) or krb5-libs (RHEL)."),
        )
    identity = context.yarn.identity
    state = identity.ticket()  # TicketError has the fix.
    user = identity.user
    lifetime = duration(state.lifetime)
    cached = cached_ticket() if context.profile.keytab is None else None
    renewed = cached is not None and cached.can_be_renewed
    if state.lifetime < _SOON and context.profile.keytab is None and not renewed:
        return warning(
            _("The ticket of {principal} expires in {lifetime} and cannot be renewed.").format(
                principal=state.principal, lifetime=lifetime
            ),
            _("Get a new one with `submarine login` or kinit, or set keytab and principal."),
        )
    valid = _("{principal} is {user} on the cluster; the ticket is valid for {lifetime}").format(
        principal=state.principal, user=user, lifetime=lifetime
    )
    if cached is None:
        return ok(f"{valid}.")
    if not renewed:
        return ok(_("{valid} and cannot be renewed.").format(valid=valid))
    return ok(
        _(
            "{valid}, and is renewed until {time} while a command waits, a kernel shows a job or "
            "the Jupyter server runs."
        ).format(valid=valid, time=timestamp(cached.renewable_until))
    )


def certificates(context: DoctorContext) -> Finding:
    """Check that this machine accepts the certificates of the cluster's HTTPS servers."""
    urls = context.conf.https_urls
    if not urls:
        return skipped(_("The cluster uses no HTTPS."))
    ca = context.yarn.identity.access.ca
    for url in urls:
        connection, parts = connect(url, _TIMEOUT, ca)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as exc:
            return error(
                _("The certificate of {place} is not accepted: {error}.").format(
                    place=parts.netloc, error=exc.verify_message
                ),
                _(TRUST_CA),
            )
        except OSError:
            continue  # `ports` reports it; one of a pair may be down.
        finally:
            connection.close()
    return ok(_("The certificates of {urls} are accepted.").format(urls=", ".join(urls)))


def token_renewal(context: DoctorContext) -> Finding:
    """Report what limits the duration of jobs: the lifetime of their delegation tokens."""
    if not context.conf.kerberos:
        return skipped(_("The cluster uses simple authentication."))
    lifetime = format_duration(context.conf.token_lifetime)
    if not context.yarn.renews_expired_tokens():
        return ok(
            _(
                "After {lifetime} a job needs fresh tokens from a process with your ticket or "
                "--distribute_keytab, and YARN starts no further containers of it on nodes "
                "without its files (yarn.resourcemanager.proxy-user-privileges.enabled is not true "
                "here)."
            ).format(lifetime=lifetime)
        )
    service = context.conf.resourcemanager_user
    hosts = f"hadoop.proxyuser.{service}.hosts"
    if service and not context.conf.gateway and _is_unset(context, hosts):
        return warning(
            _(
                "YARN is to obtain new tokens for jobs that run longer than {lifetime}, but the "
                "NameNode does not let {service} act for users ({hosts} is not set)."
            ).format(lifetime=lifetime, service=service, hosts=hosts),
            _(
                "Operators: set {hosts} and hadoop.proxyuser.{service}.groups (or .users) in the "
                "NameNode's core-site.xml."
            ).format(hosts=hosts, service=service),
        )
    return ok(
        _(
            "YARN obtains new tokens to start containers and to collect logs later than {lifetime} "
            "after the submission. The job itself then needs fresh tokens from a process with your "
            "ticket or --distribute_keytab."
        ).format(lifetime=lifetime)
    )


def _is_unset(context: DoctorContext, name: str) -> bool:
    """Return whether the NameNode reports that its configuration does not have ``name``."""
    client = HttpClient(
        context.conf.webhdfs,
        access=context.yarn.identity.file_system_access,
        timeout=_TIMEOUT,
    )
    try:
        json = {"Accept": "application/json"}
        return client.request("GET", "/conf", {"name": name}, headers=json).status == 404
    except NoAnswerError:
        return False


def encryption_zones(context: DoctorContext) -> Finding:
    """Check that the job root is not in an encryption zone."""
    storage, root = context.yarn.job_root()
    try:
        check_job_root(storage, root)
    except ConfigError as exc:
        return error(exc.message, exc.fix)
    return ok(_("{url} is outside of encryption zones.").format(url=storage.url(root)))


def service_names(context: DoctorContext) -> Finding:
    """Check that the addresses have names: a ticket is for a name, not for a number."""
    if not context.conf.kerberos:
        return skipped(_("The cluster uses simple authentication."))
    urls = (*context.conf.resourcemanagers, *context.conf.webhdfs)
    numbers = [url for url in urls if (urlsplit(url).hostname or "0")[-1].isdigit()]
    if numbers:
        return warning(
            _("The configuration names hosts by number: {urls}.").format(urls=", ".join(numbers)),
            _("Use the names for which the services have principals (HTTP/name@REALM)."),
        )
    return ok(_("The interfaces have names: {urls}.").format(urls=", ".join(urls)))
