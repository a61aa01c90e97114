"""Python projects that uv installs without a network: their build backend is beside them."""

from __future__ import annotations

from pathlib import Path

#: A build backend without requirements, which writes a wheel of the package beside it.
BACKEND = """\
import pathlib, tomllib, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    here = pathlib.Path(__file__).parent
    project = tomllib.loads((here / "pyproject.toml").read_text())["project"]
    name, info = project["name"], f"{project['name']}-{project['version']}"
    needs = "".join(f"Requires-Dist: {one}\\n" for one in project.get("dependencies", ()))
    files = {f"{name}.py": (here / f"{name}.py").read_text(),
             f"{info}.dist-info/METADATA":
                 f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {project['version']}\\n{needs}",
             f"{info}.dist-info/WHEEL":
                 "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\n"
                 "Tag: py3-none-any\\n"}
    record = "".join(f"{path},,\\n" for path in [*files, f"{info}.dist-info/RECORD"])
    files[f"{info}.dist-info/RECORD"] = record
    wheel = f"{info}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(directory) / wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel

build_editable = build_wheel

def get_requires_for_build_wheel(config_settings=None):
    return []

get_requires_for_build_editable = get_requires_for_build_wheel
"""


def project(root: Path, name: str, version: str = "1.0", needs: str = "") -> Path:
    """Write a project with one module, whose VALUE is its version."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "backend.py").write_text(BACKEND)
    (root / f"{name}.py").write_text(f"VALUE = {version!r}\n")
    (root / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "{version}"\nrequires-python = ">=3.11"\n'
        f"dependencies = [{needs}]\n"
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return root


def without_network(cache: Path) -> dict[str, str]:
    """Return the variables with which uv uses no network and no settings of this machine."""
    found = dict.fromkeys(("UV_OFFLINE", "UV_NO_CONFIG", "UV_NO_INDEX"), "1")
    return {**found, "UV_CACHE_DIR": str(cache)}
