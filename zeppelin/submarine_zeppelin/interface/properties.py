"""The interpreters' settings: names, defaults, what each means; and how their values are read.

The names of Zeppelin's former submarine interpreter are kept, so that an installation's settings go
on to mean what they meant. Writes no file (``install`` does) and decides nothing by itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from submarine_jobs.errors import UsageError

#: Characters of output that Zeppelin takes for one paragraph, where its server does not say.
OUTPUT_LIMIT = 102_400
#: What Stop does, and what it may be.
STOP, STOPS = "submarine.stop", ("cancel", "detach")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "")


@dataclass(frozen=True)
class Property:
    """One setting.

    Parameters
    ----------
    kind
        As Zeppelin's page of settings wants it: ``string``, ``number`` or ``checkbox``.
    entry
        Entry of the group in whose settings it stands: ``submarine``, ``python`` or ``sh``.
    """

    name: str
    default: str
    description: str
    kind: str = "string"
    entry: str = "submarine"

    @property
    def value(self) -> str | bool:
        """The default as the settings' file has it."""
        return self.default == "true" if self.kind == "checkbox" else self.default


PROPERTIES = (
    Property(
        "submarine.profile",
        "",
        "Profile of submarine.toml to use; empty: its default, or what HADOOP_CONF_DIR says.",
    ),
    Property(
        STOP,
        "cancel",
        "What Stop does to the job that a paragraph waits for: cancel (end it) or detach (leave "
        "it running).",
    ),
    Property(
        "submarine.wait",
        "false",
        "Let a paragraph of run last until its job has ended, as run --wait does; scheduled runs "
        "always do.",
        "checkbox",
    ),
    Property(
        "submarine.allow.service.user",
        "false",
        "Let jobs of everybody run as the account of Zeppelin; without logins none run else.",
        "checkbox",
    ),
    Property(
        "submarine.recovery.hours",
        "24",
        "Where Zeppelin recovers its interpreters: hours that they wait for a server to come back.",
        "number",
    ),
    Property(
        "submarine.driver.idle.minutes",
        "15",
        "Minutes without a submit after which the Java process ends that a user's submits take on "
        "this machine, if the interpreter has not ended before; 2 or more. The next submit starts "
        "another.",
        "number",
    ),
    Property(
        "submarine.yarn.queue", "", "Queue of the jobs; empty: the profile's, or the cluster's own."
    ),
    Property(
        "SUBMARINE_HADOOP_CONF_DIR",
        "",
        "Directory with core-site.xml and yarn-site.xml; empty: the profile's.",
    ),
    Property(
        "submarine.algorithm.hdfs.path",
        "",
        "Where job directories with the program are put (job_root); ${username} stands for who "
        "runs the paragraph. Empty: the profile's.",
    ),
    Property(
        "tf.checkpoint.path",
        "",
        "Checkpoints of the dashboard's jobs go below this path, one directory a note; "
        "${username} stands for who runs the paragraph.",
    ),
    Property(
        "machinelearning.distributed.enable",
        "false",
        "Whether the dashboard's jobs have parameter servers and more than one worker.",
        "checkbox",
    ),
    Property("tf.worker.services.num", "1", "Workers of the dashboard's jobs.", "number"),
    Property("tf.worker.services.memory", "4G", "Memory of each of those workers."),
    Property("tf.worker.services.cpu", "2", "Virtual cores of each of those workers.", "number"),
    Property("tf.worker.services.gpu", "0", "GPUs of each of those workers.", "number"),
    Property(
        "tf.worker.services.docker.image", "", "Docker image of those workers; empty: no Docker."
    ),
    Property(
        "tf.parameter.services.num", "1", "Parameter servers of the dashboard's jobs.", "number"
    ),
    Property("tf.parameter.services.memory", "2G", "Memory of each of those servers."),
    Property("tf.parameter.services.cpu", "2", "Virtual cores of each of those servers.", "number"),
    Property("tf.parameter.services.gpu", "0", "GPUs of each of those servers.", "number"),
    Property(
        "tf.parameter.services.docker.image", "", "Docker image of those servers; empty: no Docker."
    ),
    Property(
        "tf.tensorboard.enable",
        "false",
        "Whether the dashboard's jobs bring a TensorBoard of their own.",
        "checkbox",
    ),
    Property(
        "zeppelin.python",
        "",
        "Python that runs %submarine.python paragraphs here, which needs ipykernel; empty: the "
        "interpreter's own.",
        entry="python",
    ),
    Property(
        "zeppelin.python.maxResult",
        "1000",
        "Rows of a DataFrame that a table shows.",
        "number",
        "python",
    ),
    Property(
        "shell.command.timeout.millisecs",
        "0",
        "Milliseconds after which a %submarine.sh paragraph is ended; 0: never.",
        "number",
        "sh",
    ),
)
#: Spellings under which the former interpreter had some of them too.
_OTHER_NAMES = {
    "machinelearning.distributed.enable": "machinelearing.distributed.enable",
    "SUBMARINE_HADOOP_CONF_DIR": "submarine.hadoop.conf.dir",
}
_BY_NAME = {item.name: item for item in PROPERTIES}


def text(properties: Mapping[str, str], name: str) -> str:
    """The value of a setting, or its default, without blanks around it."""
    for key in (name, _OTHER_NAMES.get(name, name)):
        found = str(properties.get(key) or "").strip()
        if found:
            return found
    return _BY_NAME[name].default


def flag(properties: Mapping[str, str], name: str) -> bool:
    """The value of a checkbox.

    Raises
    ------
    UsageError
        If it is neither true nor false.
    """
    found = text(properties, name).lower()
    if found not in (*_TRUE, *_FALSE):
        raise UsageError(
            f"The interpreter's setting {name} is {found[:40]!r}.", "Set it to true or false."
        )
    return found in _TRUE


def number(properties: Mapping[str, str], name: str) -> int:
    """The value of a whole number of 0 or more.

    Raises
    ------
    UsageError
        If it is none.
    """
    found = text(properties, name)
    if not found.isdecimal() or not found.isascii() or len(found) > 12:
        raise UsageError(
            f"The interpreter's setting {name} is {found[:40]!r}.", "Set it to a whole number."
        )
    return int(found)


def choice(properties: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """The value of a setting that is one of ``words``.

    Raises
    ------
    UsageError
        If it is none of them.
    """
    found = text(properties, name).lower()
    if found not in words:
        raise UsageError(
            f"The interpreter's setting {name} is {found[:40]!r}.",
            f"Set it to {' or '.join(words)}.",
        )
    return found


def check_given(name: str, value: str) -> None:
    """Refuse a value that somebody gives to a setting and that would be complained of later.

    Raises
    ------
    UsageError
        If there is no such setting, or the value is none that it takes.
    """
    item = _BY_NAME.get(name)
    if item is None:
        near = difflib.get_close_matches(name, _BY_NAME, 1, 0.8)
        if not near and (name.upper() == name or name.startswith("zeppelin.")):
            return  # a variable of the process, or one of the server's own
        hint = f"Did you mean {near[0]}?" if near else "Variables of its process are in capitals."
        raise UsageError(f"The interpreter has no setting {name[:80]}.", hint)
    if item.kind == "checkbox":
        flag({name: value}, name)
    elif item.kind == "number":
        number({name: value}, name)
    elif name == STOP:
        choice({name: value}, name, STOPS)


def output_limit(properties: Mapping[str, str]) -> int:
    """Characters that a paragraph's output may have, as Zeppelin's server is configured."""
    found = str(properties.get("zeppelin.interpreter.output.limit") or "").strip()
    if found.isdecimal() and found.isascii() and len(found) < 10:
        return max(int(found), 4096)
    return OUTPUT_LIMIT
