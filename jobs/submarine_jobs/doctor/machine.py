"""Checks of this machine: Java, names, proxies, disk, the job's Python."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

from submarine_jobs.backends.yarn import driver
from submarine_jobs.doctor.context import DoctorContext, run
from submarine_jobs.doctor.result import Finding, error, ok, skipped, warning
from submarine_runtime.translation import _

#: Minimum of free bytes for a job's directory and the driver's jars.
LEAST_FREE = 1 << 30
_TESTED_JAVA = (8, 11, 17)
_OLDEST_PYTHON = (3, 8)
_PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def java(context: DoctorContext) -> Finding:
    """Check the Java of the driver."""
    home = driver.java_home(context.profile)
    version = driver.java_version(home)
    if version not in _TESTED_JAVA and version < 17:
        return warning(
            _("The Java at {home} is version {version}, which Hadoop is not tested with.").format(
                home=home, version=version
            ),
            _("Install Java 8, 11 or 17 and set java_home."),
        )
    return ok(_("Java {version} at {home}.").format(version=version, home=home))


def state_directory(context: DoctorContext) -> Finding:
    """Check free space and permissions of the host-local state directory."""
    directory = context.profile.state_dir
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return error(
            _("The state directory {directory} cannot be written.").format(directory=directory),
            _("Change its owner, or set state_dir to a directory of this machine that is yours."),
        )
    free = shutil.disk_usage(existing).free
    if free < LEAST_FREE:
        return warning(
            _("Only {free} MiB are free on the disk of {directory}.").format(
                free=free >> 20, directory=directory
            ),
            _("Free some space, or set state_dir."),
        )
    return ok(
        _("{directory} is writable; {free} GiB are free.").format(
            directory=directory, free=free >> 30
        )
    )


def proxies(context: DoctorContext) -> Finding:
    """Check that proxy variables exempt this machine, because gRPC uses them for the driver."""
    found = [
        name for word in _PROXIES for name in (word, word.upper()) if context.environ.get(name)
    ]
    if not found:
        return ok(_("No proxy variables are set."))
    exempt = context.environ.get("no_proxy") or context.environ.get("NO_PROXY") or ""
    words = {word.strip() for word in exempt.split(",")}
    if "*" in words or {"127.0.0.1", "localhost"} <= words:
        return ok(
            _("Proxy variables ({found}) are set, and no_proxy exempts this machine.").format(
                found=", ".join(found)
            )
        )
    return warning(
        _(
            "Proxy variables ({found}) are set, and no_proxy does not exempt localhost and "
            "127.0.0.1."
        ).format(found=", ".join(found)),
        _("export no_proxy=localhost,127.0.0.1,$(hostname -f) and the cluster's hosts."),
    )


def names(context: DoctorContext) -> Finding:
    """Check name and reverse name of this machine, which Hadoop's daemons use."""
    own = socket.gethostname()
    try:
        address = socket.getaddrinfo(own, None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as exc:
        return error(
            _("This machine's name {own} has no address: {error}.").format(
                own=own, error=exc.strerror or exc
            ),
            _("Add it to /etc/hosts or to the DNS."),
        )
    try:
        back = socket.gethostbyaddr(str(address))[0]
    except OSError:
        return warning(
            _("{own} is {address}, but {address} has no name.").format(own=own, address=address),
            _("Add the reverse entry to the DNS or to /etc/hosts."),
        )
    if str(address).startswith("127.") and context.cluster_elsewhere:
        return warning(
            _("{own} is {address}, which no other machine can reach.").format(
                own=own, address=address
            ),
            _("List the real address of the machine before the loopback line in /etc/hosts."),
        )
    return ok(
        _("{own} is {address}, and {address} is {back}.").format(
            own=own, address=address, back=back
        )
    )


def job_python(context: DoctorContext) -> Finding:
    """Check the interpreter that runs the programs of jobs."""
    path = context.profile.python
    if not os.access(path, os.X_OK):
        where = f"{path} ({context.profile.python_env})"
        if context.profile.python_env == "host" or context.profile.backend == "local":
            return error(
                _("There is no Python at {where}.").format(where=where),
                _("Choose another with python_env."),
            )
        return warning(
            _("There is no Python at {where} on this machine, so it cannot be checked.").format(
                where=where
            ),
            _("It must exist on every node: run `submarine doctor --node` there."),
        )
    code, text = run([path, "-c", "import sys; print(sys.version_info[0], sys.version_info[1])"])
    numbers = text.split()
    if code or len(numbers) < 2 or not all(word.isdigit() for word in numbers[:2]):
        return error(
            _("{path} does not run: {text}").format(path=path, text=text.strip()[-200:]),
            _("Install it again."),
        )
    version = (int(numbers[0]), int(numbers[1]))
    shown = f"{version[0]}.{version[1]}"
    if version < _OLDEST_PYTHON:
        return error(
            _("{path} is Python {shown}, and jobs need 3.8 or newer.").format(
                path=path, shown=shown
            ),
            _("Choose another python_env."),
        )
    if version != sys.version_info[:2]:
        return warning(
            _("{path} is Python {shown}, this one is {major}.{minor}.").format(
                path=path,
                shown=shown,
                major=sys.version_info[0],
                minor=sys.version_info[1],
            ),
            _("Programs run, but what works in the notebook may not work there."),
        )
    return ok(_("{path} is Python {shown}, as here.").format(path=path, shown=shown))


def python_reach(context: DoctorContext) -> Finding:
    """Check that the path of the Python, which ``host`` expects on all nodes, is not in a home."""
    if context.profile.python_env != "host":
        return skipped(_("The job's Python is named by its path on the nodes."))
    if context.conf.on_loopback:
        return ok(_("The cluster is on this machine, so its nodes have this Python."))
    home = Path.home()
    if Path(context.profile.python).is_relative_to(home):
        return warning(
            _("{python} is in your home directory, and the nodes may not have it.").format(
                python=context.profile.python
            ),
            _('Use python_env = "path:DIR" with an environment that is on every node.'),
        )
    return ok(_("{python} is not in a home directory.").format(python=context.profile.python))
