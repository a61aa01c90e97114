"""``runtime.zip tensorboard-server OPTIONS``: TensorBoard without its projector.

The projector opens the files that a ``projector_config.pbtxt`` in the log directory names. A job
can write that file, and releases of TensorBoard before 2.21 accept any path in it. So the plugin is
left out, here and in the TensorBoard of ``submarine_jobs``. Runs in the job's Python, which has the
package tensorboard.
"""

from __future__ import annotations

from typing import Any, Sequence

PROJECTOR = "projector"


def options() -> list[str]:
    """Return the options that are set for every TensorBoard."""
    # cost: TensorBoard; `submarine_jobs` imports this module without it.
    from tensorboard import version

    # A job that was restarted writes a second file beside the first.
    given = ["--reload_multifile=true"]
    if [int(part) for part in version.VERSION.split(".")[:2]] >= [2, 5]:
        # The fast loader listens on a port without authentication, in a separate process.
        given.append("--load_fast=false")
    return given


def plugins() -> list[Any]:
    """Return the plugins of the installed TensorBoard, without the projector."""
    # cost: TensorBoard; `submarine_jobs` imports this module without it.
    from tensorboard import default

    return [
        plugin
        for plugin in default.get_plugins()
        if getattr(plugin, "plugin_name", None) != PROJECTOR
    ]


def main(arguments: Sequence[str]) -> int:
    """Serve until the process ends; ``arguments`` are TensorBoard's options."""
    # cost: TensorBoard; `submarine_jobs` imports this module without it.
    from tensorboard import program

    board = program.TensorBoard(plugins=plugins())
    board.configure(argv=["tensorboard", *options(), *arguments])
    code: int = board.main()
    return code
