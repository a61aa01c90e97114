"""The kernel: ipykernel with the magics, the settings of its kernelspec, and help for commands.

It starts as fast as ipykernel and reads the same configuration.
"""

from __future__ import annotations

import os
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from traitlets import List, Type, Unicode

from submarine_kernel.kernelspecs import read_settings
from submarine_magics import commands
from submarine_magics.commands import set_defaults


class SubmarineKernel(IPythonKernel):
    """IPython's kernel; Shift+Tab shows help also on the words of ``%submarine run --gpu``."""

    def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> Any:
        """Return help on a word of ``%submarine``; other words are inspected by IPython."""
        if "submarine" in code:
            text = commands.help_at(code, len(code) if cursor_pos is None else cursor_pos)
            if text is not None:
                data = {"text/plain": text}
                return {"status": "ok", "found": True, "data": data, "metadata": {}}
        inherited: Any = super().do_inspect
        return inherited(code, cursor_pos, detail_level, omit_sections)


class SubmarineKernelApp(IPKernelApp):
    """ipykernel's application with one more extension and the settings of the kernelspec."""

    kernel_class: Any = Type(
        SubmarineKernel,
        klass="ipykernel.kernelbase.Kernel",
        help="The class of the kernel.",
    ).tag(config=True)
    default_extensions = List(Unicode(), ["storemagic", "submarine_magics"]).tag(config=False)
    spec = Unicode("", help="Path of kernel.json; Jupyter inserts its directory.").tag(config=True)

    def initialize(self, argv: Any = None) -> None:
        """Initialize ipykernel, then apply the settings of the kernelspec."""
        inherited: Any = super().initialize
        inherited(argv)
        shell: Any = getattr(self, "shell", None)
        if shell is None:
            return
        settings = read_settings(self.spec)
        settings.apply(os.environ)
        if settings.problem:
            self.log.warning(settings.problem)
        set_defaults(shell, settings.run, settings.source, settings.problem)
