"""Types of option values: K=V, LABEL=URL, SRC:TARGET[:rw], NAME=URI[:MODE], sizes and others.

Each ``parse_*`` has an inverse ``format_*``; a ``ValueType`` has both.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.model import (
    ARCHIVE_SUFFIXES,
    ENVIRONMENT_KINDS,
    PLAIN_KINDS,
    Localization,
    NamedInput,
    NamedOutput,
    format_duration,
    format_memory,
    format_share,
    format_timeout,
    parse_count,
    parse_duration,
    parse_memory,
    parse_python_env,
    parse_share,
    parse_timeout,
)
from submarine_jobs.options.declaration import ValueType
from submarine_jobs.options.stream_words import (
    MODES,
    SHARED,
    STREAM,
    complete_input,
    parse_stream_words,
)
from submarine_jobs.outputs import parse_names
from submarine_runtime.protocol import IDLE_GPU_ACTIONS, OVERWRITE, STALL_ACTIONS, IdleLimit
from submarine_runtime.translation import _

MAX_VALUE = 32 * 1024
_ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,254}\Z")
_CONF_KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}\Z")
_LABEL = re.compile(r"^[^\x00-\x1f\x7f=]{1,80}\Z")
_AUTHORITY_ONLY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?\Z")
_SCHEME_ONLY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED_ENV = ("SUBMARINE_",)
#: Names that system, YARN and interpreter give a meaning: no secret has one of them, and the value
#: would change which code runs. ``--env`` may set them.
_NO_SECRETS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|BASH_ENV|ENV|IFS|PWD|TMPDIR|LD_.*|PYTHON[A-Z]*"
    r"|CLASSPATH|JAVA_HOME|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|CONTAINER_ID|YARN_CONTAINER_.*"
    r"|HADOOP_(?:TOKEN_FILE_LOCATION|CONF_DIR|HOME)|TF_CONFIG|MASTER_(?:ADDR|PORT)"
    r"|RANK|LOCAL_RANK|WORLD_SIZE|(?:CUDA|NCCL|GLOO|DMLC|HOROVOD|OMPI)_.*"
)
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
#: Begins the name of a dataset (``datasets.references``), which is no mode.
_DATASET = "data:"
_MODE = re.compile(r":([a-z][a-z_-]*)(?:=([^/:]*))?\Z")
_SAVE_MODE = re.compile(r"(?::(overwrite|append-run))?(?::(stream|parts))?\Z")
_ROLE = re.compile(r"^[a-z][a-z0-9_]{0,31}\Z")
_PLACE = re.compile(r"^[^\s,'\"\x00-\x1f]{1,255}\Z")
_INTERFACE = re.compile(r"^[A-Za-z0-9_.:@,-]{1,64}\Z")
_PORT_PATH = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*(?:/|$)")


def _check_env_name(option: str, name: str) -> None:
    """Reject a variable that only Submarine sets."""
    if name.startswith(_RESERVED_ENV):
        raise UsageError(
            _("{option} cannot set {name}:").format(option=option, name=name),
            _("names with SUBMARINE_ are set by Submarine."),
        )


def parse_env(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``; the value may be empty and may contain ``=``.

    Raises
    ------
    UsageError
        If the name is invalid in a shell or reserved, or the value is too long.
    """
    name, equals, value = text.partition("=")
    if not equals or not _ENV_NAME.match(name):
        raise UsageError(
            _("--env {text!r} is not NAME=VALUE.").format(text=text[:60]),
            _("Write for example --env EPOCHS=3."),
        )
    _check_env_name("--env", name)
    if "\0" in value or len(value) > MAX_VALUE:
        raise UsageError(
            _("The value of --env {name} holds a NUL or is longer than 32 KiB.").format(name=name)
        )
    return name, value


def parse_secret(text: str) -> tuple[str, str]:
    """Parse ``NAME[=FILE]`` of ``--secret``; FILE is empty if none is named.

    Raises
    ------
    UsageError
        If the name is invalid in a shell or reserved, or FILE is not a path.
    """
    name, equals, file = text.partition("=")
    # A value may have been given by mistake, so the message contains the name only.
    if not _ENV_NAME.match(name) or (equals and (not file.strip() or not file.isprintable())):
        raise UsageError(
            _("--secret {name!r} is not NAME or NAME=FILE.").format(name=name[:60]),
            _("Write for example --secret HF_TOKEN or --secret HF_TOKEN=~/.hf-token."),
        )
    _check_env_name("--secret", name)
    if _NO_SECRETS.fullmatch(name):
        raise UsageError(
            _("--secret cannot set {name}:").format(name=name),
            _("system, cluster or framework give this variable a meaning."),
        )
    return name, file


def format_secret(name: str, file: str) -> str:
    """Return ``NAME`` or ``NAME=FILE``."""
    return format_pair(name, file) if file else name


def format_pair(name: str, value: str) -> str:
    """Return ``NAME=VALUE``."""
    return f"{name}={value}"


def parse_conf(text: str) -> tuple[str, str]:
    """Parse ``KEY=VALUE`` of ``--conf``.

    Raises
    ------
    UsageError
        If ``text`` is not such a pair.
    """
    key, equals, value = text.partition("=")
    if not equals or not _CONF_KEY.match(key) or _CONTROL.search(value) or not value.strip():
        raise UsageError(_("--conf {text!r} is not KEY=VALUE.").format(text=text[:60]))
    return key, value


def parse_quicklink(text: str) -> tuple[str, str]:
    """Parse ``LABEL=URL``: ``Zeppelin_Notebook=http://master-0:8080``.

    Raises
    ------
    UsageError
        If the label is empty, or the scheme of the URL is not http or https.
    """
    label, equals, url = text.partition("=")
    if not equals or not _LABEL.match(label) or _CONTROL.search(url) or " " in url:
        raise UsageError(
            _("--quicklink {text!r} is not LABEL=URL.").format(text=text[:60]),
            _("Write for example --quicklink Notes=http://host:8080."),
        )
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _port = parts.port
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            _("The URL of --quicklink {label} is {url!r}.").format(label=label, url=url[:80]),
            _("Give a whole http:// or https:// address."),
        )
    return label, url


def parse_localization(text: str) -> Localization:
    """Parse ``SRC:TARGET[:rw|:ro]`` of Apache Submarine; SRC is a path or a URI, with colons.

    TARGET ``.`` is the last part of SRC. Absolute targets are rejected: Submarine supports them in
    Docker containers only.

    Raises
    ------
    UsageError
        If a part is missing, or TARGET is outside the working directory of the program.
    """
    rest, mode = text, "ro"
    head, colon, last = text.rpartition(":")
    if colon and last in ("rw", "ro") and ":" in head:
        rest, mode = head, last
    source, target = _source_and_target(rest, text)
    return Localization(source=source, target=target, mode=mode)


def _source_and_target(pair: str, text: str) -> tuple[str, str]:
    """Split ``SRC:TARGET`` of the option value ``text``."""
    example = _("Write SRC:TARGET[:rw], for example hdfs://nn:8020/data/words.txt:words.txt.")
    source, colon, target = pair.rpartition(":")
    if _CONTROL.search(text) or not colon or not source or not target:
        raise UsageError(
            _("--localization {text!r} has no SRC or no TARGET.").format(text=text[:80]), example
        )
    if _AUTHORITY_ONLY.match(source + ":") and target.startswith("//"):
        raise UsageError(
            _("--localization {text!r} has no TARGET.").format(text=text[:80]), example
        )
    if "://" in source and _AUTHORITY_ONLY.match(source):
        raise UsageError(
            _("--localization {text!r} has no TARGET.").format(text=text[:80]), example
        )
    if target == ".":
        target = source.rstrip("/").rpartition("/")[2]
    _check_target(text, target)
    return source, target


def format_localization(item: Localization) -> str:
    """Return ``SRC:TARGET:MODE``."""
    return f"{item.source}:{item.target}:{item.mode}"


def _check_target(text: str, target: str) -> None:
    if target.startswith("/"):
        raise UsageError(
            _("The target of --localization {text!r} is absolute.").format(text=text[:80]),
            _(
                "Name a file below the working directory; in Docker the setting "
                "docker_mounts mounts directories of the nodes."
            ),
        )
    parts = target.split("/")
    if any(part in ("", ".", "..") for part in parts) or ":" in target:
        raise UsageError(
            _(
                "The target {target!r} of --localization is not a name below the working directory."
            ).format(target=target[:60]),
            _("Write for example words.txt or data/words.txt."),
        )


def _mode(uri: str) -> re.Match[str] | None:
    """Return the mode at the end of an input's URI."""
    return _MODE.search(uri, len(_DATASET) if uri.startswith(_DATASET) else 0)


def parse_input(text: str) -> NamedInput:
    """Parse ``NAME=URI[:MODE[=ROLE,...]]``; ``shard``, ``list`` and ``stream`` have roles.

    Raises
    ------
    UsageError
        If ``text`` has another form, or names an unknown mode.
    """
    name, equals, uri = text.partition("=")
    match = _mode(uri)
    mode, words = (match[1], match[2]) if match else ("download", None)
    uri = uri[: match.start()] if match else uri
    if not equals or not _NAME.match(name) or not uri.strip("@ ") or not uri.isprintable():
        raise UsageError(
            _("--input {text!r} is not NAME=URI[:MODE].").format(text=text[:60]),
            _("Write for example --input train=hdfs:///data/train:shard."),
        )
    if mode not in MODES or (words is not None and mode not in SHARED):
        raise UsageError(
            _("--input {name}: {mode!r} is not a mode.").format(
                name=name, mode=text.rpartition(":")[2][:40]
            ),
            _(
                "The modes are {modes}, and :shard=ROLE,..., :list=ROLE,... and "
                ":stream=WORD,...; behind a name that ends like one write :download."
            ).format(modes=", ".join(f":{word}" for word in MODES)),
        )
    if ".." in unquote(uri).split("/"):
        raise UsageError(
            _("--input {name}: {uri} contains .., which leads out of a directory.").format(
                name=name, uri=uri[:120]
            ),
            _("Write the address without it."),
        )
    given = list(dict.fromkeys(words.split(","))) if words is not None else []
    options = [word for word in given if mode == STREAM and "=" in word]
    roles = tuple(word for word in given if word not in options)
    for role in roles:
        if not _ROLE.match(role):
            raise UsageError(
                _("--input {name}: {role!r} behind :{mode}= is not the name of a role.").format(
                    name=name, role=role[:40], mode=mode
                ),
                _("Write for example --input train=hdfs:///data/train:shard=chief,worker."),
            )
    return NamedInput(
        name,
        uri,
        mode in SHARED,
        roles,
        "download" if mode == "shard" else mode,
        parse_stream_words(name, options),
    )


def format_input(item: NamedInput) -> str:
    """Return ``NAME=URI[:MODE[=ROLE,...]]``, with the words of a stream behind its roles."""
    plain = item.word == "download" and not _mode(item.uri)
    mode = "" if plain else f":{item.word}"
    words = ",".join((*item.shard_roles, *item.options))
    return f"{item.name}={item.uri}{mode}{'=' if words else ''}{words}"


def parse_save_output(text: str) -> NamedOutput:
    """Parse ``NAME=URI[:overwrite|append-run][:stream|:parts]``.

    Raises
    ------
    UsageError
        If ``text`` has another form.
    """
    name, equals, uri = text.partition("=")
    words = _SAVE_MODE.search(uri)
    assert words is not None
    uri, mode, upload = uri[: words.start()], words.group(1) or "", words.group(2)
    if (
        not (equals and _NAME.match(name) and uri.strip() and uri.isprintable())
        or ":" in uri.rpartition("/")[2]
    ):
        raise UsageError(
            _(
                "--save-output {text!r} is not NAME=URI, NAME=URI:overwrite, NAME=URI:append-run, "
                "NAME=URI:stream or NAME=URI:parts."
            ).format(text=text[:80]),
            _("Write for example --save-output predictions=hdfs:///data/predictions."),
        )
    if name == "DIR":
        raise UsageError(
            _("--save-output DIR: SUBMARINE_OUTPUT_DIR is the directory of the task's own files."),
            _("Choose another name."),
        )
    if upload == "stream" and mode == OVERWRITE:
        raise UsageError(
            _(
                "--save-output {name}: :overwrite and :stream exclude each other, because readers "
                "would see old and new files together."
            ).format(name=name),
            _("Leave one of them out, or write :append-run:stream or :overwrite:parts."),
        )
    return NamedOutput(name, uri, mode, stream=upload == "stream", parts=upload == "parts")


def format_save_output(item: NamedOutput) -> str:
    """Return ``NAME=URI[:overwrite|append-run][:stream|:parts]``."""
    mode = f":{item.mode}" if item.mode else ""
    upload = ":stream" if item.stream else ":parts" if item.parts else ""
    return f"{item.name}={item.uri}{mode}{upload}"


def parse_param(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; the value is JSON (``lr=0.1``), or a text if it is not valid JSON.

    Raises
    ------
    UsageError
        If ``text`` is not such a pair, or too long.
    """
    name, equals, value = text.partition("=")
    if not equals or not _NAME.match(name):
        raise UsageError(
            _("--param {text!r} is not NAME=VALUE.").format(text=text[:60]),
            _("Write for example --param lr=0.1."),
        )
    if len(value) > MAX_VALUE or "\0" in value:
        raise UsageError(
            _("The value of --param {name} holds a NUL or is longer than 32 KiB.").format(name=name)
        )
    try:
        return name, json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return name, value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def format_param(name: str, value: Any) -> str:
    """Return ``NAME=VALUE``; a text is quoted only if ``parse_param`` would change it.

    Raises
    ------
    UsageError
        If JSON cannot represent the value.
    """
    if isinstance(value, str) and parse_param(plain := f"{name}={value}")[1] == value:
        return plain
    try:
        return f"{name}={json.dumps(value, allow_nan=False)}"
    except (TypeError, ValueError) as error:
        raise UsageError(
            _("The value of --param {name} cannot be written as JSON: {error}.").format(
                name=name, error=error
            ),
            _("Give numbers, text, true, false, null, lists or objects."),
        ) from None


def parse_file(text: str) -> Localization:
    """Parse ``SRC[:TARGET]`` of ``--file``; TARGET defaults to the last part of SRC."""
    return _with_target(text, "--file", _last_part(text))


def parse_archive(text: str) -> Localization:
    """Parse ``SRC[:DIR]`` of ``--archive``; DIR defaults to the name without the suffix.

    Raises
    ------
    UsageError
        If the suffix is not that of an archive.
    """
    own = _last_part(text)
    for suffix in ARCHIVE_SUFFIXES:
        own = own.removesuffix(suffix)
    item = _with_target(text, "--archive", own)
    if not item.source.endswith(ARCHIVE_SUFFIXES):
        raise UsageError(
            _("--archive {text!r} does not end as an archive does.").format(text=text[:80]),
            _("Give a file that ends in {suffixes}.").format(suffixes=", ".join(ARCHIVE_SUFFIXES)),
        )
    return item


def _with_target(text: str, option: str, default: str) -> Localization:
    whole = text if _names_target(text) else f"{text}:{default}"
    try:
        # No mode is parsed here, because a target may be named rw.
        return Localization(*_source_and_target(whole, whole))
    except UsageError as error:
        raise UsageError(error.message.replace("--localization", option), error.fix) from None


def _names_target(text: str) -> bool:
    """Return whether a colon follows scheme, host and port."""
    match = _PORT_PATH.match(text)
    return ":" in (text[match.end() :] if match else text)


def _last_part(text: str) -> str:
    return text.rstrip("/").rpartition("/")[2]


def format_target(item: Localization) -> str:
    """Return ``SRC:TARGET``, the form of ``--file`` and ``--archive``."""
    return f"{item.source}:{item.target}"


def parse_fraction(text: str) -> float:
    """Parse ``0.2`` or ``20%`` as a number from 0 to 1.

    Raises
    ------
    UsageError
        If ``text`` is not such a number.
    """
    plain = text.strip()
    try:
        number = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise UsageError(
            _("{text!r} is no fraction.").format(text=text[:40]), _("Write for example 0.2 or 20%.")
        )
    return number


def _parse_limit(actions: Sequence[str], least: float, text: str) -> IdleLimit:
    """Parse ``off`` or ``TIME[:ACTION]``; the first action is the default."""
    time, colon, action = text.strip().partition(":")
    if time.lower() in ("off", "0"):
        if colon:
            raise UsageError(
                _("{text!r} has an action, but off has none.").format(text=text[:40]),
                _("Write off alone, or a time."),
            )
        return IdleLimit()
    seconds = parse_duration(time)
    if seconds < least:
        raise UsageError(
            _("{text!r} is too short.").format(text=text[:40]),
            _("Write at least {least}.").format(least=format_duration(least)),
        )
    if colon and action.lower() not in actions:
        raise UsageError(
            _("{action!r} is not one of {actions}.").format(
                action=action[:40], actions=", ".join(actions)
            ),
            _("Write for example 10m:{action}.").format(action=actions[-1]),
        )
    return IdleLimit(seconds, action.lower() or actions[0])


def _format_limit(limit: IdleLimit) -> str:
    return f"{format_duration(limit.seconds)}:{limit.action}" if limit.seconds else "off"


def _complete_limit(actions: Sequence[str], start: str) -> list[str]:
    time, colon, _unused = start.partition(":")
    words = [f"{time}:{action}" for action in actions] if colon else ["off"]
    return [word for word in words if word.startswith(start)]


def check_python_env(text: str) -> str:
    """Return a value of ``--python-env`` unchanged; raise UsageError if it is invalid."""
    parse_python_env(text)
    return text


def _complete_python_env(start: str) -> list[str]:
    kinds = (kind if kind in PLAIN_KINDS else f"{kind}:" for kind in ENVIRONMENT_KINDS)
    return [kind for kind in kinds if kind.startswith(start)]


def _check_command(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise UsageError(_("the command is empty."), _("Give one, or leave it out."))
    return text


def _check_interface(text: str) -> str:
    if not _INTERFACE.match(text):
        raise UsageError(
            _("{text!r} is not a network interface.").format(text=text[:40]),
            _("Write for example eth0."),
        )
    return text


def _parse_keep(text: str) -> str:
    pattern = text.removeprefix("./").rstrip("/")
    outside = pattern.startswith(("/", "~")) or ".." in pattern.split("/") or "://" in pattern
    if not pattern or not pattern.isprintable() or len(pattern) > 500 or outside:
        raise UsageError(
            _("{text!r} is not a pattern of files in the program's working directory.").format(
                text=text[:60]
            ),
            _("Write it relative to that directory, for example 'runs/*' or my_model.keras."),
        )
    return pattern


def split_args(text: str) -> tuple[str, ...]:
    """Split ``--args "--epochs 3"`` into words.

    Raises
    ------
    UsageError
        If a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise UsageError(
            _("--args {text!r} cannot be split into words: {error}.").format(
                text=text[:60], error=exc
            )
        ) from exc


def count(what: str, minimum: int = 0) -> ValueType:
    """Return the type of a whole number; ``what`` names it in errors."""
    return ValueType("number", lambda text: parse_count(text, _(what), minimum), prefix=True)


def place(what: str) -> ValueType:
    """Return the type of the name of a node, a rack or a label."""

    def parse(text: str) -> str:
        if not _PLACE.match(text):
            raise UsageError(_("{text!r} is not {what}.").format(text=text[:40], what=_(what)))
        return text

    return ValueType("name", parse, prefix=True)


def choice(choices: Sequence[str], *, ignore_case: bool = False) -> ValueType:
    """Return the type of one of several words."""
    return ValueType("choice", choices=tuple(choices), ignore_case=ignore_case)


def _names(option: str) -> ValueType:
    return ValueType("names", lambda text: parse_names(text, option), ",".join)


MEMORY = ValueType("size", parse_memory, format_memory, prefix=True)
DURATION = ValueType("time", parse_duration, format_duration, prefix=True)
TIMEOUT = ValueType(
    "timeout",
    parse_timeout,
    format_timeout,
    complete=lambda start: ["never"] if "never".startswith(start) else [],
    prefix=True,
)
FRACTION = ValueType("fraction", parse_fraction, repr, prefix=True)
SHARE = ValueType("users and groups", parse_share, format_share)
KEEP = ValueType("pattern", _parse_keep, prefix=True)
INTERFACE = ValueType("interface", _check_interface, prefix=True)
COMMAND = ValueType("command", _check_command, prefix=True)
ARGUMENTS = ValueType("arguments", split_args, shlex.join)
STALL = ValueType(
    "limit",
    partial(_parse_limit, STALL_ACTIONS, 10.0),
    _format_limit,
    complete=partial(_complete_limit, STALL_ACTIONS),
    prefix=True,
)
IDLE_GPU = ValueType(
    "limit",
    partial(_parse_limit, IDLE_GPU_ACTIONS, 10.0),
    _format_limit,
    complete=partial(_complete_limit, IDLE_GPU_ACTIONS),
    prefix=True,
)
PYTHON_ENV = ValueType("env", check_python_env, complete=_complete_python_env)
ENV = ValueType("variable", parse_env, lambda pair: format_pair(*pair))
SECRET = ValueType("secret", parse_secret, lambda pair: format_secret(*pair))
QUICKLINK = ValueType("link", parse_quicklink, lambda pair: format_pair(*pair))
CONF = ValueType("setting", parse_conf, lambda pair: format_pair(*pair))
PARAM = ValueType("parameter", parse_param, lambda pair: format_param(*pair))
LOCALIZATION = ValueType("localization", parse_localization, format_localization)
FILE = ValueType("file", parse_file, format_target)
ARCHIVE = ValueType("archive", parse_archive, format_target)
INPUT = ValueType("input", parse_input, format_input, complete=complete_input)
SAVE_OUTPUT = ValueType("output", parse_save_output, format_save_output)
WITH = _names("--with")
RETURN = _names("--return")
