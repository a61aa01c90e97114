"""Fresh delegation tokens of a running job: from a client on the job's port, or in the directory.

A client writes the file in the job directory (``layout.TOKENS``) only if it cannot reach the port.
The file is read while the present token still works: at each ``JobStore.token_interval``. A
container with a keytab obtains tokens at the same interval instead.
"""

from __future__ import annotations

import os
import threading
from typing import Callable, Sequence

from submarine_runtime import kerberos
from submarine_runtime.kerberos import (
    TokenFormatError,
    container_tokens,
    parse_tokens_text,
    tokens_text,
)
from submarine_runtime.protocol import JobStore, layout
from submarine_runtime.storage.store import Store, StoreError
from submarine_runtime.translation import _


class TokenRefresh:
    """The receiver of fresh tokens in one container.

    Parameters
    ----------
    directory
        Working directory of the container, where a keytab is.
    resourcemanagers
        Base URLs of the ResourceManagers, for a container with a keytab.
    warn
        Called with a sentence, in any thread.
    on_fresh
        Called with the text of fresh tokens, in any thread.
    """

    def __init__(
        self,
        config: JobStore,
        store: Store,
        warn: Callable[[str], object],
        on_fresh: Callable[[str], object] = lambda text: None,
        *,
        directory: str = "",
        resourcemanagers: Sequence[str] = (),
    ) -> None:
        self._config, self._resourcemanagers = config, resourcemanagers
        self._keytab = os.path.abspath(os.path.join(directory, layout.KEYTAB))
        self._store, self._warn, self._on_fresh = store, warn, on_fresh
        self._uses_tokens = config.uses_tokens
        self._interval, self._namenode = config.token_interval, config.namenode
        self._ended = threading.Event()
        self._modified: float | None = None
        self._warned = ""

    def receive(self, text: str) -> None:
        """Use fresh tokens (``kerberos.tokens_text``), and write them to the container's file.

        Raises
        ------
        ValueError
            If the text is not tokens. The message does not contain it.
        """
        tokens = parse_tokens_text(text)
        if not self._uses_tokens or not tokens:
            return
        try:
            container_tokens().replace(tokens)
        except OSError as exc:
            self._warn_of_file(exc)
        self._on_fresh(text)

    def _warn_of_file(self, exc: OSError) -> None:
        self._warn(
            _(
                "The program does not receive fresh delegation tokens, because {path} cannot be "
                "written: {error}."
            ).format(path=container_tokens().path, error=exc.strerror)
        )

    def start(self, *, watch: bool = True) -> None:
        """Prepare the token file for the program, and begin to look in the job directory.

        Parameters
        ----------
        watch
            Whether to look; an agent with a coordinator receives tokens from it.
        """
        if self._uses_tokens and self._namenode:
            try:
                container_tokens().add_host_name(self._namenode)
            except OSError as exc:
                self._warn_of_file(exc)
        if self._uses_tokens and watch and self._interval > 0:
            threading.Thread(target=self._run, name="tokens", daemon=True).start()

    def stop(self) -> None:
        """Stop looking, because the job ends."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._interval):
            if self._config.principal:
                self._fetch()
            else:
                self._look()

    def _fetch(self) -> None:
        """Obtain tokens by the keytab."""
        # The modules are loaded here: http, ssl and ctypes, which only this thread needs.
        try:
            tokens = kerberos.tokens_by_keytab(self._config, self._resourcemanagers, self._keytab)
            self.receive(tokens_text(tokens))
        except kerberos.NoTokenError as exc:
            sentence = _("The keytab gives no fresh tokens: {error}").format(error=exc)
            if sentence != self._warned:
                self._warned = sentence
                self._warn(sentence)

    def _look(self) -> None:
        """Read tokens that a client has written to the job directory."""
        try:
            found = self._store.stat(layout.TOKENS)
            if found is None or found.modified == self._modified:
                return
            data = self._store.read(layout.TOKENS)
            self._modified = found.modified
            self.receive((data or b"").decode("ascii"))
        except StoreError:
            return  # The next look is soon enough; a token is valid for several.
        except (TokenFormatError, UnicodeDecodeError):
            self._warn(
                _("{file} in the job directory contains no tokens.").format(file=layout.TOKENS)
            )
