"""The program that is TensorBoard's process: ``python -m submarine_jobs.tensorboards.serving``.

Reads its orders, one JSON line, from standard input and answers with one line: where it listens.
It ends when its standard input does, so it never outlives whoever started it, however that one
ended. On a Unix socket in a private directory nobody else on this machine reaches it; for a browser
that comes to it directly it listens on loopback, for this user only and below a path that only the
starter was told.
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
#: Seconds between two looks of TensorBoard's at its files.
RELOAD = "1"


def main() -> int:
    """Serve until standard input ends."""
    order = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what plug-ins print is no answer
    try:
        listens = _launch(order)
    except ImportError as exc:
        answer = {"error": str(exc), "code": NOT_INSTALLED}
    except (Exception, SystemExit) as exc:  # whatever plug-ins may raise: the starter says so
        answer = {"error": f"{type(exc).__name__}: {exc}"[:500], "code": "failed"}
    else:
        answer = {"listens": listens}
    answers.write(json.dumps(answer) + "\n")
    answers.close()
    if "listens" in answer:
        sys.stdin.read()
    # Threads of the server are never waited for.
    os._exit(0 if "listens" in answer else 3)


def _launch(order: dict[str, Any]) -> str:
    # Without TensorFlow it starts in a second instead of ten and takes a tenth of the memory.
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    # cost: TensorBoard; the module that stands in for TensorFlow must be in sys.modules before it.
    from tensorboard import program

    socket_path = order.get("socket")
    board = program.TensorBoard(
        plugins=plugins(), server_class=_on_socket(socket_path) if socket_path else _on_loopback()
    )
    own = {
        "--logdir": order["logdir"],
        "--host": "127.0.0.1",
        "--port": str(order.get("port") or 0),
        "--path_prefix": order.get("prefix") or "",
        "--window_title": order.get("title") or "TensorBoard",
        "--reload_interval": RELOAD,
    }
    given = [f"{name}={value}" for name, value in own.items()]
    board.configure(argv=["tensorboard", *options(), *given])
    return str(board.launch())


def _on_loopback() -> Any:
    """The class of a server on loopback that refuses other users of this machine."""
    # cost: TensorBoard; the module that stands in for TensorFlow must be in sys.modules before it.
    from tensorboard import program

    class LoopbackServer(program.WerkzeugServer):  # type: ignore[misc]
        def verify_request(self, request: Any, client_address: Any) -> bool:
            return is_own(request)

    return LoopbackServer


def _on_socket(path: str) -> Any:
    """The class of a server at a Unix socket, as TensorBoard wants it."""
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
            """Nothing: every request would be a line."""

    return SocketServer


if __name__ == "__main__":
    sys.exit(main())
