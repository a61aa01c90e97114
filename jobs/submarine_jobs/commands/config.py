"""``config``: show each configured value with its source, and trust project files."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from submarine_jobs.commands.grammar import Verb, backend_option, option, printable, profile_option
from submarine_jobs.config import (
    CONFIG_FILE,
    confirmed_keys,
    forget,
    is_trusted,
    project_file,
    read_file,
    summary,
    trust,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_runtime.translation import _

TRUST = "trust"


@click.command(
    "config",
    cls=Verb,
    example=("config", "config --profile prod --json", "config trust ./submarine.toml"),
)
@click.argument("act", metavar="[trust]", required=False, type=click.Choice((TRUST,)))
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@option("--yes", "-y", is_flag=True, heading="Trust", help="Trust the file without a question.")
@option("--forget", "forgotten", is_flag=True, heading="Trust", help="Trust the file no longer.")
@profile_option
@backend_option
@click.pass_obj
def config(
    frontend: Frontend,
    /,
    act: str | None,
    file: Path | None,
    yes: bool,
    forgotten: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Show each configured value and where it came from: a file and line, a variable, an option.

    Files: /etc/jupyter-submarine/submarine.toml of the site, which may lock values, submarine.toml
    in your configuration directory, then the nearest one upward from here. Environment variables
    override files, options override both.

    `trust` shows what FILE (the nearest one upward from here) lets this machine execute or trust,
    and asks whether to accept it. Until then commands refuse the file of a project.
    """
    if act is None:
        if yes or forgotten:
            raise UsageError(_("--yes and --forget go with `config trust FILE`."))
        return _values(frontend, profile, backend)
    if profile or backend:
        raise UsageError(
            _("`config trust FILE` is about a whole file."), _("Leave --profile and --backend out.")
        )
    return _trust(frontend, file, yes=yes, forgotten=forgotten)


def _trust(frontend: Frontend, path: Path | None, *, yes: bool, forgotten: bool) -> Outcome:
    nearest = project_file(Path.cwd()) if path is None else (path, path.parent)
    if nearest is None:
        raise UsageError(_("There is no submarine.toml here or above."), _("Name the file."))
    path = nearest[0] / CONFIG_FILE if nearest[0].is_dir() else nearest[0]
    # As a command finds it that runs there: the working directory has no links in its path.
    path = Path(os.path.realpath(path.parent)) / path.name
    if forgotten:
        known = forget(path)
        text = (
            _("{path} is not trusted any more.").format(path=path)
            if known
            else _("{path} was not trusted.").format(path=path)
        )
        return Outcome(text, value={"file": str(path), "trusted": False})
    file = read_file(path, path.parent)
    keys = confirmed_keys(file)
    facts = {"file": str(path), "keys": keys}
    if not keys or is_trusted(file):
        state = _("It is trusted already.") if keys else _("Nothing was changed.")
        return Outcome(f"{summary(file)}\n{state}", value={**facts, "trusted": True})
    if not yes and not frontend.interactive:
        raise UsageError(
            _("{summary} This front end cannot ask.").format(
                summary=" ".join(summary(file).split())
            ),
            _("Add --yes if you trust these values."),
        )
    if not yes and not frontend.confirm_file(file):
        return Outcome(
            _("Nothing was changed."), value={**facts, "trusted": False}, exit_code=JOB_FAILED
        )
    trust(file)
    text = _("{path} is trusted until one of these keys changes.").format(path=path)
    return Outcome(f"{summary(file)}\n{text}" if yes else text, value={**facts, "trusted": True})


def _values(frontend: Frontend, profile: str | None, backend: str | None) -> Outcome:
    found = frontend.config({"profile": profile, "backend": backend})
    width = max(len(item.name) for item in found.settings)
    values = [
        "-" if item.value is None else printable(str(item.value), 200) for item in found.settings
    ]
    wide = min(max(len(value) for value in values), 60)
    lines = [
        f"{item.name:<{width}}  {value:<{wide}}  {printable(item.source, 300)}"
        + (_(" (locked)") if item.locked else "")
        for item, value in zip(found.settings, values, strict=True)
    ]
    files = ", ".join(str(path) for path in found.files) or "none"
    lines += [
        "",
        _("Files read: {files}").format(files=files),
        _("Profiles:   {profiles}").format(profiles=", ".join(found.profiles)),
    ]
    locks = found.locks.describe()
    if locks:
        lines += ["", _("Locked by {site}:").format(site=found.site)]
        lines += [f"  {name:<16}  {printable(text, 1000)}" for name, text in locks.items()]
    return Outcome(
        text="\n".join(lines),
        value={
            "values": [vars(item) for item in found.settings],
            "files": [str(path) for path in found.files],
            "profiles": list(found.profiles),
            "site": str(found.site) if found.site is not None else None,
            "locked": asdict(found.locks),
        },
    )
