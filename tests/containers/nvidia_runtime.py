"""Stand-in for nvidia-container-runtime: runc with the devices that NVIDIA_VISIBLE_DEVICES names.

Docker calls it as `runc ... create --bundle DIRECTORY ...`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

RUNC = "/srv/bin/runc"


def main() -> None:
    """Add the devices to the container that is about to be created, and run runc."""
    words = sys.argv[1:]
    if "create" in words:
        bundle = Path(words[words.index("--bundle") + 1]) if "--bundle" in words else Path()
        _add_devices(bundle / "config.json")
    os.execv(RUNC, [RUNC, *words])


def _add_devices(path: Path) -> None:
    container = json.loads(path.read_text())
    prefix = "NVIDIA_VISIBLE_DEVICES="
    named = [text for text in container["process"]["env"] if text.startswith(prefix)]
    for index in named[-1][len(prefix) :].split(",") if named else []:
        device = f"/dev/nvidia{index}"
        number = os.stat(device).st_rdev
        numbers = {"major": os.major(number), "minor": os.minor(number)}
        mode = {"fileMode": 0o666, "uid": 0, "gid": 0}
        container["linux"].setdefault("devices", []).append(
            {"path": device, "type": "c", **numbers, **mode}
        )
        container["linux"]["resources"].setdefault("devices", []).append(
            {"allow": True, "type": "c", "access": "rwm", **numbers}
        )
    path.write_text(json.dumps(container))


if __name__ == "__main__":
    main()
