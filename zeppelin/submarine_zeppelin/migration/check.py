"""Read a Zeppelin with the former Submarine interpreter, and list what runs here and what does not.

Settings are read from ``conf/interpreter.json``, ``conf/zeppelin-site.xml`` and
``conf/zeppelin-env.sh``, notes from all ``.zpln`` and ``note.json`` files below the directory.
Nothing is changed or executed. The files are untrusted; a malformed one is named and skipped.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from submarine_jobs.commands.grammar import VERBS
from submarine_jobs.commands.run import parse_run
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.program import cell_verbs
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_zeppelin.interface import PROPERTIES, check_value
from submarine_zeppelin.notes import (
    Paragraph,
    find_templates,
    parse_cell_verb,
    parse_command,
    read_note_file,
    split_commands,
    split_words,
    translate_command_line,
)

#: The three answers: unchanged, with a difference, not at all.
RUNS, CHANGES, FAILS = "runs", "changes", "fails"
GROUP = "submarine"
#: Properties of the former interpreter that nothing reads any more.
IGNORED = frozenset(
    {
        "HADOOP_YARN_SUBMARINE_JAR",
        "submarine.hadoop.home",
        "DOCKER_HADOOP_HDFS_HOME",
        "DOCKER_JAVA_HOME",
        "INTERPRETER_LAUNCH_MODE",
        "SUBMARINE_INTERPRETER_DOCKER_IMAGE",
        "yarn.webapp.http.address",
        "submarine.hadoop.krb5.conf",
    }
)
#: Other spellings that are accepted.
_ALIASES = frozenset(
    {
        "machinelearing.distributed.enable",
        "submarine.hadoop.conf.dir",
        "submarine.hadoop.keytab",
        "submarine.hadoop.principal",
    }
)
#: The methods of `z` that `%submarine.python` has; the others raise an AttributeError.
Z_METHODS = frozenset(
    {
        *("input", "textbox", "password", "select", "checkbox", "show"),
        *("put", "add", "get", "getAsDataFrame", "contains", "remove"),
    }
)
_Z_CALL = re.compile(r"(?<![\w.])z\.(\w+)\s*\(")
#: A form that Zeppelin replaced in `%submarine` and `%submarine.sh`.
_FORM = re.compile(r"_?\$\{[^=}\n]{1,200}(?:=[^}\n]{0,200})?\}")
_ENV_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$")
_LAUNCHERS = ("docker", "k8s", "yarn")
_MAX_SIZE, _MAX_FILES = 64 << 20, 20_000


@dataclass(frozen=True)
class MigrationFinding:
    """What becomes of one thing.

    Parameters
    ----------
    effect
        ``runs``, ``changes`` or ``fails``.
    place
        File, and property or paragraph.
    text
        One sentence; empty for what runs unchanged.
    """

    effect: str
    place: str
    text: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the finding as JSON."""
        return {"effect": self.effect, "place": self.place, "text": self.text}


@dataclass
class MigrationReport:
    """All findings, and the files that could not be read."""

    findings: list[MigrationFinding] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    notes: int = 0
    #: Notes without a paragraph of the group.
    other_notes: int = 0

    def add(self, effect: str, place: str, text: str = "") -> None:
        """Add a finding."""
        self.findings.append(MigrationFinding(effect, place, text))

    def count(self, effect: str) -> int:
        """Return the number of findings with this effect."""
        return sum(one.effect == effect for one in self.findings)


def check_migration(directory: Path) -> MigrationReport:
    """Examine the Zeppelin, or the directory of notes, in ``directory``.

    Raises
    ------
    UsageError
        If it does not exist, or contains neither settings nor notes.
    """
    home = directory.expanduser()
    if not home.is_dir():
        raise UsageError(
            _("There is no directory {path}.").format(path=directory),
            _("Name Zeppelin's home, or a directory with notes."),
        )
    report = MigrationReport()
    conf = home / "conf" if (home / "conf").is_dir() else home
    present = [
        _settings(conf / "interpreter.json", report),
        _site(conf / "zeppelin-site.xml", report),
        _environment(conf / "zeppelin-env.sh", report),
    ]
    for jar in sorted((home / "interpreter" / GROUP).glob("*.jar")):
        report.add(
            CHANGES,
            _relative(jar, home),
            _("`submarine zeppelin install --replace` moves the former interpreter away."),
        )
    files = list(_note_files(home))
    for path in files:
        _note(path, _relative(path, home), report)
    if not any(present) and not files:
        raise UsageError(
            _("{path} contains neither settings of Zeppelin nor notes.").format(path=directory),
            _("Name the directory that contains Zeppelin's conf and notebook."),
        )
    return report


def _relative(path: Path, home: Path) -> str:
    return one_line(path.relative_to(home).as_posix(), 300)


def _note_files(home: Path) -> Iterator[Path]:
    found = 0
    for folder, directories, names in os.walk(home):
        # The web application and the interpreters have no notes.
        directories[:] = sorted(
            name for name in directories if name not in ("interpreter", "lib", "node_modules")
        )
        for name in sorted(names):
            if name.endswith(".zpln") or name == "note.json":
                found += 1
                if found > _MAX_FILES:
                    return
                yield Path(folder, name)


# Settings


def _read(path: Path, report: MigrationReport) -> bytes | None:
    try:
        if path.stat().st_size > _MAX_SIZE:
            report.unreadable.append((path.name, _("It is larger than 64 MiB.")))
            return None
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        report.unreadable.append((path.name, str(error.strerror or error)))
        return None


def _settings(path: Path, report: MigrationReport) -> bool:
    data = _read(path, report)
    if data is None:
        return False
    try:
        settings = json.loads(data)["interpreterSettings"].values()
        groups = [one for one in settings if one.get("group") == GROUP]
        values = [
            (_text(one.get("name")) or GROUP, name, _value(value))
            for one in groups
            for name, value in one["properties"].items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        report.unreadable.append((path.name, _("It is not a file of Zeppelin's settings.")))
        return False
    if not groups:
        report.add(
            CHANGES,
            path.name,
            _("No interpreter group submarine is saved; the defaults of the installation apply."),
        )
    for group, name, value in values:
        _property(f"{path.name}, {one_line(group, 40)}: {one_line(name, 80)}", name, value, report)
    return True


def _value(item: Any) -> str:
    """Return the value of a property: Zeppelin 0.8 and later saves an object, earlier a text."""
    value = item.get("value") if isinstance(item, dict) else item
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _property(place: str, name: str, value: str, report: MigrationReport) -> None:
    if name in IGNORED:
        if value:
            report.add(CHANGES, place, _("It is ignored, because it is not needed any more."))
    elif name in _ALIASES:
        report.add(RUNS, place)
    elif name in {one.name for one in PROPERTIES}:
        try:
            check_value(name, value)
        except SubmarineError as error:
            report.add(FAILS, place, one_line(error))
        else:
            report.add(RUNS, place)
    elif value:
        report.add(
            CHANGES, place, _("It is no property of this group and is passed on without an effect.")
        )


def _site(path: Path, report: MigrationReport) -> bool:
    data = _read(path, report)
    if data is None:
        return False
    try:
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            raise ElementTree.ParseError("entities")
        root = ElementTree.fromstring(data)  # noqa: S314 - entities are refused above
    except (ElementTree.ParseError, ValueError, LookupError):
        report.unreadable.append((path.name, _("It is not a configuration of Hadoop's form.")))
        return False
    for item in root.iter("property"):
        name = (item.findtext("name") or "").strip()
        _server_setting(path.name, name, (item.findtext("value") or "").strip(), report)
    return True


def _environment(path: Path, report: MigrationReport) -> bool:
    data = _read(path, report)
    if data is None:
        return False
    for line in data.decode("utf-8", "replace").splitlines():
        found = _ENV_LINE.match(line)
        if not found:
            continue
        name, value = found[1], found[2].split(" #")[0].strip().strip("\"'")
        if name in IGNORED:
            _property(f"{path.name}: {name}", name, value, report)
        elif name.startswith("ZEPPELIN_"):
            _server_setting(path.name, name.lower().replace("_", "."), value, report)
    return True


def _server_setting(file: str, name: str, value: str, report: MigrationReport) -> None:
    """Report a setting of Zeppelin's server that concerns the group."""
    place = f"{file}: {one_line(name, 80)}"
    listed = [word.strip() for word in value.split(",") if word.strip()]
    if name == "zeppelin.run.mode" and value.lower() in _LAUNCHERS:
        report.add(
            FAILS,
            place,
            _(
                "The launcher {value} does not start this interpreter; only the local mode does."
            ).format(value=one_line(value, 20)),
        )
    elif (name == "zeppelin.interpreter.include" and listed and GROUP not in listed) or (
        name == "zeppelin.interpreter.exclude" and GROUP in listed
    ):
        report.add(FAILS, place, _("Zeppelin does not load the group submarine."))
    elif name in ("zeppelin.server.kerberos.keytab", "zeppelin.server.kerberos.principal"):
        if value:
            report.add(
                CHANGES,
                place,
                _(
                    "It is not read: set SUBMARINE_HADOOP_KEYTAB and SUBMARINE_HADOOP_PRINCIPAL "
                    "of the group."
                ),
            )
    elif name == "zeppelin.notebook.cron.enable" and value.lower() == "true":
        report.add(
            RUNS,
            place,
        )


# Notes


def _note(path: Path, shown: str, report: MigrationReport) -> None:
    try:
        note = read_note_file(path)
    except UsageError as error:
        report.unreadable.append((shown, one_line(error.message)))
        return
    own = [item for item in note.paragraphs if item.entry is not None]
    if not own:
        report.other_notes += 1
        return
    report.notes += 1
    has_program = any(item.entry == "python" for item in own)
    for item in note.paragraphs:
        place = _("{note}, paragraph {number}").format(note=shown, number=item.number)
        if item.entry == "python":
            _python(item, place, report)
        elif item.entry == "sh":
            _shell(item, place, report)
        elif item.entry == GROUP:
            _commands(item, place, report)
        elif item.name == "md" and item.title.strip() and has_program:
            report.add(
                CHANGES,
                place,
                _("A %md paragraph with a title is no file of the program any more."),
            )


def _titled(item: Paragraph, place: str, report: MigrationReport) -> bool:
    """Return whether the title of a paragraph is valid; report an invalid one."""
    try:
        _unused = item.file
    except UsageError as error:
        report.add(FAILS, place, one_line(f"{error.message} {error.fix}"))
        return False
    return True


def _python(item: Paragraph, place: str, report: MigrationReport) -> None:
    if not _titled(item, place, report):
        return
    missing = sorted(_z_methods(item.body) - Z_METHODS)
    if missing:
        report.add(
            FAILS,
            place,
            _("It uses {methods}, which the object z of %submarine.python does not have.").format(
                methods=", ".join(f"z.{one_line(name, 40)}" for name in missing[:5])
            ),
        )
    elif not item.form_mode and (forms := find_templates(item.raw)):
        report.add(
            CHANGES,
            place,
            _(
                "The text {form} is a form now; add (form=native) to leave it as it is, as before."
            ).format(form=one_line(forms[0].text, 60)),
        )
    elif item.title.strip() and not item.title.strip().endswith(".py"):
        report.add(
            CHANGES,
            place,
            _("Its title is no file name, so it now belongs to main.py; it was left out."),
        )
    else:
        report.add(RUNS, place)


def _shell(item: Paragraph, place: str, report: MigrationReport) -> None:
    if not _titled(item, place, report):
        return
    if not item.form_mode and (found := _FORM.search(item.raw)):
        report.add(
            CHANGES,
            place,
            _(
                "The form {form} is left to the shell; add (form=simple) to fill it in as before."
            ).format(form=one_line(found[0], 60)),
        )
    else:
        report.add(RUNS, place)


def _z_methods(text: str) -> set[str]:
    """Return the methods of ``z`` that a paragraph calls and does not define itself."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Syntax of IPython, or an unfinished paragraph.
        return set(_Z_CALL.findall(text))
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if "z" in stored:
        return set()
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "z"
    }


def _commands(item: Paragraph, place: str, report: MigrationReport) -> None:
    """Check each command of a paragraph; the first that fails decides."""
    if not item.body.strip():
        report.add(CHANGES, place, _("An empty paragraph shows the help; write dashboard for it."))
        return
    left = _FORM.search(item.body) if not item.form_mode else None
    if left is not None and parse_cell_verb(item.body, 1, "") is None:
        report.add(
            CHANGES,
            place,
            _(
                "The form {form} is not filled in, because it states no value; write a value, "
                "or add (form=simple)."
            ).format(form=one_line(left[0], 60)),
        )
        return
    for line in split_commands(item.body):
        if parse_command(line) is not None:
            continue
        try:
            words = translate_command_line(split_words(line))
            _check_command(words)
        except SubmarineError as error:
            where = one_line(line, 60)
            report.add(FAILS, place, f"{where}: {one_line(f'{error.message} {error.fix}')}")
            return
        if words[:1] == ["run"] and "--wait" not in words:
            report.add(
                CHANGES,
                place,
                _("The paragraph ends when the job is accepted; add --wait to wait for its end."),
            )
            return
    report.add(RUNS, place)


def _check_command(words: list[str]) -> None:
    if words[:1] == ["run"]:
        parse_run([word for word in words[1:] if word not in ("--json",)])
    elif words and words[0] not in {*VERBS, *cell_verbs(), "help", "--help", "workflow"}:
        raise UsageError(
            _("There is no command {word}.").format(word=one_line(words[0], 40)),
            _("`help` lists the commands."),
        )


def report_json(report: MigrationReport) -> Mapping[str, Any]:
    """Return the value of ``--json``."""
    return {
        "findings": [one.to_json() for one in report.findings],
        "unreadable": [{"file": file, "error": error} for file, error in report.unreadable],
        "notes": report.notes,
        "other_notes": report.other_notes,
        "counts": {effect: report.count(effect) for effect in (RUNS, CHANGES, FAILS)},
    }
