"""The kernel's application: IPKernelApp with one more default extension."""

from __future__ import annotations

from ipykernel.kernelapp import IPKernelApp
from traitlets import List, Unicode


class SubmarineKernelApp(IPKernelApp):
    """Reads the same configuration as ipykernel's own application and starts as fast."""

    default_extensions = List(Unicode(), ["storemagic", "submarine_magics"]).tag(config=False)
