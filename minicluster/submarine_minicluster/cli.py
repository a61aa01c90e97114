"""Commands `submarine minicluster start|stop|status|failover|env|logs`.

Parse options, print messages and set exit codes; `Minicluster` does the work.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.errors import MiniclusterError
from submarine_minicluster.hadoop import HA_KINDS, HUB, USERS
from submarine_minicluster.layout import clusters_dir
from submarine_minicluster.settings import (
    DEFAULT_HADOOP,
    HADOOP_VERSIONS,
    PROTECTIONS,
    SavedCluster,
    Settings,
    parse_memory,
)
from submarine_runtime.translation import _


class _Group(click.Group):
    """Print a `MiniclusterError` as one message on standard error and exit with code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MiniclusterError as error:
            raise click.ClickException(str(error)) from error


WARNING = _(
    "Warning: Hadoop does not verify the user name that a client gives. Another user of this "
    "machine can give your name, read your data on this cluster and run programs as you. Stop "
    "the cluster if you do not trust the other users."
)


def _name_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--name", default="default", show_default=True, help="Name of the minicluster."
    )(command)


def _json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def _complete_versions(_ctx: click.Context, _param: click.Parameter, start: str) -> list[str]:
    return [version for version in HADOOP_VERSIONS if version.startswith(start)]


@click.group(cls=_Group)
def minicluster() -> None:
    """A real Hadoop (HDFS, YARN, history server) on this machine."""


@minicluster.command()
@_name_option
@click.option(
    "--hadoop",
    metavar="VERSION",
    shell_complete=_complete_versions,
    help=_("Hadoop's version: {known} [default: {default_hadoop}].").format(
        known=", ".join(HADOOP_VERSIONS), default_hadoop=DEFAULT_HADOOP
    ),
)
@click.option("--nodes", type=int, help="Number of NodeManagers [default: 1].")
@click.option("--gpus", type=int, help="yarn.io/gpu that each node offers [default: 4].")
@click.option("--memory", metavar="SIZE", help="Memory that each node offers [default: 8G].")
@click.option("--vcores", type=int, help="Virtual cores that each node offers [default: 8].")
@click.option(
    "--preemption/--no-preemption",
    default=None,
    help="Let queues below their share preempt containers.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=NODE", help="Label a node (0, ...)."
)
@click.option(
    "--node-expiry",
    type=int,
    help="Seconds without a heartbeat until a node is lost [default: 30].",
)
@click.option(
    "--kerberos/--no-kerberos",
    default=None,
    help="Verify users by Kerberos, as a secure cluster does.",
)
@click.option(
    "--https/--no-https", default=None, help="Use TLS for all web interfaces (with --kerberos)."
)
@click.option(
    "--ha/--no-ha",
    default=None,
    help="Start two NameNodes and two ResourceManagers, one each as a standby.",
)
@click.option(
    "--ticket-lifetime",
    type=int,
    metavar="SECONDS",
    help="Lifetime of Kerberos tickets [default: 1 day].",
)
@click.option(
    "--ticket-renewable",
    type=int,
    metavar="SECONDS",
    help="Time until which Kerberos tickets are renewable [default: 7 days].",
)
@click.option(
    "--token-renew-interval",
    type=int,
    metavar="SECONDS",
    help="Time in which a delegation token must be renewed [default: 1 day].",
)
@click.option(
    "--token-max-lifetime",
    type=int,
    metavar="SECONDS",
    help="Maximum lifetime of a delegation token [default: 7 days].",
)
@click.option(
    "--proxy-user-privileges/--no-proxy-user-privileges",
    default=None,
    help="Let YARN replace the expired HDFS tokens of an application.",
)
@click.option(
    "--protection",
    type=click.Choice(PROTECTIONS),
    help="Protection of RPC and of the transfer of blocks [default: authentication].",
)
@click.option(
    "--encryption-zones/--no-encryption-zones",
    default=None,
    help="Let the superuser of HDFS encrypt directories, with keys in a file.",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a property of Hadoop, for clients and daemons.",
)
def start(name: str, memory: str | None, **given: Any) -> None:
    """Start a minicluster, or its missing daemons, and wait until it accepts jobs."""
    cluster = Minicluster(name)
    given["memory_mb"] = parse_memory(memory) if memory else None
    chosen = {key: value for key, value in given.items() if value not in (None, ())}
    saved = SavedCluster.read(cluster.layout.cluster_file)
    settings = replace(saved.settings if saved else Settings(), **chosen)
    began = time.monotonic()

    def progress(line: str) -> None:
        click.echo(f"{time.monotonic() - began:6.1f} s  {line}")

    cluster.start(settings, progress)
    option = "" if name == "default" else f" --name {shlex.quote(name)}"
    if settings.kerberos:
        option += f" --user {USERS[0]}"
    else:
        click.echo(WARNING, err=True)
    click.echo(_("Ready ({settings}). For this shell:").format(settings=settings.describe()))
    click.echo(f'  eval "$(submarine minicluster env{option})"')
    if settings.kerberos:
        _print_users(cluster)


def _print_users(cluster: Minicluster) -> None:
    """Print the passwords and keytabs of the users of a cluster with Kerberos."""
    click.echo(_("Kerberos users, with passwords for kinit and keytabs:"))
    for user in (*USERS, HUB):
        click.echo(f"  {user:<6} {cluster.password(user)}  {cluster.keytab(user)}")
    hub = _("{hub} may act for {users}.").format(hub=HUB, users=", ".join(USERS))
    click.echo(f"  {hub}")
    if cluster.ca:
        click.echo(_("Certificate authority: {ca}").format(ca=cluster.ca))


@minicluster.command()
@_name_option
@click.option("--delete-data", is_flag=True, help="Also remove HDFS, logs and settings.")
def stop(name: str, delete_data: bool) -> None:
    """Stop a minicluster and all jobs on it."""
    began = time.monotonic()
    stopped = Minicluster(name).stop(
        lambda line: click.echo(f"{time.monotonic() - began:6.1f} s  {line}"),
        delete_data=delete_data,
    )
    click.echo(
        _("Minicluster {name!r} {state}.").format(
            name=name, state=_("is stopped") if stopped else _("was not running")
        )
    )


@minicluster.command()
@_name_option
@click.argument("daemon", type=click.Choice(sorted(HA_KINDS)))
def failover(name: str, daemon: str) -> None:
    """Kill the active DAEMON of a cluster with high availability and activate the standby."""
    began = time.monotonic()
    active = Minicluster(name).fail_over(daemon)
    option = "" if name == "default" else f" --name {shlex.quote(name)}"
    click.echo(
        _(
            "{active} is active after {seconds:.1f} s. `submarine minicluster start{option}` "
            "starts the killed daemon again, as the standby."
        ).format(active=active, seconds=time.monotonic() - began, option=option)
    )


@minicluster.command()
@_name_option
@_json_option
@click.option("--all", "every", is_flag=True, help="All miniclusters of this user.")
def status(name: str, as_json: bool, every: bool) -> None:
    """Show each daemon with its process, port and address."""
    names = [name]
    if every:
        names = sorted(path.parent.name for path in clusters_dir().glob("*/cluster.json"))
    found = [Minicluster(one).status() for one in names]
    if as_json:
        documents = [one.as_json() for one in found]
        click.echo(json.dumps(documents if every else documents[0], indent=2))
        return
    for one in found:
        click.echo(f"{one.name}: {one.state} ({one.settings.describe()}), {one.default_fs}")
        for daemon in one.daemons:
            process = _("pid {pid}").format(pid=daemon.pid) if daemon.running else _("not running")
            click.echo(f"  {daemon.name:<17} {process:<12} port {daemon.port:<6} {daemon.url}")


@minicluster.command()
@_name_option
@_json_option
@click.option("--user", help="Also get a Kerberos ticket for this user, such as alice.")
def env(name: str, as_json: bool, user: str | None) -> None:
    """Print the variables that configure a shell: eval "$(submarine minicluster env)"."""
    cluster = Minicluster(name)
    if as_json:
        click.echo(json.dumps(cluster.environ(user), indent=2))
        return
    for key, value in cluster.env(user).items():
        # The shell that evaluates the output expands $PATH.
        tail = ':"$PATH"' if key == "PATH" else ""
        click.echo(f"export {key}={shlex.quote(value)}{tail}")


@minicluster.command()
@_name_option
@click.argument("daemon", required=False)
@click.option(
    "-n", "lines", default=50, show_default=True, help="Number of lines, counted from the end."
)
def logs(name: str, daemon: str | None, lines: int) -> None:
    """Print the end of a DAEMON's log, or list the log files."""
    found = {one.name: Path(one.log) for one in Minicluster(name).status().daemons}
    if daemon is None:
        for one, path in found.items():
            click.echo(f"{one:<17} {path}")
        return
    if daemon not in found:
        raise MiniclusterError(
            _("There is no daemon {daemon!r}. Use one of {found}.").format(
                daemon=daemon, found=", ".join(found)
            )
        )
    try:
        with found[daemon].open("rb") as handle:
            handle.seek(max(0, found[daemon].stat().st_size - 1024 * max(lines, 0)))
            text = handle.read().decode(errors="replace")
    except FileNotFoundError:
        raise MiniclusterError(
            _("{daemon} has not written its log yet: {found}.").format(
                daemon=daemon, found=found[daemon]
            )
        ) from None
    for line in text.splitlines()[-lines:] if lines > 0 else []:
        click.echo(line)
