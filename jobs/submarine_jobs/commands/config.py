"""``config``: every value in force and where it came from."""

from __future__ import annotations

import click

from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.outcome import Outcome
from submarine_jobs.commands.shared_options import backend_option, profile_option
from submarine_jobs.commands.usage import printable
from submarine_jobs.commands.verb import Verb


@click.command("config", cls=Verb, example=("config", "config --profile prod --json"))
@profile_option
@backend_option
@click.pass_obj
def config(mouth: Mouth, /, profile: str | None, backend: str | None) -> Outcome:
    """Show each configured value and where it came from: a file and line, a variable, an option.

    Files: submarine.toml in your configuration directory, then the nearest one upward from here.
    Environment variables override files, options override both.
    """
    found = mouth.config({"profile": profile, "backend": backend})
    width = max(len(item.name) for item in found.settings)
    values = [
        "-" if item.value is None else printable(str(item.value), 200) for item in found.settings
    ]
    wide = min(max(len(value) for value in values), 60)
    lines = [
        f"{item.name:<{width}}  {value:<{wide}}  {printable(item.source, 300)}"
        for item, value in zip(found.settings, values, strict=True)
    ]
    files = ", ".join(str(path) for path in found.files) or "none"
    lines += ["", f"Files read: {files}", f"Profiles:   {', '.join(found.profiles)}"]
    return Outcome(
        text="\n".join(lines),
        value={
            "values": [
                {"name": item.name, "value": item.value, "source": item.source}
                for item in found.settings
            ],
            "files": [str(path) for path in found.files],
            "profiles": list(found.profiles),
        },
    )
