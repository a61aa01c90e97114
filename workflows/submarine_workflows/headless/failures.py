"""Find the reason of a failed run in the executed notebook, in one line.

The notebook is untrusted input.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from submarine_jobs.text import printable
from submarine_runtime.translation import _

MAX_MESSAGE = 1000
#: Name of the error below the last cell of a run that was stopped.
ENDED = "RunEnded"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def why_failed(output: Path, code: int, said: str = "") -> str:
    """Return one line on why the run of a notebook failed, sanitized for display.

    Parameters
    ----------
    output
        The executed notebook; may be incomplete.
    code
        Exit code of the run; negative for a signal.
    said
        Output of its process, used if the notebook contains no error.
    """
    found = ""
    try:
        cells = json.loads(output.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            for shown in cell.get("outputs") or ():
                if shown.get("output_type") == "error":
                    number = cell.get("execution_count") or " "
                    words = _("Cell [{number}]: {ename}: {evalue}").format(
                        number=number, ename=shown["ename"], evalue=shown["evalue"]
                    )
                    if shown["ename"] == ENDED:  # the error of the cell itself is a consequence
                        found = words
                    found = found or words
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # the output is missing or incomplete
    if found:
        return printable(_COLOURS.sub("", found), MAX_MESSAGE)
    if said:
        return printable(_COLOURS.sub("", said), MAX_MESSAGE)
    if code < 0:
        return _("The notebook's run was killed by signal {code}.").format(code=-code)
    return _("The notebook's run ended with exit code {code}; the server's log has more.").format(
        code=code
    )
