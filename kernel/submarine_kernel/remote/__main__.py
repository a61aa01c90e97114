"""What a front end starts that knows no kernel provisioners: says so, and ends."""

from __future__ import annotations

if __name__ == "__main__":
    raise SystemExit(
        "submarine: this kernel runs in a container of a cluster, and the program that started it "
        "knows no kernel provisioners (jupyter_client 7 and later has them). Start it from "
        "JupyterLab, Notebook 7 or `jupyter console`."
    )
