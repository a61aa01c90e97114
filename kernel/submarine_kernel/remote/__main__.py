"""Print an error in front ends that do not support kernel provisioners, and exit."""

from __future__ import annotations

from submarine_runtime.translation import _

if __name__ == "__main__":
    raise SystemExit(
        _(
            "submarine: this kernel runs in a container of a cluster, and the program that "
            "started it does not support kernel provisioners (jupyter_client 7 and later "
            "does). Start it from JupyterLab, Notebook 7 or `jupyter console`."
        )
    )
