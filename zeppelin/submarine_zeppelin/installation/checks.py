"""Checks of ``submarine zeppelin check``: installation, settings, Python, start, users, cluster.

The checks have the form of ``submarine doctor`` and include its checks of the cluster. They change
nothing; one of them starts an interpreter process for a short time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from thriftpy2.thrift import TException

from submarine_jobs.config import load_config
from submarine_jobs.doctor import (
    CHECKS,
    Check,
    DoctorContext,
    Finding,
    Result,
    error,
    examine,
    ok,
    warning,
)
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.installation.installer import (
    Installation,
    effective_properties,
    is_ours,
    runner_in,
    saved_properties,
)
from submarine_zeppelin.installation.setting_file import GROUP, read_file
from submarine_zeppelin.installation.trial_process import start_trial_process
from submarine_zeppelin.interface.properties import flag, text
from submarine_zeppelin.thrift import FORM_TYPE

#: Checks of the doctor that access the cluster.
CLUSTER_CHECKS = ("profile", "hadoop configuration", "resource manager", "hdfs")
_PROBE = "import submarine_zeppelin.service.process, thriftpy2; print(thriftpy2.__version__)"
_TIMEOUT = 60.0


def check_installation(installation: Installation) -> list[Result]:
    """Run all checks and return their results in order."""
    try:
        properties, broken = effective_properties(installation), False
    except SubmarineError:
        properties, broken = {}, True
    environ = {**os.environ, **_variables(properties)}
    own = (
        Check("installation", lambda _: _installation(installation)),
        Check("settings of Zeppelin", lambda _: _saved(installation)),
        Check("python", lambda _: _python(installation), seconds=_TIMEOUT),
        Check("start", lambda _: _start(installation, environ), seconds=_TIMEOUT),
        Check("users", lambda _: _users(installation, properties)),
    )
    chosen = [one for one in CHECKS if one.name in CLUSTER_CHECKS]
    try:
        context = DoctorContext(load_config(_options(properties), environ=environ).profile)
    except SubmarineError as failure:
        sentence, fix = failure.message, failure.fix
        chosen = [Check("profile", lambda _: error(sentence, fix))]
        context = DoctorContext(load_config({"backend": "local"}).profile)
    if context.profile.backend is None:
        chosen[0] = Check("profile", lambda _: _no_cluster(installation))
    return examine(context, own if broken else (*own, *chosen))


def _variables(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that Zeppelin passes as environment variables."""
    return {
        name: value
        for name, value in properties.items()
        if value and name.isascii() and name == name.upper() and name.isidentifier()
    }


def _options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration of the cluster in the settings."""
    return {
        "profile": text(properties, "submarine.profile") or None,
        "hadoop_conf_dir": text(properties, "SUBMARINE_HADOOP_CONF_DIR") or None,
    }


def _how_to_set(installation: Installation, *pairs: str) -> str:
    """Return how an administrator changes a setting."""
    if saved_properties(installation) is None:
        words = " ".join(f"--set {pair}" for pair in pairs)
        return f"`submarine zeppelin install {installation.home} {words}`"
    return f"set {' and '.join(pairs)} on Zeppelin's page Interpreters"


def _no_cluster(installation: Installation) -> Finding:
    to_set = _how_to_set(installation, "HADOOP_CONF_DIR=DIRECTORY")
    return warning(
        "No cluster is configured, so jobs need --backend local.",
        f"Set its client configuration: {to_set}. `submarine minicluster start` creates a cluster "
        "on this machine, which submarine.profile=minicluster selects.",
    )


def _users(installation: Installation, properties: Mapping[str, str]) -> Finding:
    if flag(properties, "submarine.allow.service.user"):
        return ok("All jobs run as Zeppelin's account (submarine.allow.service.user).")
    if (installation.home / "conf" / "shiro.ini").is_file():
        return ok("Jobs run as the user that is logged in to Zeppelin.")
    to_set = _how_to_set(installation, "submarine.allow.service.user=true")
    return warning(
        "Zeppelin has no logins (conf/shiro.ini), so jobs are rejected.",
        f"Configure logins, or let all jobs run as Zeppelin's account: {to_set}.",
    )


def _installation(installation: Installation) -> Finding:
    entries = read_file(installation.setting)
    again = f"Run `submarine zeppelin install {installation.home}`."
    if not entries:
        return error(f"{installation.setting} does not exist.", again)
    if not is_ours(entries):
        return error(f"{installation.setting} does not start Submarine.", again)
    if jars := installation.jars():
        return error(
            f"{installation.folder} contains {jars[0].name}. Its settings take precedence.",
            f"Run `submarine zeppelin install --replace {installation.home}`.",
        )
    names = ", ".join(
        f"%{GROUP}" if entry["name"] == GROUP else f"%{GROUP}.{entry['name']}" for entry in entries
    )
    return ok(f"{installation.setting} defines {names}.")


def _saved(installation: Installation) -> Finding:
    saved = saved_properties(installation)
    if saved is None:
        return ok("Zeppelin has not saved settings of the group and uses the defaults.")
    ours = {name for entry in read_file(installation.setting) for name in entry["properties"]}
    if missing := sorted(ours - saved.keys()):
        return warning(
            f"Zeppelin's saved settings lack {', '.join(missing)}. The defaults apply.",
            "Add those that you want to change on Zeppelin's page Interpreters.",
        )
    return ok("Zeppelin's saved settings of the group are complete.")


def _runner(installation: Installation) -> list[str]:
    entries = read_file(installation.setting)
    words = shlex.split(runner_in(entries[-1])) if entries else []
    if not words:
        raise SubmarineError(
            "The group is not installed, so there is no command to run.", "Install it first."
        )
    return words


def _python(installation: Installation) -> Finding:
    python = _runner(installation)[0]
    if shutil.which(python) is None:
        return error(
            f"This account cannot run {python}.",
            f"Use another: `submarine zeppelin install {installation.home} --python PROGRAM`.",
        )
    completed = subprocess.run(
        [python, "-c", _PROBE],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        cwd="/",  # do not import from the working directory
        check=False,
    )
    if completed.returncode:
        last = (completed.stderr.strip().splitlines() or ["no output"])[-1]
        return error(
            f"{python} cannot import the interpreter: {last[:200]}.",
            f"Install the package from its clone: {python} -m pip install CLONE.",
        )
    return ok(f"{python} can import the interpreter and thriftpy2 {completed.stdout.strip()}.")


def _start(installation: Installation, environ: Mapping[str, str]) -> Finding:
    with start_trial_process(_runner(installation), {**environ, "ZEPPELIN_LOG_DIR": ""}) as started:
        form = _checked(lambda: started.client.getFormType("session", "class"))
    if form != FORM_TYPE:
        return error(
            "The interpreter process does not respond as Submarine.",
            f"Run `submarine zeppelin install {installation.home}`.",
        )
    return ok(f"An interpreter process was ready in {started.seconds:.1f} s.")


def _checked(call: Callable[[], object]) -> object:
    try:
        return call()
    except (TException, OSError) as failure:
        raise SubmarineError(f"The interpreter process does not answer: {failure}.") from None
