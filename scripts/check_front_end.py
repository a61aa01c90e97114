"""Check the front end for `make check`: style, types and unit tests.

Does nothing if the files are the same as at the last success: most changes are of Python code.
`make test` checks the front end always.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "labextension"
STAMP = FOLDER / "node_modules" / ".cache" / "checked.sha256"
COMMANDS = (
    ("eslint", "--cache", "--cache-location", "node_modules/.cache/eslint", "src", "tests"),
    ("prettier", "--cache", "--check", "src", "tests", "style", "schema"),
    ("tsc", "--noEmit"),
    ("test",),
)


def digest() -> str:
    """Return the SHA-256 of the front end's files, except those that git ignores."""
    words = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(words, cwd=FOLDER, capture_output=True, check=True, text=True)
    total = hashlib.sha256()
    for name in sorted(set(listed.stdout.split("\0")) - {""}):
        if (FOLDER / name).is_file():
            total.update(f"{name}\0".encode())
            total.update(hashlib.sha256((FOLDER / name).read_bytes()).digest())
    return total.hexdigest()


def main() -> int:
    """Run all commands; return 0 if all of them succeeded, now or for the same files before."""
    found = digest()
    if STAMP.is_file() and STAMP.read_text() == found:
        print("The front end has not changed since its last successful check.")
        return 0
    codes = [subprocess.run(["jlpm", *words], cwd=FOLDER).returncode for words in COMMANDS]
    if any(codes):
        return 1
    STAMP.parent.mkdir(parents=True, exist_ok=True)
    STAMP.write_text(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
