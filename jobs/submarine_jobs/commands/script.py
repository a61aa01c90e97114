"""``script``: show the merged program."""

from __future__ import annotations

import html
from collections.abc import Iterable

import click

from submarine_jobs.commands.cells import collection_of
from submarine_jobs.commands.grammar import Verb, option, printable
from submarine_jobs.display import BOX
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.program import PROGRAM
from submarine_jobs.text import printable as harmless
from submarine_runtime.translation import _

_MAX_TEXT = 4 << 20


@click.command("script", cls=Verb, example=("script", "script --file model.py"))
@option("--file", "filename", metavar="FILE", help="Only this file of the program.")
@click.pass_obj
def script(frontend: Frontend, /, filename: str | None) -> Outcome:
    """Show the program that the collected cells make, file by file."""
    collection = collection_of(frontend, "script")
    names = [cell.filename for cell in collection.cells()]
    program = PROGRAM if PROGRAM in names or not names else names[0]
    bundle = frontend.cells_bundle(program)
    if filename is not None and filename not in bundle.files:
        known = ", ".join(sorted(bundle.files))
        raise UsageError(
            _("The program has no file {filename}.").format(filename=printable(filename)),
            _("It has {known}.").format(known=known),
        )
    shown = [filename] if filename is not None else _in_order(bundle.files, program)
    texts = {name: harmless(bundle.text(name), _MAX_TEXT) for name in shown}
    many = len(texts) > 1
    parts = [f"# ---- {name} ----\n{text}" if many else text for name, text in texts.items()]
    return Outcome(
        text="\n".join(part.rstrip("\n") + "\n" for part in parts).rstrip("\n"),
        html="".join(_html(name, text) for name, text in texts.items()),
        value={"program": program, "digest": bundle.digest, "files": texts},
    )


def _in_order(files: Iterable[str], program: str) -> list[str]:
    """Return the modules, and then the program that imports them."""
    return sorted(files, key=lambda name: (name == program, name))


def _html(name: str, text: str) -> str:
    # cost: pygments (30 ms), which only a notebook needs.
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    # Inline styles, because viewers of notebooks remove style sheets.
    # The box is dark in each theme, so that one set of colours is readable in all.
    formatter = HtmlFormatter(
        noclasses=True, linenos=False, nobackground=True, style="github-dark", prestyles=BOX
    )
    code = highlight(text, PythonLexer(), formatter)
    return f"<p><b>{html.escape(name)}</b></p>{code}"
