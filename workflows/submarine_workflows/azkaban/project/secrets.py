"""Detect secrets in a workflow, because Azkaban shows and logs every value.

Doubtful values are rejected. A path of a file that contains a secret is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from submarine_runtime.translation import _
from submarine_workflows.model import Problem, Workflow, path_of

_NAME = re.compile(
    r"(?:^|_)(?:PASS|PASSWORD|PASSWD|PASSPHRASE|PWD|SECRET|TOKEN|CREDENTIALS?|API_?KEY|APIKEY"
    r"|ACCESS_?KEY(?:_ID)?|SECRET_?KEY|PRIVATE_?KEY|AUTH_?KEY)(?:_|$)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
#: ``token.file``, ``password_path``: the location of a secret is not secret.
_LOCATION = re.compile(r"(?:^|_)(?:FILE|PATH|DIR|URL|URI|NAME|PROVIDER|TTL|TIMEOUT|ALIAS)$")
_VALUES = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"), _("a private key")),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), _("an access key of AWS")),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}\b|\bgithub_pat_\w{30,}"), _("a token of GitHub")),
    (re.compile(r"\bglpat-[\w-]{20,}"), _("a token of GitLab")),
    (re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"), _("a token of Slack")),
    (re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"), _("a web token")),
    (
        re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^/@\s:]*:(?!\$\{)[^/@\s]+@"),
        _("a password in a URL"),
    ),
    (
        re.compile(r"(?i)\b(?:bearer|basic) [\w+/=.~-]{16,}"),
        _("the value of an Authorization header"),
    ),
)
_OPTION = re.compile(r"(?i)(?:^|[\s'\"])-{1,2}([a-z][\w.-]*?)(?:=|\s+)['\"]?([^\s'\"-][^\s'\"]*)")
_ASSIGNMENT = re.compile(r"(?:^|[\s'\"])([A-Za-z_][\w.]*)=['\"]?([^\s'\"]+)")


def secret_kind(name: str, value: str) -> str:
    """Return the kind of secret that the value of ``name`` looks like; empty for other values.

    Examples
    --------
    >>> secret_kind("env.DB_PASSWORD", "hunter2")
    'a secret by its name'
    >>> secret_kind("env.DB_PASSWORD_FILE", "/etc/secrets/db")
    ''
    """
    if names_secret(name) and _is_literal(value):
        return _("a secret by its name")
    for pattern, what in _VALUES:
        if pattern.search(value):
            return what
    return ""


def secret_in_command(line: str) -> str:
    """Return the secret in a command line, ``--password hunter2``; empty if there is none."""
    for pattern, what in _VALUES:
        if pattern.search(line):
            return what
    for option, value in (*_OPTION.findall(line), *_ASSIGNMENT.findall(line)):
        if names_secret(option) and _is_literal(value):
            return _("a secret after `{option}`").format(option=option)
    return ""


def names_secret(name: str) -> bool:
    """Return whether a name denotes a secret."""
    word = _SEPARATORS.sub("_", _CAMEL.sub("_", name)).upper().strip("_")
    return bool(_NAME.search(word)) and not _LOCATION.search(word)


def first_secret(values: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first name with a value that looks like a secret, and the kind of the secret."""
    for name, value in values.items():
        is_command = name == "command" or name.startswith("command.")
        what = secret_in_command(value) if is_command else secret_kind(name, value)
        if what:
            return name, what
    return None


def _is_literal(value: str) -> bool:
    """Return whether a value is literal: not empty, a path or a flag."""
    text = value.strip()
    if not text or text.lower() in ("true", "false", "none", "null", "0", "1"):
        return False
    return not text.startswith(("/", "hdfs://", "file://", "jceks://"))


def find_secrets(workflow: Workflow) -> list[Problem]:
    """Return a problem for every value of a workflow that looks like a secret."""
    found = []
    values = [(_("the workflow"), 0, workflow.config)]
    for flows, node in workflow.walk():
        name = f"`{path_of(node, flows)}`"
        values.append((name, node.line, node.config))
        given = {**node.params, **node.job}
        values.append((name, node.line, {key: str(value) for key, value in given.items()}))
        needs = {
            _("needs {number}").format(number=number): need.url
            for number, need in enumerate(node.needs)
        }
        values.append((name, node.line, needs))
    for name, line, table in values:
        secret = first_secret(table)
        if secret is not None:
            sentence = _(
                "`{secret}` of {name} looks like {secret_2}, and Azkaban shows and logs every "
                "value: keep it in a file on the executor's host, and give its path."
            ).format(secret=secret[0], name=name, secret_2=secret[1])
            found.append(Problem(line, sentence, workflow.file))
    return found
