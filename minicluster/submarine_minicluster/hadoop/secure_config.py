"""Changes of the configuration for Kerberos, access control lists and HTTPS.

A comment states the reason where a value is not an ordinary one of a cluster with Kerberos.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from submarine_minicluster.hadoop.config import SUPERUSER, Properties
from submarine_minicluster.hadoop.kerberos import HUB, USERS, WEB, service_principal
from submarine_minicluster.layout import Layout
from submarine_minicluster.settings import SavedCluster, Settings

# The directory of the cluster protects the files; Java requires a password.
STORE_PASSWORD = "changeit"  # noqa: S105

_INITIALIZERS = "hadoop.http.filter.initializers"
_HTTPS_ADDRESSES = {
    "dfs.namenode.http-address": "dfs.namenode.https-address",
    "dfs.datanode.http.address": "dfs.datanode.https.address",
    "yarn.resourcemanager.webapp.address": "yarn.resourcemanager.webapp.https.address",
    "yarn.nodemanager.webapp.address": "yarn.nodemanager.webapp.https.address",
    "mapreduce.jobhistory.webapp.address": "mapreduce.jobhistory.webapp.https.address",
}


def secure_sites(
    sites: Mapping[str, Properties], layout: Layout, saved: SavedCluster, *, daemon: bool
) -> dict[str, Properties]:
    """Return the files of a client or daemon with the properties of a secure cluster.

    Parameters
    ----------
    sites
        Properties of a cluster without Kerberos, by file.
    daemon
        Whether they are those of a daemon, which has keytabs.
    """
    added = _client(saved)
    if daemon:
        for site, properties in _daemon(layout, saved).items():
            added[site] = {**added.get(site, {}), **properties}
        added["hadoop-policy"] = {"security.service.authorization.default.acl": "*"}
    result = {site: {**values, **added.get(site, {})} for site, values in sites.items()}
    if daemon and "capacity-scheduler" in sites:
        # The ResourceManager replaces this one only by its own, which accepts its tokens and doAs.
        result["core-site"][_INITIALIZERS] = (
            "org.apache.hadoop.security.AuthenticationFilterInitializer"
        )
    whitelist = "yarn.nodemanager.env-whitelist"
    if whitelist in result["yarn-site"]:
        # Containers need the realm; other clusters have it in /etc/krb5.conf.
        result["yarn-site"][whitelist] += ",JAVA_TOOL_OPTIONS,KRB5_CONFIG"
    if saved.settings.https:
        result = {site: _https(values) for site, values in result.items()}
        stores = {"ssl-client": _store("client.truststore", layout.truststore)}
        if daemon:
            stores["ssl-server"] = {
                **_store("server.truststore", layout.truststore),
                **_store("server.keystore", layout.keystore),
                "ssl.server.keystore.keypassword": STORE_PASSWORD,
            }
        result |= stores
    return result


def _client(saved: SavedCluster) -> dict[str, Properties]:
    settings = saved.settings
    groups = ";".join(f"{user}={user}" for user in (*USERS, HUB))
    hdfs, yarn, mapred = (service_principal(user, saved) for user in ("hdfs", "yarn", "mapred"))
    history = f"{settings.scheme}://{settings.host}:{saved.ports['history-http']}"
    policy = "HTTPS_ONLY" if settings.https else "HTTP_ONLY"
    return {
        "core-site": {
            "hadoop.security.authentication": "kerberos",
            "hadoop.rpc.protection": settings.protection,
            # These users do not exist in the operating system.
            "hadoop.user.group.static.mapping.overrides": (
                f"{SUPERUSER}=supergroup,hadoop;yarn=hadoop;mapred=hadoop;dr.who=;{groups}"
            ),
        },
        "hdfs-site": {
            "dfs.block.access.token.enable": "true",
            "dfs.namenode.kerberos.principal": hdfs,
            "dfs.datanode.kerberos.principal": hdfs,
            "dfs.http.policy": policy,
            **_token_lifetimes("dfs.namenode", settings),
            # A DataNode with an unprivileged port requires both, or neither and no check of ports.
            **(
                {"dfs.data.transfer.protection": settings.protection}
                if settings.https
                else {"ignore.secure.ports.for.testing": "true"}
            ),
        },
        "yarn-site": {
            "yarn.acl.enable": "true",
            "yarn.http.policy": policy,
            "yarn.log.server.url": f"{history}/jobhistory/logs",
            "yarn.log.server.web-service.url": f"{history}/ws/v1/history",
            "yarn.resourcemanager.principal": yarn,
            "yarn.nodemanager.principal": yarn,
            **_token_lifetimes("yarn.resourcemanager", settings),
        },
        "mapred-site": {
            "mapreduce.jobhistory.http.policy": policy,
            "mapreduce.jobhistory.principal": mapred,
        },
    }


def _token_lifetimes(service: str, settings: Settings) -> Properties:
    """Return the lifetimes of delegation tokens; clients read them too."""
    prefix = f"{service}.delegation.token"
    return {
        f"{prefix}.renew-interval": str(settings.token_renew_interval * 1000),
        f"{prefix}.max-lifetime": str(settings.token_max_lifetime * 1000),
    }


def _daemon(layout: Layout, saved: SavedCluster) -> dict[str, Properties]:
    settings = saved.settings
    web = service_principal(WEB, saved)
    web_keytab = str(layout.keytab(WEB))
    core = {
        # The usual initializer ignores doAs in NodeManager and history server.
        _INITIALIZERS: (
            "org.apache.hadoop.security.authentication.server.ProxyUserAuthenticationFilterInitializer"
        ),
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.simple.anonymous.allowed": "false",
        "hadoop.http.authentication.signature.secret.file": str(layout.kerberos / "http-secret"),
        "hadoop.http.authentication.kerberos.principal": web,
        "hadoop.http.authentication.kerberos.keytab": web_keytab,
        f"hadoop.proxyuser.{HUB}.hosts": "*",
        f"hadoop.proxyuser.{HUB}.users": ",".join(USERS),
        # By default a daemon waits a minute before it logs in again, longer than a short ticket.
        "hadoop.kerberos.min.seconds.before.relogin": "1",
    }
    yarn = {
        "yarn.admin.acl": f"yarn,{SUPERUSER}",
        **_login("yarn.resourcemanager", layout, "yarn", web),
        **_login("yarn.nodemanager", layout, "yarn", web),
        # REST checks the user here.
        "yarn.webapp.enable-rest-app-submissions": "true",
    }
    if settings.proxy_user_privileges:
        core |= {"hadoop.proxyuser.yarn.hosts": "*", "hadoop.proxyuser.yarn.users": "*"}
        yarn["yarn.resourcemanager.proxy-user-privileges.enabled"] = "true"
    return {
        "core-site": core,
        "hdfs-site": {
            "dfs.namenode.keytab.file": str(layout.keytab("hdfs")),
            "dfs.datanode.keytab.file": str(layout.keytab("hdfs")),
            "dfs.web.authentication.kerberos.principal": web,
            "dfs.web.authentication.kerberos.keytab": web_keytab,
        },
        "yarn-site": yarn,
        "mapred-site": _login("mapreduce.jobhistory", layout, "mapred", web),
        "capacity-scheduler": {
            # By default every user may kill every application.
            "yarn.scheduler.capacity.root.acl_administer_queue": " ",
            "yarn.scheduler.capacity.root.acl_submit_applications": "*",
        },
    }


def _login(prefix: str, layout: Layout, user: str, web: str) -> Properties:
    """Return the keytabs of a daemon of YARN or MapReduce."""
    return {
        f"{prefix}.keytab": str(layout.keytab(user)),
        f"{prefix}.webapp.spnego-principal": web,
        f"{prefix}.webapp.spnego-keytab-file": str(layout.keytab(WEB)),
    }


def _https(properties: Properties) -> Properties:
    return {_https_name(name): value for name, value in properties.items()}


def _https_name(name: str) -> str:
    """Return the property's name for HTTPS; with high availability an id follows the name."""
    for plain, secure in _HTTPS_ADDRESSES.items():
        if name == plain or name.startswith(f"{plain}."):
            return secure + name[len(plain) :]
    return name


def _store(name: str, path: Path) -> Properties:
    return {
        f"ssl.{name}.location": str(path),
        f"ssl.{name}.type": "PKCS12",
        f"ssl.{name}.password": STORE_PASSWORD,
    }
