"""Front ends that keep their output, for tests of commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from submarine_jobs.client import Session
from submarine_jobs.config import Config
from submarine_jobs.frontends import Frontend


class RecordingFrontend(Frontend):
    """A front end that keeps its messages, questions and logs.

    Parameters
    ----------
    answer
        The answer to each question; None: it is not interactive.
    session
        The session of each command; None: the session of the command's profile.
    """

    def __init__(
        self, kind: str = "python", *, answer: bool | None = None, session: Session | None = None
    ) -> None:
        super().__init__()
        self.kind = kind
        self.command = "%submarine" if kind == "notebook" else "submarine"
        self.interactive = answer is not None
        self.answer = answer
        self.said: list[str] = []
        self.questions: list[str] = []
        self.written = b""
        self._session = session

    def session(self, config: Config) -> Session:
        return self._session or super().session(config)

    def say(self, text: str) -> None:
        self.said.append(text)

    def confirm(self, question: str) -> bool:
        self.questions.append(question)
        return bool(self.answer)

    def write(self, data: bytes, stream: str = "stdout") -> None:
        self.written += data


class PictureFrontend(RecordingFrontend):
    """A notebook's front end that keeps its pictures."""

    def __init__(self, *, answer: bool | None = None) -> None:
        super().__init__("notebook", answer=answer)
        self.pictures: list[Mapping[str, Any]] = []

    def add_output(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
        self.pictures.append(bundle)
        return self.pictures.append
