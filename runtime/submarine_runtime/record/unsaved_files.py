"""Files of the working directory that were not saved, and the sentences on them in the record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from submarine_runtime.translation import _, ngettext

#: Number of unsaved files of the working directory that are named; the others are counted.
MAX_UNSAVED = 20


@dataclass
class UnsavedFiles:
    """Files in the working directory that the program wrote and that no pattern keeps."""

    files: list[tuple[str, int]] = field(default_factory=list)
    count: int = 0
    size: int = 0

    def add(self, path: str, size: int) -> None:
        """Count a file; the first ones are named."""
        self.count += 1
        self.size += size
        if len(self.files) < MAX_UNSAVED:
            self.files.append((path, size))

    def to_json(self) -> dict[str, Any]:
        """Return ``files`` (path and size), ``count`` and ``size`` of all."""
        return {"files": self.files, "count": self.count, "size": self.size}


def unsaved_sentences(found: Mapping[str, Any], task: str = "") -> list[str]:
    """Return a sentence for each named file of ``UnsavedFiles.to_json``, and one for the others."""
    files = found["files"][:MAX_UNSAVED]
    prefix = f"{task}: " if task else ""
    sentences = [
        _(
            "{prefix}{path}, {size_words}, was not saved. Write it to $SUBMARINE_MODEL_DIR, or "
            "run with --keep {path_quoted}."
        ).format(
            prefix=prefix, path=path, size_words=size_words(int(size)), path_quoted=quoted(path)
        )
        for path, size in files
    ]
    more = int(found["count"]) - len(files)
    if more > 0:
        rest = int(found["size"]) - sum(int(size) for _, size in files)
        what = _("One more file") if more == 1 else _("{more:,} more files").format(more=more)
        sentences.append(
            ngettext(
                "{prefix}{what} of the working directory, {rest}, was not saved.",
                "{prefix}{what} of the working directory, {rest}, were not saved.",
                more,
            ).format(prefix=prefix, what=what, rest=size_words(rest))
        )
    return sentences


def size_words(size: int) -> str:
    """Return ``268 kB``."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"


def quoted(path: str) -> str:
    """Return a pattern that matches only ``path``, quoted for a shell."""
    for character in "[?*":
        path = path.replace(character, f"[{character}]")
    return "'" + path.replace("'", "'\\''") + "'"
