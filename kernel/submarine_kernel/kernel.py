"""The kernel's class: ipykernel's, whose inspector also knows ``%submarine``; no more than that."""

from __future__ import annotations

from typing import Any

from ipykernel.ipkernel import IPythonKernel


class SubmarineKernel(IPythonKernel):
    """Answers Shift+Tab on ``%submarine run --gpu`` with the grammar's own help."""

    def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> Any:
        """Help on a word of ``%submarine``; all else is IPython's."""
        if "submarine" in code:
            from submarine_magics.commands import help_at

            text = help_at(code, len(code) if cursor_pos is None else cursor_pos)
            if text is not None:
                data = {"text/plain": text}
                return {"status": "ok", "found": True, "data": data, "metadata": {}}
        ipykernels: Any = super().do_inspect
        return ipykernels(code, cursor_pos, detail_level, omit_sections)
