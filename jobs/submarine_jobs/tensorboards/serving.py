"""The program of the TensorBoard process: ``python -m submarine_jobs.tensorboards.serving``.

It reads its configuration, one line of JSON, from standard input, and writes one line with its
address. It ends at the end of standard input, so it does not outlive its parent process. It listens
on a Unix socket in a private directory, or on loopback for a browser, where it refuses other users
and has a secret path.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

from submarine_runtime.network import is_own
from submarine_runtime.tensorboards import options, plugins

NOT_INSTALLED = "not_installed"
#: Reload interval of TensorBoard in seconds.
RELOAD = "1"


def main() -> int:
    """Serve until standard input ends."""
    configuration = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # output of plug-ins is not part of the answer
    try:
        address = _launch(configuration)
    except ImportError as exc:
        answer = {"error": str(exc), "code": NOT_INSTALLED}
    except (Exception, SystemExit) as exc:  # plug-ins may raise any exception
        answer = {"error": f"{type(exc).__name__}: {exc}"[:500], "code": "failed"}
    else:
        answer = {"listens": address}
    answers.write(json.dumps(answer) + "\n")
    answers.close()
    if "listens" in answer:
        sys.stdin.read()
    # Do not wait for the threads of the server.
    os._exit(0 if "listens" in answer else 3)


def _launch(configuration: dict[str, Any]) -> str:
    # Without TensorFlow it starts in a second instead of ten and takes a tenth of the memory.
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    # cost: TensorBoard; the module that stands in for TensorFlow must be in sys.modules before it.
    from tensorboard import program

    socket_path = configuration.get("socket")
    board = program.TensorBoard(
        plugins=plugins(),
        server_class=_socket_server(socket_path) if socket_path else _loopback_server(),
    )
    own = {
        "--logdir": configuration["logdir"],
        "--host": "127.0.0.1",
        "--port": str(configuration.get("port") or 0),
        "--path_prefix": configuration.get("prefix") or "",
        "--window_title": configuration.get("title") or "TensorBoard",
        "--reload_interval": RELOAD,
    }
    given = [f"{name}={value}" for name, value in own.items()]
    board.configure(argv=["tensorboard", *options(), *given])
    return str(board.launch())


def _loopback_server() -> Any:
    """Return the class of a server on loopback that refuses other users of this machine."""
    # cost: TensorBoard; the module that stands in for TensorFlow must be in sys.modules before it.
    from tensorboard import program

    class LoopbackServer(program.WerkzeugServer):  # type: ignore[misc]
        def verify_request(self, request: Any, client_address: Any) -> bool:
            return is_own(request)

    return LoopbackServer


def _socket_server(path: str) -> Any:
    """Return the class of a server on a Unix socket, with TensorBoard's interface."""
    # cost: TensorBoard; the module that stands in for TensorFlow must be in sys.modules before it.
    from tensorboard import program
    from werkzeug import serving

    class SocketServer(serving.ThreadedWSGIServer, program.TensorBoardServer):  # type: ignore[misc]
        daemon_threads = True

        def __init__(self, wsgi_app: Any, _flags: Any) -> None:
            super().__init__(f"unix://{path}", 0, wsgi_app, _Requests)

        def serve_forever(self, poll_interval: float = 0.5) -> None:
            super().serve_forever(poll_interval)

        def get_url(self) -> str:
            return f"unix://{path}"

    class _Requests(serving.WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any, **__: Any) -> None:
            """Do not log requests."""

    return SocketServer


if __name__ == "__main__":
    sys.exit(main())
