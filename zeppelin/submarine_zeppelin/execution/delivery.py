"""How an ended run's output and result come together in what the server saves.

What ``interpret`` returns replaces what was streamed, and a later checkpoint replaces that. So a
run that went well and streamed saves its output first and returns "keep"; whatever is returned is
noted, that updates after the end begin from it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from submarine_zeppelin.execution.output import ParagraphOutput
from submarine_zeppelin.execution.output_writer import Outputs
from submarine_zeppelin.interface import Code, Kind, Message, Result, fit
from submarine_zeppelin.thrift import EventRefusedError, ServerAwayError

log = logging.getLogger(__name__)


class Delivery:
    """Brings outputs and results to the server."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs

    def clear(self, output: ParagraphOutput) -> None:
        """A run begins: nothing of the last one is shown."""
        try:
            output.clear()
        except (ServerAwayError, EventRefusedError) as error:
            log.warning("output of %s was not cleared: %s", output.context.paragraph_id, error)
            output.forget_sent()

    def show_again(self, output: ParagraphOutput) -> None:
        """The server may have cleared what a run showed that goes on."""
        output.forget_sent()
        self._outputs.finish(output)

    def settle(self, output: ParagraphOutput, result: Result) -> Result:
        """Save what was streamed, or note what is returned in its place."""
        if result.code is Code.KEEP:
            self._outputs.finish(output)
            return replace(result, messages=())
        if result.code is Code.SUCCESS and not result.messages:
            self._outputs.finish(output)
            return replace(result, code=Code.KEEP)
        messages = fit(result.messages or output.messages, self._outputs.limit)
        output.returned(messages)
        self._outputs.release_oldest(output)
        return replace(result, messages=tuple(messages))

    def given_up(self, output: ParagraphOutput, said: str) -> Result:
        """The result of a run that does not stop: what it has shown, and a word on that."""
        pieces = [*output.messages, Message(Kind.TEXT, said + "\n")]
        output.end("the paragraph was cancelled")
        return Result(Code.ERROR, tuple(fit(pieces, self._outputs.limit)))
