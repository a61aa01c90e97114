"""Kernel client that sends cell metadata like JupyterLab and routes late outputs to their cells.

Extends the clients of papermill and nbclient.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from queue import Empty
from typing import Any

from nbclient.exceptions import CellExecutionComplete, DeadKernelError
from nbclient.util import ensure_async
from nbformat import NotebookNode
from nbformat.v4 import output_from_msg
from papermill.clientwrap import PapermillNotebookClient

from submarine_jobs.display import MIME_TYPE as CARD
from submarine_runtime.translation import _

#: Messages that threads of a finished cell may still send.
_LATE_MESSAGES = frozenset({"stream", "display_data", "update_display_data"})
#: Size limit for joining pieces of a stream, which bounds the cost of copying.
_MAX_JOINED = 1 << 16
#: Cell metadata that a run writes, which front ends do not send.
_RUN_METADATA = ("papermill", "execution")
_REPLY_POLL_SECONDS = 5.0


class HeadlessClient(PapermillNotebookClient):  # type: ignore[misc]
    """Kernel client of one run.

    Parameters
    ----------
    manager
        Papermill's execution manager; notified of changed outputs.
    on_data
        Called with the data of each new or updated output.
    """

    def __init__(
        self,
        manager: Any,
        on_data: Callable[[dict[str, Any]], None],
        **settings: Any,
    ) -> None:
        super().__init__(manager, raise_on_iopub_timeout=False, **settings)
        self._on_data = on_data
        #: Cell index by the id of the execute request.
        self._cell_of: dict[str, int] = {}
        self._next: int | None = None
        self.on_cell_execute = self._set_next_cell

    async def async_start_new_kernel_client(self) -> Any:
        """Start nbclient's client; its execute requests contain the metadata of the cell."""
        client = await super().async_start_new_kernel_client()
        client.execute = self._execute
        return client

    def _set_next_cell(self, cell: NotebookNode, cell_index: int) -> None:
        self._next = cell_index

    def _execute(
        self,
        code: str,
        silent: bool = False,
        store_history: bool = True,
        user_expressions: dict[str, str] | None = None,
        allow_stdin: bool | None = None,
        stop_on_error: bool = True,
    ) -> str:
        """Replace ``KernelClient.execute``, which sends no metadata."""
        assert self.kc is not None
        content = {
            "code": code,
            "silent": silent,
            "store_history": store_history,
            "user_expressions": user_expressions or {},
            "allow_stdin": False,
            "stop_on_error": stop_on_error,
        }
        index, self._next = self._next, None
        metadata = {} if index is None else metadata_of(self.nb.cells[index])
        message = self.kc.session.msg("execute_request", content, metadata=metadata)
        sent = str(message["header"]["msg_id"])
        if index is not None:
            self._cell_of[sent] = index
        self.kc.shell_channel.send(message)
        return sent

    async def _async_poll_output_msg(
        self, parent_msg_id: str, cell: NotebookNode, cell_index: int
    ) -> None:
        """Process messages as nbclient does, but keep outputs of earlier cells."""
        while True:
            message = await self._next_message()
            if message["parent_header"].get("msg_id") != parent_msg_id:
                self._process_late(message)
                continue
            try:
                self.process_message(message, cell, cell_index)
            except CellExecutionComplete:
                return

    async def _next_message(self) -> dict[str, Any]:
        assert self.kc is not None
        message: dict[str, Any] = await ensure_async(self.kc.iopub_channel.get_msg(timeout=None))
        return message

    def _process_late(self, message: dict[str, Any]) -> None:
        index = self._cell_of.get(message["parent_header"].get("msg_id", ""))
        if index is not None and message["msg_type"] in _LATE_MESSAGES:
            self.process_message(message, self.nb.cells[index], index)

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        """Process a message as papermill does, and report its data."""
        data = msg["content"].get("data")
        if isinstance(data, dict) and msg["msg_type"] in _LATE_MESSAGES:
            self._on_data(data)
        shown: NotebookNode | None = super().process_message(msg, cell, cell_index)
        return shown

    def output(
        self,
        outs: list[NotebookNode],
        msg: dict[str, Any],
        display_id: str | None,
        cell_index: int,
    ) -> NotebookNode | None:
        """Append output as nbclient does, but join pieces of a stream, like a front end."""
        last = outs[-1] if outs else None
        content = msg["content"]
        if (
            msg["msg_type"] == "stream"
            and last is not None
            and last.output_type == "stream"
            and last.name == content["name"]
            and len(last.text) < _MAX_JOINED
            and not self.clear_before_next_output
            and not self.output_hook_stack[msg["parent_header"].get("msg_id")]
        ):
            last.text += content["text"]
            # Papermill logs the piece; the joined output is kept.
            piece: NotebookNode = output_from_msg(msg)
            return piece
        shown: NotebookNode | None = super().output(outs, msg, display_id, cell_index)
        return shown

    async def execute_hidden(
        self, code: str, on_display: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        """Execute ``code`` outside the notebook: silent, not counted, not in the history.

        Parameters
        ----------
        on_display
            Called with the data of each display, except job cards, which are added below a cell.
            Updates of earlier displays go to the cells that contain them.

        Returns
        -------
        dict
            Content of the kernel's reply.

        Raises
        ------
        DeadKernelError
            If the kernel has died.
        """
        sent = self._execute(code, silent=True, store_history=False, stop_on_error=False)
        listening = asyncio.ensure_future(self._listen(sent, on_display))
        try:
            reply = await self._reply(sent)
            # All displays have been sent before the reply.
            await asyncio.wait({listening}, timeout=self.iopub_timeout)
            return reply
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    async def language_info_of_kernel(self) -> dict[str, Any]:
        """Return the kernel's ``language_info`` for the notebook metadata."""
        assert self.kc is not None
        reply = await self._reply(await ensure_async(self.kc.kernel_info()))
        info: dict[str, Any] = reply.get("language_info") or {}
        return info

    async def process_late_outputs(self, silence: float, longest: float) -> None:
        """Process outputs of finished cells until none arrives for ``silence`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest):
                while True:
                    self._process_update(await asyncio.wait_for(self._next_message(), silence))

    async def _listen(self, sent: str, on_display: Callable[[dict[str, Any]], None]) -> None:
        while True:
            message = await self._next_message()
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != sent:
                self._process_late(message)
            elif kind == "display_data":
                if CARD in content["data"] and self._cell_of:
                    # Card of a job started by a thread: below the cell that ran last.
                    index = list(self._cell_of.values())[-1]
                    self.process_message(message, self.nb.cells[index], index)
                else:
                    on_display(content["data"])
            elif kind == "update_display_data":
                self._process_update(message)
            elif kind == "status" and content["execution_state"] == "idle":
                return

    def _process_update(self, message: dict[str, Any]) -> None:
        """Process updates of any earlier display, and other messages of known cells."""
        if message["msg_type"] != "update_display_data":
            self._process_late(message)
            return
        display_id = (message["content"].get("transient") or {}).get("display_id")
        if display_id:
            self._update_display_id(display_id, message)
            self.nb_man.autosave_cell()
            self._on_data(message["content"]["data"])

    async def _reply(self, sent: str) -> dict[str, Any]:
        assert self.kc is not None
        while True:
            try:
                message = await ensure_async(
                    self.kc.shell_channel.get_msg(timeout=_REPLY_POLL_SECONDS)
                )
            except Empty:
                if not await ensure_async(self.kc.is_alive()):
                    raise DeadKernelError(_("Kernel died")) from None
                continue
            if message["parent_header"].get("msg_id") == sent:
                content: dict[str, Any] = message["content"]
                return content


def metadata_of(cell: NotebookNode) -> dict[str, Any]:
    """Return the metadata that JupyterLab sends with the execution of ``cell``."""
    metadata = {key: value for key, value in cell.metadata.items() if key not in _RUN_METADATA}
    return {**metadata, "deletedCells": [], "recordTiming": False, "cellId": cell.get("id")}
