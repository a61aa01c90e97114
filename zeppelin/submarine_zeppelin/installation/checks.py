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
    ok,
    run_checks,
    warning,
)
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import Profile
from submarine_kernel import kernelspecs
from submarine_runtime.translation import _
from submarine_zeppelin.accounts import check_authentication, requires_kerberos
from submarine_zeppelin.installation.installer import (
    Installation,
    effective_properties,
    runner_in,
    saved_properties,
    starts_submarine,
)
from submarine_zeppelin.installation.setting_file import GROUP, read_file
from submarine_zeppelin.installation.trial_process import start_trial_process
from submarine_zeppelin.interface import SESSION_KERNEL, flag_property, text_property
from submarine_zeppelin.thrift import FORM_TYPE

#: Checks of the doctor that access the cluster.
CLUSTER_CHECKS = (
    "profile",
    _("hadoop configuration"),
    "kerberos ticket",
    _("resource manager"),
    "hdfs",
)
_PROBE = "import submarine_zeppelin.service.process, thriftpy2; print(thriftpy2.__version__)"
_TIMEOUT = 60.0


def check_installation(installation: Installation) -> list[Result]:
    """Run all checks and return their results in order."""
    try:
        properties, broken = effective_properties(installation), False
    except SubmarineError:
        properties, broken = {}, True
    environ = {**os.environ, **_variables(properties)}
    chosen = [one for one in CHECKS if one.name in CLUSTER_CHECKS]
    try:
        context = DoctorContext(load_config(_options(properties), environ=environ).profile)
    except SubmarineError as failure:
        sentence, fix = failure.message, failure.fix
        chosen = [Check("profile", lambda _unused: error(sentence, fix))]
        context = DoctorContext(load_config({"backend": "local"}).profile)
    own: tuple[Check, ...] = (
        Check("installation", lambda _unused: _installation(installation)),
        Check(_("settings of Zeppelin"), lambda _unused: _saved(installation)),
        Check("python", lambda _unused: _python(installation), seconds=_TIMEOUT),
        Check("start", lambda _unused: _start(installation, environ), seconds=_TIMEOUT),
        Check("users", lambda _unused: _users(installation, properties, context.profile)),
    )
    if name := text_property(properties, SESSION_KERNEL):
        own = (*own, Check(_("session kernel"), lambda _unused: _session_kernel(name)))
    if context.profile.backend is None:
        chosen[0] = Check("profile", lambda _unused: _no_cluster(installation))
    return run_checks(context, own if broken else (*own, *chosen))


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
        "profile": text_property(properties, "submarine.profile") or None,
        "hadoop_conf_dir": text_property(properties, "SUBMARINE_HADOOP_CONF_DIR") or None,
        "keytab": text_property(properties, "SUBMARINE_HADOOP_KEYTAB") or None,
        "principal": text_property(properties, "SUBMARINE_HADOOP_PRINCIPAL") or None,
    }


def _how_to_set(installation: Installation, *pairs: str) -> str:
    """Return how an administrator changes a setting."""
    if saved_properties(installation) is None:
        words = " ".join(f"--set {pair}" for pair in pairs)
        return _("`submarine zeppelin install {home} {words}`").format(
            home=installation.home, words=words
        )
    return _("set {pairs} on Zeppelin's page Interpreters").format(pairs=" and ".join(pairs))


def _no_cluster(installation: Installation) -> Finding:
    to_set = _how_to_set(installation, "HADOOP_CONF_DIR=DIRECTORY")
    return warning(
        _("No cluster is configured, so jobs need --backend local."),
        _(
            "Set its client configuration: {to_set}. `submarine minicluster start` creates a "
            "cluster on this machine, which submarine.profile=minicluster selects."
        ).format(to_set=to_set),
    )


def _users(installation: Installation, properties: Mapping[str, str], profile: Profile) -> Finding:
    kerberos = requires_kerberos(profile)
    if kerberos is not None:
        check_authentication(properties, kerberos=kerberos)
    if flag_property(properties, "submarine.allow.service.user"):
        return ok(_("All jobs run as Zeppelin's account (submarine.allow.service.user)."))
    if (installation.home / "conf" / "shiro.ini").is_file():
        if kerberos and profile.keytab is None:
            return warning(
                _("The cluster requires Kerberos, and Zeppelin has no keytab to act for users."),
                _("Set keytab and principal: {to_set}.").format(
                    to_set=_how_to_set(
                        installation,
                        "SUBMARINE_HADOOP_KEYTAB=FILE",
                        "SUBMARINE_HADOOP_PRINCIPAL=NAME",
                    )
                ),
            )
        if kerberos:
            return ok(
                _(
                    "Jobs run as the user that is logged in to Zeppelin; {principal} acts for them."
                ).format(principal=profile.principal)
            )
        return ok(_("Jobs run as the user that is logged in to Zeppelin."))
    to_set = _how_to_set(installation, "submarine.allow.service.user=true")
    return warning(
        _("Zeppelin has no logins (conf/shiro.ini), so jobs are rejected."),
        _("Configure logins, or let all jobs run as Zeppelin's account: {to_set}.").format(
            to_set=to_set
        ),
    )


def _session_kernel(name: str) -> Finding:
    request = kernelspecs.container_request(name)
    return ok(
        _("Python sessions of notes run in containers of the kernel {name}.").format(
            name=request.name
        )
    )


def _installation(installation: Installation) -> Finding:
    entries = read_file(installation.setting)
    again = _("Run `submarine zeppelin install {home}`.").format(home=installation.home)
    if not entries:
        return error(_("{setting} does not exist.").format(setting=installation.setting), again)
    if not starts_submarine(entries):
        return error(
            _("{setting} does not start Submarine.").format(setting=installation.setting), again
        )
    if jars := installation.jars():
        return error(
            _("{folder} contains {jars}. Its settings take precedence.").format(
                folder=installation.folder, jars=jars[0].name
            ),
            _("Run `submarine zeppelin install --replace {home}`.").format(home=installation.home),
        )
    names = ", ".join(
        f"%{GROUP}" if entry["name"] == GROUP else f"%{GROUP}.{entry['name']}" for entry in entries
    )
    return ok(_("{setting} defines {names}.").format(setting=installation.setting, names=names))


def _saved(installation: Installation) -> Finding:
    saved = saved_properties(installation)
    if saved is None:
        return ok(_("Zeppelin has not saved settings of the group and uses the defaults."))
    names_in_file = {
        name for entry in read_file(installation.setting) for name in entry["properties"]
    }
    if missing := sorted(names_in_file - saved.keys()):
        return warning(
            _("Zeppelin's saved settings lack {missing}. The defaults apply.").format(
                missing=", ".join(missing)
            ),
            _("Add those that you want to change on Zeppelin's page Interpreters."),
        )
    return ok(_("Zeppelin's saved settings of the group are complete."))


def _runner(installation: Installation) -> list[str]:
    entries = read_file(installation.setting)
    words = shlex.split(runner_in(entries[-1])) if entries else []
    if not words:
        raise SubmarineError(
            _("The group is not installed, so there is no command to run."), _("Install it first.")
        )
    return words


def _python(installation: Installation) -> Finding:
    python = _runner(installation)[0]
    if shutil.which(python) is None:
        return error(
            _("This account cannot run {python}.").format(python=python),
            _("Use another: `submarine zeppelin install {home} --python PROGRAM`.").format(
                home=installation.home
            ),
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
        last = (completed.stderr.strip().splitlines() or [_("no output")])[-1]
        return error(
            _("{python} cannot import the interpreter: {last}.").format(
                python=python, last=last[:200]
            ),
            _("Install it from its clone: {python} -m pip install 'CLONE[zeppelin]'.").format(
                python=python
            ),
        )
    return ok(
        _("{python} can import the interpreter and thriftpy2 {stdout}.").format(
            python=python, stdout=completed.stdout.strip()
        )
    )


def _start(installation: Installation, environ: Mapping[str, str]) -> Finding:
    with start_trial_process(_runner(installation), {**environ, "ZEPPELIN_LOG_DIR": ""}) as started:
        form = _check_call(lambda: started.client.getFormType("session", "class"))
    if form != FORM_TYPE:
        return error(
            _("The interpreter process does not respond as Submarine."),
            _("Run `submarine zeppelin install {home}`.").format(home=installation.home),
        )
    return ok(
        _("An interpreter process was ready in {seconds:.1f} s.").format(seconds=started.seconds)
    )


def _check_call(call: Callable[[], object]) -> object:
    try:
        return call()
    except (TException, OSError) as failure:
        raise SubmarineError(
            _("The interpreter process does not answer: {failure}.").format(failure=failure)
        ) from None
