"""Notifications are sent, and contain no secret."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from submarine_jobs.errors import UsageError
from submarine_workflows import notifications as notifying
from submarine_workflows.notifications import Notice, mask, notify, parse_command

NOTICE = Notice("FAILED", "`train` failed; $(touch pwned) `x`", log="a\nb", workflow="nightly")
PYTHON = shlex.quote(sys.executable)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("hdfs://ann:hunter22@host/x", "hdfs://ann:***@host/x"),
        ("PASSWORD=hunter22 rest", "PASSWORD=*** rest"),
        ('{"api_key": "hunter22", "a": 1}', '{"api_key": ***, "a": 1}'),
        ("get ?token=hunter22&x=1", "get ?token=***&x=1"),
        ("run --db-password hunter22", "run --db-password ***"),
        ("Authorization: Bearer hunter22", "Authorization: Bearer ***"),
        ("AWS_SECRET_ACCESS_KEY: hunter22", "AWS_SECRET_ACCESS_KEY: ***"),
        ("it says hunter-in-env here", "it says *** here"),
        ("x -----BEGIN RSA PRIVATE KEY-----\nhunter22\n-----END RSA PRIVATE KEY----- y", "x *** y"),
        ("hunter22\n-----END PRIVATE KEY----- y", "*** y"),
        ("-----BEGIN PRIVATE KEY-----\nhunter22", "***"),
    ],
)
def test_a_secret_is_masked(text, masked):
    assert mask(text, environ={"MY_TOKEN": "hunter-in-env", "HOME": "hunter"}) == masked


@pytest.mark.parametrize(
    "text",
    [
        "the token expired today", "max_tokens=512 tokens: 3", "12 tests passed: fine",
        "tokenizer: bert", "https://host:8088/cluster/app/application_1_1", "monkey: 3",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_sent(text):
    assert mask(text, environ={}) == text


def test_the_jobs_own_token_is_masked_even_where_it_is_part_of_another():
    assert mask("a=abcd b=abcdef", ["abcd", "abcdef"], {}) == "a=*** b=***"


def test_a_long_text_of_words_is_masked_in_little_time():
    assert mask("password" * 4_000, environ={})


def test_the_command_gets_json_and_no_shell_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import sys; open('got', 'w').write(sys.stdin.read() + repr(sys.argv))"
    said: list[str] = []
    assert notify(f"{PYTHON} -c {shlex.quote(code)} 'one word'", NOTICE, say=said.append)
    text, _, arguments = (tmp_path / "got").read_text().partition("\n")
    told = json.loads(text)
    assert (told["state"], told["workflow"], told["log"]) == ("FAILED", "nightly", "a\nb")
    assert told["reason"] == NOTICE.reason
    assert arguments == "['-c', 'one word']"
    assert not said
    assert not (tmp_path / "pwned").exists()


def test_secrets_are_masked_before_a_text_is_cut():
    notice = Notice("FAILED", "r", log="start " + "token=" + "s" * 3000 + " \x1b[2J end")
    told = notice.to_json(environ={})
    assert told["log"] == "start token=*** \ufffd[2J end"
    many = Notice("FAILED", "r", log="x\n" * 90_000).to_json(environ={})
    assert len(many["log"]) <= 8 << 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import sys; print('no mail: token=hunter22'); sys.exit(3)", "code 3: no mail: token=***"),
        ("import time; time.sleep(600)", "it was stopped after 0.5 s"),
        ("import os; os.close(0)", ""),
    ],
)
def test_a_notifier_that_fails_is_said_and_waited_for_no_longer(code, sentence):
    said: list[str] = []
    good = notify(
        f"{PYTHON} -c {shlex.quote(code)}",
        NOTICE,
        say=said.append,
        timeout=60 if "sleep" not in code else 0.5,
    )
    assert good is not bool(sentence)
    assert sentence in " ".join(said)


@pytest.mark.slow
def test_the_end_of_a_run_does_not_wait_for_its_notifier(monkeypatch):
    monkeypatch.setattr(notifying, "STOPPED_TIMEOUT", 0.3)
    said: list[str] = []
    asked = iter([False, False])
    command = f"{PYTHON} -c 'import time; time.sleep(600)'"
    assert not notify(command, NOTICE, say=said.append, stopped=lambda: next(asked, True))
    assert "it was stopped after 0.3 s" in said[0]


@pytest.mark.slow
def test_much_input_that_is_read_late_arrives_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notifying, "_POLL_INTERVAL", 0.01)
    code = "import sys, time; time.sleep(0.5); open('got', 'w').write(sys.stdin.read())"
    notice = Notice("FAILED", "r", log="\u00e9" * 8000, jobs=("j" * 2000,) * 50)
    assert notify(f"{PYTHON} -c {shlex.quote(code)}", notice, say=print)
    assert json.loads((tmp_path / "got").read_text())["jobs"] == ["j" * 2000] * 50


@pytest.mark.parametrize("command", ["", "'open", "/no/such/program --now"])
def test_a_notifier_that_cannot_be_is_refused_before_the_run(command):
    with pytest.raises(UsageError, match="--notify"):
        parse_command(command)
    said: list[str] = []
    assert not notify(command, NOTICE, say=said.append)
    assert said
