"""What an executed notebook says of how it ended, in a line for lists of runs.

Reads a file that anybody may have written; believes nothing of it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from submarine_jobs.text import printable

MAX_MESSAGE = 1000
#: The error below the last cell of a run that was ended from outside.
ENDED = "RunEnded"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def why_failed(output: Path, code: int, said: str = "") -> str:
    """One line on why the run of a notebook failed, safe to show anywhere.

    Parameters
    ----------
    output
        The executed notebook, as far as it was written.
    code
        Exit code of the run; negative for a signal.
    said
        What its process said, which counts where the notebook says nothing.
    """
    found = ""
    try:
        cells = json.loads(output.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            for shown in cell.get("outputs") or ():
                if shown.get("output_type") == "error":
                    number = cell.get("execution_count") or " "
                    words = f"Cell [{number}]: {shown['ename']}: {shown['evalue']}"
                    if shown["ename"] == ENDED:  # what the cell itself says is due to that
                        found = words
                    found = found or words
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # there is no output, or half of one
    if found:
        return printable(_COLOURS.sub("", found), MAX_MESSAGE)
    if said:
        return printable(_COLOURS.sub("", said), MAX_MESSAGE)
    if code < 0:
        return f"The notebook's run was killed by signal {-code}."
    return f"The notebook's run ended with exit code {code}; the server's log has more."
