"""Checks of what the cluster permits: proxy users and access control lists."""

from __future__ import annotations

from submarine_jobs.doctor.context import DoctorContext
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_jobs.errors import AclsDisabledError, RefusedError
from submarine_jobs.model import primary_of
from submarine_runtime.cluster_http import HttpClient, NoAnswerError
from submarine_runtime.translation import _
from submarine_runtime.yarn import find_queue, queues_of

_TIMEOUT = 5.0
_YARN_ACLS = "yarn.acl.enable"


def proxy_user(context: DoctorContext) -> Finding:
    """Check that NameNode and ResourceManager let the principal act for the ``proxy_user``."""
    identity = context.yarn.identity
    if not context.conf.kerberos:
        return skipped(_("The cluster uses simple authentication."))
    if not identity.proxy_user:
        return skipped(_("No proxy_user is set: jobs belong to the user of the principal."))
    if identity.tokens is not None:
        return skipped(_("Delegation tokens are used, which name the user."))
    service = primary_of(identity.ticket().principal)
    refusals = {
        _("NameNode"): _namenode_refusal(context),
        _("ResourceManager"): _resourcemanager_refusal(context),
    }
    found = [f"{place}: {refusal}" for place, refusal in refusals.items() if refusal]
    if found:
        return error(
            _("{service} may not act for {user}: {refusals}.").format(
                service=service, user=identity.proxy_user, refusals="; ".join(found)
            ),
            _(
                "Operators: set hadoop.proxyuser.{service}.hosts and "
                "hadoop.proxyuser.{service}.users (or .groups) in the core-site.xml of the "
                "NameNode and the ResourceManager, and run "
                "`-refreshSuperUserGroupsConfiguration` of `hdfs dfsadmin` and `yarn rmadmin`."
            ).format(service=service),
        )
    return ok(
        _("NameNode and ResourceManager let {service} act for {user}.").format(
            service=service, user=identity.proxy_user
        )
    )


def yarn_acls(context: DoctorContext) -> Finding:
    """Check that YARN's access control lists protect the jobs of a cluster with Kerberos."""
    if not context.conf.kerberos:
        return skipped(_("The cluster uses simple authentication, which verifies no user."))
    value = context.rm_setting(_YARN_ACLS, "false")
    if value.lower() != "true":
        return warning(
            _(
                "YARN checks no access control lists ({setting} is {value}): each user can view "
                "and end the jobs of others."
            ).format(setting=_YARN_ACLS, value=value),
            _(
                "Operators: set {setting} to true in the yarn-site.xml of ResourceManagers and "
                "NodeManagers."
            ).format(setting=_YARN_ACLS),
        )
    return ok(_("YARN checks access control lists ({setting}).").format(setting=_YARN_ACLS))


def hdfs_acls(context: DoctorContext) -> Finding:
    """Check that the file system keeps access control lists, which ``--share`` sets."""
    storage, _root = context.yarn.job_root()
    try:
        storage.acl("/")
    except AclsDisabledError as exc:
        return warning(
            _("{error}, so --share does not let others read a job directory.").format(
                error=exc.message
            ),
            _("Operators: set dfs.namenode.acls.enabled to true in the NameNodes' hdfs-site.xml."),
        )
    return ok(_("HDFS keeps access control lists, which --share sets."))


def queue_access(context: DoctorContext) -> Finding:
    """Check that the user may submit to the profile's queue."""
    if context.rm_setting(_YARN_ACLS, "false").lower() != "true":
        return skipped(_("YARN checks no access control lists."))
    queues = queues_of(context.rm_response("/scheduler"))
    name, user = context.profile.queue or "default", context.yarn.user
    queue = find_queue(queues, name)
    if queue is None:
        return skipped(_("There is no queue {name}.").format(name=name))
    if queue.submitters is None:
        return ok(
            _(
                "The access list of queue {name} does not exclude {user}: it admits all users, or "
                "groups, which only the ResourceManager knows."
            ).format(name=name, user=user)
        )
    if user in queue.submitters:
        return ok(_("{user} may submit to queue {name}.").format(user=user, name=name))
    others = [
        one.name
        for one in queues
        if one.leaf and one.running and (one.submitters is None or user in one.submitters)
    ]
    ask = _("Operators: add {user} to yarn.scheduler.capacity.{path}.acl_submit_applications.")
    choose = _("Choose one of {queues} (setting queue or --queue), or ask the operator.")
    return error(
        _("{user} may not submit to queue {name}.").format(user=user, name=name),
        choose.format(queues=", ".join(others[:20]))
        if others
        else ask.format(user=user, path=queue.path),
    )


def _namenode_refusal(context: DoctorContext) -> str:
    """Return the NameNode's reason to refuse the proxy user; empty if it does not."""
    client = HttpClient(
        context.conf.webhdfs, access=context.yarn.identity.file_system_access, timeout=_TIMEOUT
    )
    try:
        answer = client.request("GET", "/webhdfs/v1/", {"op": "GETHOMEDIRECTORY"})
    except NoAnswerError:
        return ""  # `ports` and `webhdfs` report it.
    if answer.status != 403:
        return ""
    remote = answer.json_object().get("RemoteException")
    said = remote.get("message") if isinstance(remote, dict) else None
    return " ".join(str(said or answer.status).split())[:200].rstrip(".")


def _resourcemanager_refusal(context: DoctorContext) -> str:
    """Return the ResourceManager's reason to refuse the proxy user; empty if it does not."""
    try:
        context.rm_response("/info")
    except RefusedError as exc:
        return exc.message.rstrip(".")
    return ""
