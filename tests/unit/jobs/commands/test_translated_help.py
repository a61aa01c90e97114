"""Help texts in the language of the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from submarine_runtime import translation

PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("submarine_runtime.translation", sys.argv.pop(1))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["submarine_runtime.translation"] = module
from submarine_jobs.cli import main
sys.exit(main())
"""
TRANSLATIONS = {
    "Show one job: state and reason, tasks, times, resources, result, links, end of its log.\n\n"
    "JOB is an id, the beginning of one, a name (the newest job of that name), last, or "
    "USER/ID or\na job directory's URL "
    "for a job that another user shares with you.": "Einen Job anzeigen.",
    "A table of all tasks, however many, in place of the job.": "Eine Tabelle aller Tasks.",
    "What": "Was",
    "Options": "Optionen",
    "Examples": "Beispiele",
    "Jobs": "Auftraege",
    "Show one job: state, reason, times, result, end of its log.": "Einen Job zeigen.",
}


@pytest.mark.slow
def test_the_help_of_commands_and_options_is_translated(tmp_path: Path) -> None:
    assert "Show one job" in _help(tmp_path, "show")
    catalogue = Catalog(locale="de")
    for sentence, translated in TRANSLATIONS.items():
        catalogue.add(sentence, translated)
    path = tmp_path / "locale" / "de" / "LC_MESSAGES" / "submarine.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, catalogue)
    told = _help(tmp_path, "show")
    assert "  Einen Job anzeigen.\n\nWas:\n  --tasks  Eine Tabelle aller Tasks.\n" in told
    assert "Optionen:\n" in told
    assert "  -h, --help  Show this text." in told
    assert "Beispiele:\n  submarine show" in told
    told = _help(tmp_path)
    assert "Auftraege:\n" in told
    assert "Einen Job zeigen.\n" in told


def _help(folder: Path, *words: str) -> str:
    module = shutil.copy(translation.__file__, folder)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *words, "--help"],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "de_DE.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
