"""The kernel's application: IPKernelApp with one more extension and its kernelspec's settings."""

from __future__ import annotations

import os
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from traitlets import List, Type, Unicode

from submarine_kernel.kernelspecs import read_own_spec


class SubmarineKernelApp(IPKernelApp):
    """Reads the same configuration as ipykernel's own application and starts as fast."""

    kernel_class: Any = Type(
        "submarine_kernel.kernel.SubmarineKernel",
        klass="ipykernel.kernelbase.Kernel",
        help="The class of the kernel.",
    ).tag(config=True)
    default_extensions = List(Unicode(), ["storemagic", "submarine_magics"]).tag(config=False)
    spec = Unicode("", help="The kernel.json of this kernel; Jupyter fills in its directory.").tag(
        config=True
    )

    def initialize(self, argv: Any = None) -> None:
        """As ipykernel's; then the settings of the kernelspec are put in force."""
        ipykernels: Any = super().initialize
        ipykernels(argv)
        shell: Any = getattr(self, "shell", None)
        if shell is None:
            return
        from submarine_magics.commands import set_defaults

        own = read_own_spec(self.spec)
        own.apply(os.environ)
        if own.problem:
            self.log.warning(own.problem)
        set_defaults(shell, own.run, own.source, own.problem)
