"""Sentences for users: as they are in the code, or from an installed catalogue."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from submarine_runtime import translation
from submarine_runtime.translation import _, ngettext

PROGRAM = """
import sys
from translation import _, ngettext
print(_("No such job."), ngettext("{n} job", "{n} jobs", 2).format(n=2), "gettext" in sys.modules)
"""


def test_without_a_catalogue_a_sentence_stays_as_it_is() -> None:
    assert _("No such job.") == "No such job."
    assert [ngettext("one", "many", number) for number in (0, 1, 2)] == ["many", "one", "many"]


def test_the_environment_selects_the_language_of_a_catalogue(tmp_path: Path) -> None:
    shutil.copy(translation.__file__, tmp_path)
    assert _words(tmp_path, "de_DE.UTF-8") == "No such job. 2 jobs False"
    catalogue = Catalog(locale="de")
    catalogue.add("No such job.", "Diesen Job gibt es nicht.")
    catalogue.add(("{n} job", "{n} jobs"), ("{n} Job", "{n} Jobs"))
    path = tmp_path / "locale" / "de" / "LC_MESSAGES" / "submarine.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, catalogue)
    assert _words(tmp_path, "de_DE.UTF-8") == "Diesen Job gibt es nicht. 2 Jobs True"
    assert _words(tmp_path, "C.UTF-8") == "No such job. 2 jobs True"


def _words(folder: Path, language: str) -> str:
    environment = {"PATH": os.environ["PATH"], "LANG": language, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
