"""The check for duplicate code finds equal lines of two packages, and no others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

import check_duplicates as check  # noqa: E402

BODY = [f"value_{number} = compute({number})" for number in range(check.LEAST)]


def found(folder: Path, files: dict[str, str]) -> list[check.Finding]:
    """Compare files with the given texts."""
    lines = {}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        lines[name] = check.lines_of(path)
    return check.compare(lines)


def test_eight_equal_lines_in_two_packages_are_found(tmp_path: Path) -> None:
    indented = '"""Text."""\n\ndef run():\n' + "".join(f"    {line}\n\n" for line in BODY)
    files = {"a/x.py": "\n".join(BODY), "b/y.py": indented}
    assert found(tmp_path, files) == [check.Finding("a/x.py", 1, "b/y.py", 4, 8)]


def test_a_longer_run_is_one_finding(tmp_path: Path) -> None:
    text = "\n".join([*BODY, "last = 1", "very_last = 2"])
    (only,) = found(tmp_path, {"a/x.py": text, "b/y.py": "start = 0\n" + text})
    assert (only.first_line, only.second_line, only.length) == (1, 2, 10)


def test_seven_lines_and_one_package_are_not_findings(tmp_path: Path) -> None:
    assert not found(tmp_path, {"a/x.py": "\n".join(BODY[1:]), "b/y.py": "\n".join(BODY[1:])})
    assert not found(tmp_path, {"a/x.py": "\n".join(BODY), "a/y.py": "\n".join(BODY)})


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("py", '"""\n' + "A line of text.\n" * 9 + '"""\n'),
        ("py", "# A comment.\n" * 9),
        ("py", "from module import (\n" + "".join(f"    n{n},\n" for n in range(9)) + ")\n"),
        ("ts", "/**\n" + " * A line of text.\n" * 9 + " */\n"),
        ("ts", "// A comment.\n" * 9),
        ("ts", "import {\n" + "".join(f"  N{n},\n" for n in range(9)) + "} from './module';\n"),
    ],
)
def test_texts_and_imports_do_not_count(tmp_path: Path, suffix: str, text: str) -> None:
    assert not found(tmp_path, {f"a/x.{suffix}": text, f"b/y.{suffix}": text})


def test_code_in_typescript_counts(tmp_path: Path) -> None:
    text = "// Text.\n" + "".join(f"const a{n} = compute({n}); // {n}\n" for n in range(8))
    assert found(tmp_path, {"a/x.ts": text, "b/y.tsx": text}) == [
        check.Finding("a/x.ts", 2, "b/y.tsx", 2, 8)
    ]


def test_an_entry_that_is_not_needed_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "accepted.toml"
    listed.write_text('[[pair]]\nfiles = ["a/x.py", "b/y.py"]\nreason = "None."\n')
    monkeypatch.setattr(check, "ACCEPTED", listed)
    monkeypatch.setattr(check, "product_files", dict)
    assert check.main() == 1
    assert "a/x.py and b/y.py have no 8 equal lines" in capsys.readouterr().out
