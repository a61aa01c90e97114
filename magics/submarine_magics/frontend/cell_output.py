"""Show display data in the output of a notebook's cell, and update it from any thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import IPython.display

from submarine_jobs.frontends import MimeBundle, Publisher
from submarine_magics.execution import defer_interrupts

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellOutput(Publisher):
    """The output of the running cell. Updates belong to the cell that shows the display."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    @property
    def rich(self) -> bool:  # type: ignore[override]
        """Whether outputs may contain HTML: in a kernel."""
        return getattr(self._shell, "kernel", None) is not None

    @property
    def place(self) -> object:
        """Number of the cell's execution."""
        return self._shell.execution_count

    def write(self, text: str) -> None:
        """Print text."""
        print(text, end="", flush=True)

    def show(self, bundle: MimeBundle, display_id: str, *, update: bool = False) -> None:
        """Display a MIME bundle in the current cell, or update an existing display."""
        put: Any = IPython.display.display
        put(dict(bundle), raw=True, display_id=display_id, update=update)

    def sender(self, display_id: str) -> Callable[[MimeBundle], None]:
        """Return a function that sends updates with the current cell as their parent."""
        publisher: Any = self._shell.display_pub
        home = publisher.parent_header
        main = threading.get_ident()

        def send(bundle: MimeBundle) -> None:
            # In the kernel's main thread the parent is the running cell: see `finish`.
            parent = publisher.parent_header if threading.get_ident() == main else home
            data, transient = dict(bundle), {"display_id": display_id}
            content = {"data": data, "metadata": {}, "transient": transient}
            with contextlib.suppress(OSError):
                publisher.session.send(
                    publisher.pub_socket,
                    "update_display_data",
                    content,
                    parent=parent,
                    ident=publisher.topic,
                )

        return send

    def uninterrupted(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which an interrupt is deferred."""
        return defer_interrupts()
