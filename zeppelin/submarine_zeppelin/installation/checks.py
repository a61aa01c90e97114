"""``submarine zeppelin check``: is the group in a Zeppelin installation as it has to be.

Its checks are in the form of ``submarine doctor``, some of whose own are among them. Changes
nothing; starts a process of the group for a moment, as Zeppelin would.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from submarine_jobs.config import load_config
from submarine_jobs.doctor import (
    CHECKS,
    Check,
    Finding,
    Patient,
    Result,
    error,
    examine,
    ok,
    warning,
)
from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.installation import setting_file
from submarine_zeppelin.installation.installer import (
    Installation,
    is_ours,
    properties_in_force,
    runner_in,
    saved_properties,
)
from submarine_zeppelin.installation.setting_file import GROUP
from submarine_zeppelin.interface import flag, text
from submarine_zeppelin.service import FORM_TYPE

#: Those of the doctor that say whether the cluster is seen and answers.
OF_THE_CLUSTER = ("profile", "hadoop configuration", "resource manager", "hdfs")
_PROBE = "import submarine_zeppelin.service.process, thriftpy2; print(thriftpy2.__version__)"
_TIMEOUT = 60.0


def check(where: Installation) -> list[Result]:
    """All findings, in order."""
    try:
        properties, broken = properties_in_force(where), False
    except SubmarineError:
        properties, broken = {}, True
    environ = {**os.environ, **_variables(properties)}
    own = (
        Check("installation", lambda _: _installation(where)),
        Check("settings of Zeppelin", lambda _: _saved(where)),
        Check("python", lambda _: _python(where), seconds=_TIMEOUT),
        Check("start", lambda _: _start(where, environ), seconds=_TIMEOUT),
        Check("users", lambda _: _users(where, properties)),
    )
    chosen = [one for one in CHECKS if one.name in OF_THE_CLUSTER]
    try:
        patient = Patient(load_config(_options(properties), environ=environ).profile)
    except SubmarineError as wrong:
        sentence, fix = wrong.message, wrong.fix
        chosen = [Check("profile", lambda _: error(sentence, fix))]
        patient = Patient(load_config({"backend": "local"}).profile)
    if patient.profile.backend is None:
        chosen[0] = Check("profile", lambda _: _no_cluster(where))
    return examine(patient, own if broken else (*own, *chosen))


def _variables(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that Zeppelin gives a process as variables of its environment."""
    return {
        name: value
        for name, value in properties.items()
        if value and name.isascii() and name == name.upper() and name.isidentifier()
    }


def _options(properties: Mapping[str, str]) -> dict[str, Any]:
    """What the settings say of the cluster."""
    return {
        "profile": text(properties, "submarine.profile") or None,
        "hadoop_conf_dir": text(properties, "SUBMARINE_HADOOP_CONF_DIR") or None,
    }


def _how_to_set(where: Installation, *pairs: str) -> str:
    """How an administrator gives a setting another value, now."""
    if saved_properties(where) is None:
        words = " ".join(f"--set {pair}" for pair in pairs)
        return f"`submarine zeppelin install {where.home} {words}`"
    return f"set {' and '.join(pairs)} on its page Interpreters"


def _no_cluster(where: Installation) -> Finding:
    to_set = _how_to_set(where, "HADOOP_CONF_DIR=DIRECTORY")
    return warning(
        "No cluster is configured, so jobs need --backend local.",
        f"Name its client configuration: {to_set}. `submarine minicluster start` makes a cluster "
        "on this machine, and submarine.profile=minicluster uses it.",
    )


def _users(where: Installation, properties: Mapping[str, str]) -> Finding:
    if flag(properties, "submarine.allow.service.user"):
        return ok("Everybody's jobs run as Zeppelin's account (submarine.allow.service.user).")
    if (where.home / "conf" / "shiro.ini").is_file():
        return ok("Jobs run as who is logged in to Zeppelin.")
    to_set = _how_to_set(where, "submarine.allow.service.user=true")
    return warning(
        "Zeppelin has no logins (conf/shiro.ini), and jobs of nobody are refused.",
        f"Give it logins; or let everybody's jobs run as Zeppelin's account: {to_set}.",
    )


def _installation(where: Installation) -> Finding:
    entries = setting_file.read(where.setting)
    again = f"Run `submarine zeppelin install {where.home}`."
    if not entries:
        return error(f"{where.setting} is not there.", again)
    if not is_ours(entries):
        return error(f"{where.setting} does not start Submarine.", again)
    if jars := where.jars():
        return error(
            f"{where.folder} holds {jars[0].name}, whose settings Zeppelin takes instead of ours.",
            f"Run `submarine zeppelin install --replace {where.home}`.",
        )
    names = ", ".join(
        f"%{GROUP}" if entry["name"] == GROUP else f"%{GROUP}.{entry['name']}" for entry in entries
    )
    return ok(f"{where.setting} has {names}.")


def _saved(where: Installation) -> Finding:
    saved = saved_properties(where)
    if saved is None:
        return ok("Zeppelin has none of the group yet and takes the defaults.")
    ours = {name for entry in setting_file.read(where.setting) for name in entry["properties"]}
    if missing := sorted(ours - saved.keys()):
        return warning(
            f"Zeppelin's own settings of the group lack {', '.join(missing)}: their defaults hold.",
            "Add what is to be another on its page Interpreters.",
        )
    return ok("Zeppelin's own settings of the group have all of ours.")


def _runner(where: Installation) -> list[str]:
    entries = setting_file.read(where.setting)
    words = shlex.split(runner_in(entries[-1])) if entries else []
    if not words:
        raise SubmarineError("There is no runner to look at.", "Install the group first.")
    return words


def _python(where: Installation) -> Finding:
    python = _runner(where)[0]
    if shutil.which(python) is None:
        return error(
            f"{python} is no program that this account can run.",
            f"Name one: `submarine zeppelin install {where.home} --python PROGRAM`.",
        )
    done = subprocess.run(
        [python, "-c", _PROBE],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        cwd="/",  # a file of the working directory is no library
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return error(
            f"{python} cannot import the interpreter: {last[:200]}.",
            f"Install the package there, from its clone: {python} -m pip install CLONE.",
        )
    return ok(f"{python} has the interpreter and thriftpy2 {done.stdout.strip()}.")


def _start(where: Installation, environ: Mapping[str, str]) -> Finding:
    from submarine_zeppelin.installation.trial_process import rehearsal

    with rehearsal(_runner(where), {**environ, "ZEPPELIN_LOG_DIR": ""}) as started:
        form = _called(lambda: started.client.getFormType("session", "class"))
    if form != FORM_TYPE:
        return error(
            "A process of the group answers something else than Submarine.",
            f"Run `submarine zeppelin install {where.home}`.",
        )
    return ok(f"A process of the group was ready in {started.seconds:.1f} s and speaks thrift.")


def _called(call: Callable[[], object]) -> object:
    from thriftpy2.thrift import TException

    try:
        return call()
    except (TException, OSError) as wrong:
        raise SubmarineError(f"A process of the group does not answer: {wrong}.") from None
