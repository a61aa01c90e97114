"""The identity of a profile on a cluster: its user, its tickets, and its access to the interfaces.

With simple authentication a name is enough. With Kerberos the ticket decides who the user is; its
short name follows from the principal by the default rule of ``hadoop.security.auth_to_local``.
"""

from __future__ import annotations

import threading
import time
from functools import cached_property

from submarine_jobs.backends.yarn import cluster
from submarine_jobs.backends.yarn.cluster.hadoop_configuration import HadoopConf
from submarine_jobs.backends.yarn.cluster.ticket_cache import ticket_problem
from submarine_jobs.backends.yarn.cluster.token_file import native_service, token_file_name
from submarine_jobs.errors import ConfigError, TicketError
from submarine_jobs.model import Profile, container_directory, hadoop_user, primary_of
from submarine_runtime.cluster_http import Access, Answer, Authentication, simple_access
from submarine_runtime.kerberos import (
    HDFS_TOKEN,
    Credential,
    CredentialState,
    GatewayTokens,
    GssError,
    Negotiation,
    ResourceManagerTokens,
    TokenFile,
    WebHdfsTokens,
    credential_state,
)
from submarine_runtime.translation import _

_RULES = "hadoop.security.auth_to_local"
#: Seconds for which the state of a ticket is kept. Reading it takes about a millisecond.
_FRESH = 5.0


class Identity:
    """The identity of a profile.

    Parameters
    ----------
    profile
        Its ``keytab``, ``principal``, ``proxy_user`` and ``user``, and the setting ``ca_file``.
    """

    def __init__(self, profile: Profile, conf: HadoopConf) -> None:
        self._profile, self._conf = profile, conf
        self.kerberos = conf.kerberos
        self.proxy_user = profile.proxy_user or ""
        self.credential = _credential_of(profile)
        self._checked: tuple[float, CredentialState] | None = None
        self._user = ""

    @property
    def user(self) -> str:
        """The user whose jobs, files and applications these are.

        Without a ticket, the name of the account: local lists of jobs then remain readable.

        Raises
        ------
        ConfigError
            If the short name of the principal does not follow from the default rule.
        """
        if not self._user:
            named = self.proxy_user or self._profile.user
            if named or not self.kerberos or self.tokens is not None:
                self._user = hadoop_user(named)
            else:
                try:
                    self._user = self._short_name(self.ticket().principal)
                except TicketError:
                    return hadoop_user()
        return self._user

    def ticket(self) -> CredentialState:
        """Return principal and remaining lifetime of the ticket; a keytab obtains one.

        Raises
        ------
        TicketError
            If there is no valid ticket.
        """
        try:
            return self._state()
        except GssError as exc:
            raise TicketError(self.problem(exc)) from exc

    def _state(self) -> CredentialState:
        now = time.monotonic()
        if self._checked is None or now - self._checked[0] > _FRESH:
            self._checked = now, credential_state(self.credential)
        return self._checked[1]

    def problem(self, error: Exception) -> str:
        """Return why a sign-in failed; GSSAPI does not say when a ticket has expired."""
        return ticket_problem(error) if self.credential == Credential() else str(error)

    @cached_property
    def _token_file(self) -> TokenFile | None:
        if not self.kerberos or self._profile.keytab is not None or not token_file_name():
            return None
        return TokenFile(token_file_name())

    @property
    def tokens(self) -> TokenFile | None:
        """The token file of this process, while there is neither a keytab nor a valid ticket."""
        if self._token_file is None:
            return None
        try:
            self._state()  # Each request asks: without the reason, for which the cache is read.
        except GssError:
            return self._token_file
        return None

    @property
    def own_tokens(self) -> bool:
        """Whether this process signs in by the tokens of the application that it belongs to.

        The ResourceManager cancels the tokens of a submission after the end of its job.
        """
        return self.tokens is not None and container_directory() is not None

    def check_submission(self) -> None:
        """Check that a submission does not use the tokens of the application of this process.

        Raises
        ------
        TicketError
            If this container has no ticket.
        ConfigError
            If its ticket is that of another user.
        """
        if self._token_file is None or container_directory() is None:
            return
        if self.own_tokens:
            raise TicketError(
                _("with the tokens of this container you can watch jobs, but not submit one"),
                _(
                    "Get a ticket with `%submarine login` (in a terminal `submarine login`) and "
                    "run the job again."
                ),
            )
        principal = self.ticket().principal
        if not self._profile.user and self._short_name(principal) != self.user:
            raise ConfigError(
                _("The ticket is that of {principal}, and this container that of {user}.").format(
                    principal=principal, user=self.user
                ),
                _("Get a ticket of {user} with `%submarine login {user}`.").format(user=self.user),
            )

    @property
    def uses_cache(self) -> bool:
        """Whether tickets are those of the user's own cache."""
        return self.kerberos and self.credential == Credential() and self.tokens is None

    @property
    def process_wide(self) -> bool:
        """Whether hdfs-native acts as this identity: it knows only that of the process."""
        if self.kerberos:
            own = self.credential == Credential() and not self.proxy_user
            return own and (not self._may_use_tokens or self._has_native_token)
        return self.user == hadoop_user()

    @property
    def _may_use_tokens(self) -> bool:
        """Whether requests are signed by the token file, now or after the end of a ticket."""
        in_container = self._token_file is not None and container_directory() is not None
        return in_container or self.tokens is not None

    @property
    def _has_native_token(self) -> bool:
        """Whether hdfs-native finds the token of the file system.

        It looks for the name in the configuration. YARN's own token files have the IP address; the
        agent adds the name, and in a container of another program, such as a spawner's, there is no
        agent.
        """
        found = [] if self._token_file is None else self._token_file.find(HDFS_TOKEN)
        return native_service(self._conf) in {token.service for token in found}

    @cached_property
    def access(self) -> Access:
        """Authentication and certificates for the ResourceManager."""
        return self._access(ResourceManagerTokens)

    @cached_property
    def file_system_access(self) -> Access:
        """Authentication and certificates for WebHDFS."""
        return self._access(GatewayTokens if self._conf.gateway else WebHdfsTokens)

    def _access(self, by_tokens: type[ResourceManagerTokens | WebHdfsTokens]) -> Access:
        if self._token_file is None:
            return self._own_access
        tokens = by_tokens(self._token_file, self._conf.token_interval)
        tickets = self._own_access.authentication
        return Access(_TicketOrTokens(self, tickets, tokens), self._authorities)

    @cached_property
    def _own_access(self) -> Access:
        if not self.kerberos:
            return Access(simple_access(self.user).authentication, self._authorities)
        interval = self._conf.token_interval
        negotiation = Negotiation(self.credential, self.proxy_user, interval)
        return Access(negotiation, self._authorities)

    @cached_property
    def _authorities(self) -> str:
        # The attribute loads cryptography, which a cluster without HTTPS does not need.
        return cluster.authorities(self._profile, self._conf) if self._conf.https_urls else ""

    def _short_name(self, principal: str) -> str:
        realm = principal.partition("@")[2]
        rules = self._conf.get(_RULES, "DEFAULT").split()
        # The default rule accepts principals of the default realm, which Hadoop takes from
        # krb5.conf; here that of the services stands for it.
        own = self._conf.service_realm
        if (own and realm != own) or (rules and rules[-1] != "DEFAULT"):
            raise ConfigError(
                _(
                    "The user of the principal {principal} on the cluster is not known: it does "
                    "not follow from the default rule of {rules}."
                ).format(principal=principal, rules=_RULES),
                _("Set user in the profile to the short name that the cluster uses."),
            )
        return primary_of(principal)


class _TicketOrTokens(Authentication):
    """Sign in by the ticket while there is a valid one, else by the tokens of a file.

    A ticket may be obtained and expire while the process runs.
    """

    in_containers = "token"

    def __init__(self, identity: Identity, tickets: Authentication, tokens: Authentication) -> None:
        self._identity, self._tickets, self._tokens = identity, tickets, tokens
        self.token_interval = tokens.token_interval
        self._sent = threading.local()

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``Authentication.sign``."""
        present = self._tickets if self._identity.tokens is None else self._tokens
        self._sent.by = present
        present.sign(host, place, query, headers)

    def answered(self, place: str, answer: Answer) -> bool:
        """See ``Authentication.answered``."""
        return bool(self._sent.by.answered(place, answer))


def _credential_of(profile: Profile) -> Credential:
    """Return the source of the tickets of a profile: its keytab, or the user's ticket cache."""
    if profile.keytab is None:
        return Credential()
    # Tickets of a keytab stay in memory: the user's own cache is not changed.
    principal = profile.principal or ""
    return Credential(principal, str(profile.keytab), f"MEMORY:submarine-{principal}")
