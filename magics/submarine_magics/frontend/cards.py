"""Cards that keep themselves up to date: one display id each, fed by the core's one watcher.

In a kernel an update is sent to the cell that shows the card, whatever cell runs by then. Where
there is no kernel (a terminal) a card is text, printed once, and while waiting the log follows.
Does not decide what a card says (``submarine_jobs.display``).
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs import display
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_jobs.outputs import has_result, result_words
from submarine_magics.execution import in_one_go
from submarine_magics.frontend.card_rota import CardRota
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job

#: Jobs of which is remembered that they were shown.
_MAX_SHOWN = 2000


class LiveCard:
    """One job's card in one output.

    Parameters
    ----------
    send
        Sends a MIME bundle as an update of this card; called from any thread.
    """

    def __init__(self, job: Job, send: Callable[[dict[str, Any]], None]) -> None:
        self.job = job
        self._send = send
        self._lock = threading.Lock()
        self.final = False
        self.unsubscribe: Callable[[], None] = lambda: None

    def update(self, view: JobView) -> None:
        """A new view, from the watcher's thread; after the final one nothing changes any more."""
        ended = view.record.state.ended
        with self._lock:
            if self.final:
                return
            # A lost job may be found again.
            self.final = ended and view.record.state is not State.LOST
            self._send(display.mimebundle(view))
        if ended and has_result(view.record):
            threading.Thread(
                target=self._show_result, args=(view,), daemon=True, name="submarine-result"
            ).start()

    def finish(self, view: JobView, result: dict[str, str]) -> None:
        """Show the final state now, before the caller goes on."""
        with self._lock:
            self.final = True
            self._send(display.mimebundle(view, result=result))
        self.unsubscribe()

    def _show_result(self, view: JobView) -> None:
        if result := result_words(self.job, view.record):
            with self._lock:
                self._send(display.mimebundle(view, result=result))


class LiveDisplays:
    """All cards of one kernel."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._rota = CardRota()
        self._shown: tuple[str, int] | None = None
        self._ever_shown: dict[str, None] = {}
        #: Display id of a line in the present cell that says how far a submit is.
        self.place: str | None = None

    @property
    def rich(self) -> bool:
        """Whether outputs may be more than text: in a kernel."""
        return getattr(self._shell, "kernel", None) is not None

    def has_shown(self, job: Job) -> bool:
        """Whether the cell that runs now shows the job already."""
        return self._shown == (job.id, self._shell.execution_count)

    def shows(self, job: Job) -> bool:
        """Whether any output shows the job."""
        return job.id in self._ever_shown

    def note_shown(self, job: Job) -> None:
        """Take note that the cell that runs now shows the job."""
        self._shown = (job.id, self._shell.execution_count)
        self._ever_shown[job.id] = None
        while len(self._ever_shown) > _MAX_SHOWN:
            del self._ever_shown[next(iter(self._ever_shown))]

    def display_job(self, job: Job) -> None:
        """How a ``Job`` shows itself as the value of a cell: not twice in the same cell."""
        if not self.has_shown(job):
            self.show(job)

    def show(self, job: Job) -> JobView:
        """Put the job's card into the present output; it lives on while the job does."""
        self.note_shown(job)
        view = job.view()
        result = result_words(job, view.record) if has_result(view.record) else {}
        if not self.rich:
            print(display.text(view, command="%submarine", result=result))
            return view
        renewed, self.place = self.place, None
        display_id = renewed or uuid.uuid4().hex
        bundle = display.mimebundle(view, result=result)
        with in_one_go():  # or the card would stand still for ever
            show(bundle, display_id, update=renewed is not None)
            if not view.record.state.ended:
                self._rota.add(LiveCard(job, self._sender(display_id)))
        if view.record.state.ended:
            self.finish(job)
        return view

    def line(self, text: str, display_id: str | None) -> str:
        """Show a line of text, or renew the one with that display id; its display id."""
        import IPython.display

        put: Any = IPython.display.display
        renewed = display_id is not None
        display_id = display_id or uuid.uuid4().hex
        put({"text/plain": text}, raw=True, display_id=display_id, update=renewed)
        return display_id

    def picture(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
        """Show a MIME bundle; gives what puts another one in its place, from any thread."""
        display_id = uuid.uuid4().hex
        show(dict(bundle), display_id)
        send = self._sender(display_id)
        return lambda newer: send(dict(newer))

    def finish(self, job: Job) -> None:
        """Bring every card of a job to the state that it is in, for good, from the present cell.

        A headless executor takes updates from the cell that runs only, so that earlier cells'
        cards would else stay behind.
        """
        cards = self._rota.of_job(job.id)
        if not cards:
            return
        view = job.view()
        result = result_words(job, view.record) if has_result(view.record) else {}
        for card in cards:
            card.finish(view, result)
            self._rota.remove(card)

    def finish_all(self) -> None:
        """The same for all cards, also for those of jobs that go on."""
        for job in self._rota.jobs():
            # A card that cannot be brought up to date keeps what it shows.
            with contextlib.suppress(SubmarineError, OSError, ValueError):
                self.finish(job)

    def _sender(self, display_id: str) -> Callable[[dict[str, Any]], None]:
        """Sends updates with the header of the cell that runs now as their parent."""
        publisher: Any = self._shell.display_pub
        home = publisher.parent_header
        main = threading.get_ident()

        def send(bundle: dict[str, Any]) -> None:
            # From the kernel's own thread the running cell is right: see ``finish``.
            parent = publisher.parent_header if threading.get_ident() == main else home
            content = {"data": bundle, "metadata": {}, "transient": {"display_id": display_id}}
            with contextlib.suppress(OSError):
                publisher.session.send(
                    publisher.pub_socket,
                    "update_display_data",
                    content,
                    parent=parent,
                    ident=publisher.topic,
                )

        return send


def show(bundle: dict[str, Any], display_id: str | None = None, *, update: bool = False) -> None:
    """Put a MIME bundle into the output of the cell that runs, or in place of one that it has."""
    import IPython.display

    put: Any = IPython.display.display
    put(bundle, raw=True, display_id=display_id, update=update)
