"""``submarine zeppelin install|uninstall|check``: the interpreter in a Zeppelin installation."""

from __future__ import annotations

import click


@click.group()
def zeppelin() -> None:
    """Put the interpreter group into a Zeppelin installation, and look whether it is well."""
