"""Settings of the interpreters: names, defaults, descriptions and conversion of values.

Names of Zeppelin's former Submarine interpreter are kept, so that existing settings still apply.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

#: Setting of the action on Stop, and its values.
STOP, STOPS = "submarine.stop", ("cancel", "detach")
#: Setting of the cluster's authentication, and its values; empty: as the cluster's configuration.
AUTHENTICATION, _AUTHENTICATIONS = "zeppelin.submarine.auth.type", ("simple", "kerberos")
#: Setting of the kernelspec with which sessions of notes run in containers.
SESSION_KERNEL = "submarine.session.kernel"
#: Setting of the network of Docker containers.
NETWORK = "docker.container.network"
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")


@dataclass(frozen=True)
class Property:
    """One setting.

    Parameters
    ----------
    kind
        Type on Zeppelin's settings page: ``string``, ``number`` or ``checkbox``.
    entry
        Interpreter of the group to which the setting belongs: ``submarine``, ``python`` or ``sh``.
    """

    name: str
    default: str
    description: str
    kind: str = "string"
    entry: str = "submarine"

    @property
    def value(self) -> str | bool:
        """Default value in the settings file."""
        return self.default == "true" if self.kind == "checkbox" else self.default


PROPERTIES = (
    Property(
        "submarine.profile",
        "",
        _(
            "Profile of submarine.toml. Empty: the default profile, or the cluster of "
            "HADOOP_CONF_DIR."
        ),
    ),
    Property(
        STOP,
        "cancel",
        _(
            "Effect of Stop on the job that a paragraph waits for: cancel (stop the job) or "
            "detach (leave it running)."
        ),
    ),
    Property(
        "submarine.wait",
        "false",
        _(
            "A paragraph with run waits until its job has ended, as with run --wait. Scheduled "
            "runs always wait."
        ),
        "checkbox",
    ),
    Property(
        "submarine.allow.service.user",
        "false",
        _("Run the jobs of all users as Zeppelin's account. Required without logins."),
        "checkbox",
    ),
    Property(
        "submarine.recovery.hours",
        "24",
        _("If Zeppelin recovers interpreters: hours that they wait for a restart of the server."),
        "number",
    ),
    Property(
        "submarine.driver.idle.minutes",
        "15",
        _(
            "Minutes without a submission after which the Java process that submits a user's "
            "jobs ends, unless the interpreter ends before; at least 2. The next submission "
            "starts it again."
        ),
        "number",
    ),
    Property(
        "submarine.yarn.queue",
        "",
        _("Queue of the jobs. Empty: the profile's queue, or the cluster's default."),
    ),
    Property(
        "SUBMARINE_HADOOP_CONF_DIR",
        "",
        _("Directory with core-site.xml and yarn-site.xml. Empty: the profile's directory."),
    ),
    Property(
        AUTHENTICATION,
        "",
        _(
            "Authentication of the cluster, simple or kerberos: any other is refused. Empty: as "
            "core-site.xml says."
        ),
    ),
    Property(
        "SUBMARINE_HADOOP_KEYTAB",
        "",
        _(
            "Keytab of Zeppelin's principal, which acts for the users on a cluster with Kerberos. "
            "Empty: the profile's keytab."
        ),
    ),
    Property(
        "SUBMARINE_HADOOP_PRINCIPAL",
        "",
        _("Zeppelin's principal in that keytab: zeppelin@EXAMPLE.COM. Empty: the profile's."),
    ),
    Property(
        "submarine.algorithm.hdfs.path",
        "",
        _(
            "Parent of the job directories (job_root). ${username} is replaced by the "
            "paragraph's user. Empty: the profile's job_root."
        ),
    ),
    Property(
        "tf.checkpoint.path",
        "",
        _(
            "Parent of the checkpoint directories of the dashboard's jobs, one for each note. "
            "${username} is replaced by the paragraph's user."
        ),
    ),
    Property(
        "machinelearning.distributed.enable",
        "false",
        _("The dashboard's jobs have parameter servers and more than one worker."),
        "checkbox",
    ),
    Property(
        "tf.worker.services.num", "1", _("Number of workers of the dashboard's jobs."), "number"
    ),
    Property("tf.worker.services.memory", "4G", _("Memory of each worker.")),
    Property("tf.worker.services.cpu", "2", _("Virtual cores of each worker."), "number"),
    Property("tf.worker.services.gpu", "0", _("GPUs of each worker."), "number"),
    Property(
        "tf.worker.services.docker.image", "", _("Docker image of the workers. Empty: no Docker.")
    ),
    Property(
        NETWORK,
        "",
        _("Network of the Docker containers, such as host. Empty: the cluster's default."),
    ),
    Property(
        "tf.parameter.services.num",
        "1",
        _("Number of parameter servers of the dashboard's jobs."),
        "number",
    ),
    Property("tf.parameter.services.memory", "2G", _("Memory of each parameter server.")),
    Property(
        "tf.parameter.services.cpu", "2", _("Virtual cores of each parameter server."), "number"
    ),
    Property("tf.parameter.services.gpu", "0", _("GPUs of each parameter server."), "number"),
    Property(
        "tf.parameter.services.docker.image",
        "",
        _("Docker image of the parameter servers. Empty: no Docker."),
    ),
    Property(
        "tf.tensorboard.enable",
        "false",
        _("The dashboard's jobs have a TensorBoard."),
        "checkbox",
    ),
    Property(
        "zeppelin.python",
        "",
        _(
            "Python that runs %submarine.python paragraphs on this machine; requires "
            "ipykernel. Empty: the interpreter's own Python."
        ),
        entry="python",
    ),
    Property(
        "zeppelin.python.maxResult",
        "1000",
        _("Maximum number of DataFrame rows in a table."),
        "number",
        "python",
    ),
    Property(
        SESSION_KERNEL,
        "",
        _(
            "Kernelspec of submarine kernel install, for a container: %submarine.python paragraphs "
            "run there, as the user. Empty: on this machine."
        ),
        entry="python",
    ),
    Property(
        "shell.command.timeout.millisecs",
        "0",
        _("Milliseconds after which a %submarine.sh paragraph is stopped. 0: no limit."),
        "number",
        "sh",
    ),
)
#: Alternative names in Zeppelin's former interpreter.
_ALTERNATIVE_NAMES = {
    "machinelearning.distributed.enable": "machinelearing.distributed.enable",
    "SUBMARINE_HADOOP_CONF_DIR": "submarine.hadoop.conf.dir",
    "SUBMARINE_HADOOP_KEYTAB": "submarine.hadoop.keytab",
    "SUBMARINE_HADOOP_PRINCIPAL": "submarine.hadoop.principal",
}
_BY_NAME = {item.name: item for item in PROPERTIES}


def text_property(properties: Mapping[str, str], name: str) -> str:
    """Return the value of a setting without surrounding blanks, or its default."""
    for key in (name, _ALTERNATIVE_NAMES.get(name, name)):
        value = str(properties.get(key) or "").strip()
        if value:
            return value
    return _BY_NAME[name].default


def flag_property(properties: Mapping[str, str], name: str) -> bool:
    """Return the value of a checkbox.

    Raises
    ------
    UsageError
        If the value is neither true nor false.
    """
    value = text_property(properties, name).lower()
    if value not in (*_TRUE, *_FALSE):
        raise UsageError(
            _("The interpreter's setting {name} is {value!r}.").format(name=name, value=value[:40]),
            _("Set it to true or false."),
        )
    return value in _TRUE


def number_property(properties: Mapping[str, str], name: str) -> int:
    """Return the value of a non-negative integer.

    Raises
    ------
    UsageError
        If the value is not a non-negative integer.
    """
    value = text_property(properties, name)
    if not value.isdecimal() or not value.isascii() or len(value) > 12:
        raise UsageError(
            _("The interpreter's setting {name} is {value!r}.").format(name=name, value=value[:40]),
            _("Set it to a whole number."),
        )
    return int(value)


def choice_property(properties: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """Return the value of a setting that is one of ``words``.

    Raises
    ------
    UsageError
        If the value is not one of them.
    """
    value = text_property(properties, name).lower()
    if value not in words:
        raise UsageError(
            _("The interpreter's setting {name} is {value!r}.").format(name=name, value=value[:40]),
            _("Set it to {words}.").format(words=" or ".join(words)),
        )
    return value


def authentication_property(properties: Mapping[str, str]) -> str:
    """Return the authentication that the settings require: ``simple``, ``kerberos`` or empty.

    Raises
    ------
    UsageError
        If the value is another one.
    """
    if not text_property(properties, AUTHENTICATION):
        return ""
    return choice_property(properties, AUTHENTICATION, _AUTHENTICATIONS)


def check_value(name: str, value: str) -> None:
    """Check the name and value of a setting before it is written.

    Raises
    ------
    UsageError
        If there is no such setting, or the value is not valid.
    """
    item = _BY_NAME.get(name)
    if item is None:
        near = difflib.get_close_matches(name, _BY_NAME, 1, 0.8)
        if not near and (name.upper() == name or name.startswith("zeppelin.")):
            return  # an environment variable of the process, or a setting of the server
        hint = (
            _("Did you mean {near}?").format(near=near[0])
            if near
            else _("Names of environment variables are in capitals.")
        )
        raise UsageError(_("The interpreter has no setting {name}.").format(name=name[:80]), hint)
    if item.kind == "checkbox":
        flag_property({name: value}, name)
    elif item.kind == "number":
        number_property({name: value}, name)
    elif name == STOP:
        choice_property({name: value}, name, STOPS)
    elif name == AUTHENTICATION:
        authentication_property({name: value})
