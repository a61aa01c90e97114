"""The line that says how far an environment's packing is."""

from __future__ import annotations

import pytest

from submarine_jobs.frontends import Frontend, SubmitProgress


class Listener(Frontend):
    """Takes down what is shown; ``able``: whether it can renew a line."""

    def __init__(self, *, able: bool) -> None:
        super().__init__()
        self.able = able
        self.renewed: list[str] = []
        self.said: list[str] = []

    def show_progress(self, text: str) -> bool:
        if self.able:
            self.renewed.append(text)
        return self.able

    def say(self, text: str) -> None:
        self.said.append(text)


def pack(frontend: Frontend) -> None:
    with SubmitProgress(frontend) as line:
        for done in range(0, 2_000_000_001, 100_000_000):
            line.show("packing", done, 2_000_000_000)
        line.show("uploading", 0, 600_000_000)


def test_a_step_in_words_is_shown_at_once() -> None:
    for able in (True, False):
        frontend = Listener(able=able)
        with SubmitProgress(frontend) as line:
            line.show("Starting the connection to YARN", 0, 0)
            line.show("Submitting the application to YARN", 0, 0)
        shown = [
            "Starting the connection to YARN ...",
            "Submitting the application to YARN ...",
        ]
        assert (frontend.renewed, frontend.said) == (([*shown, ""], []) if able else ([], shown))


def test_one_line_is_renewed_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(1000))
    monkeypatch.setattr(
        "submarine_jobs.frontends.submit_progress.time.monotonic", lambda: next(now) * 0.1
    )
    frontend = Listener(able=True)
    pack(frontend)
    assert frontend.renewed[0] == "Packing this environment: 0 % of 2.0 GB"
    assert "Packing this environment: 40 % of 2.0 GB" in frontend.renewed
    assert frontend.renewed[-3:] == [
        "Packing this environment: 100 % of 2.0 GB",
        "Uploading the environment: 0 % of 600 MB",
        "",
    ]
    assert 8 < len(frontend.renewed) < 16  # five a second, of ten
    assert frontend.said == []


def test_without_a_terminal_each_step_is_said_once_and_nothing_where_nothing_is_done() -> None:
    frontend = Listener(able=False)
    pack(frontend)
    assert frontend.said == [
        "Packing this environment (2.0 GB) ...",
        "Uploading the environment (600 MB) ...",
    ]
    for quiet in (Listener(able=True), Listener(able=False)):
        with SubmitProgress(quiet):
            pass
        assert (quiet.renewed, quiet.said) == ([], [])
