"""Write the bill of materials of the wheel, out/sbom.cdx.json, in CycloneDX.

It lists the Python packages that the wheel requires, with those that they require, in the versions
of this environment; those of the extras alone have the scope `optional`; and the npm packages in
the bundle of the front end, as its build has recorded them. What only development needs is left
out. cyclonedx-bom reads the environment, and nothing needs a network.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release import PROJECT, read_version

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "out" / "sbom.cdx.json"
#: What rspack writes about the modules that it has put into the bundle.
BUNDLED = ROOT / "labextension" / "dist" / "static" / "third-party-licenses.json"
SCHEMA = SchemaVersion.V1_6
Json = dict[str, Any]


def required(requirements: Iterable[str]) -> set[str]:
    """Return the names of all installed packages that requirements lead to.

    Raises
    ------
    SystemExit
        If one is not installed: the list would be incomplete.
    """
    found: set[tuple[str, frozenset[str]]] = set()
    pending = [(Requirement(one), frozenset[str]()) for one in requirements]
    while pending:
        requirement, extras = pending.pop()
        if not _applies(requirement, extras):
            continue
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in found:
            continue
        found.add(key)
        try:
            further = distribution(requirement.name).requires or []
        except PackageNotFoundError:
            raise SystemExit(
                f"{requirement.name} is not installed: type scripts/setup.sh python."
            ) from None
        pending += [(Requirement(one), key[1]) for one in further]
    return {str(name) for name, _ in found}


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}))


def bill(environment: Json, project: Mapping[str, Any], version: str, bundled: Json) -> Json:
    """Return the bill of the project from that of an environment.

    Parameters
    ----------
    environment
        What cyclonedx-bom reports of an environment with the project and development tools.
    project
        The table ``project`` of pyproject.toml.
    bundled
        The front end's ``third-party-licenses.json``.
    """
    needed = required(project["dependencies"])
    optional = required(
        one for extra in project.get("optional-dependencies", {}).values() for one in extra
    )
    own = canonicalize_name(PROJECT)
    kept = []
    for component in environment["components"]:
        name = canonicalize_name(component["name"])
        if name in needed | optional and name != own:
            kept.append({**component, "scope": "required" if name in needed else "optional"})
    modules = [npm_component(package) for package in bundled["packages"]]
    components = [*kept, *modules]
    known = {component["bom-ref"] for component in components}
    main = environment["metadata"]["component"]
    main = {**main, "type": "library", "version": version, "purl": f"pkg:pypi/{PROJECT}@{version}"}
    dependencies = []
    for one in environment["dependencies"]:
        targets = [ref for ref in one.get("dependsOn", []) if ref in known]
        if one["ref"] == main["bom-ref"]:
            dependencies.append(
                {**one, "dependsOn": sorted({*targets, *(it["bom-ref"] for it in modules)})}
            )
        elif one["ref"] in known:
            dependencies.append({**one, "dependsOn": targets} if targets else {"ref": one["ref"]})
    dependencies += [{"ref": module["bom-ref"]} for module in modules]
    return {
        **environment,
        "metadata": {**environment["metadata"], "component": main},
        "components": components,
        "dependencies": dependencies,
    }


def npm_component(package: Mapping[str, str]) -> Json:
    """Return the component of a package in the bundle of the front end."""
    name, version = package["name"], package["versionInfo"]
    group, _, short = name.rpartition("/")
    found: Json = {
        "type": "library",
        "bom-ref": f"npm:{name}@{version}",
        "name": short,
        "version": version,
        "scope": "required",
        "purl": f"pkg:npm/{name.replace('@', '%40', 1)}@{version}",
        "properties": [{"name": "submarine:part", "value": "front end of JupyterLab"}],
    }
    if group:
        found["group"] = group
    if package.get("licenseId"):
        found["licenses"] = [{"expression": package["licenseId"]}]
    return found


def read_environment() -> Json:
    """Return what cyclonedx-bom reports of this environment."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "environment.json"
        subprocess.run(
            [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible",
             "--pyproject", str(ROOT / "pyproject.toml"), "--sv", SCHEMA.to_version(),
             "--of", "JSON", "-o", str(target), sys.executable],
            check=True,
        )  # fmt: skip
        return dict(json.loads(target.read_text("utf-8")))


def main() -> int:
    """Write the file; return 1 if it is not valid."""
    if not BUNDLED.is_file():
        print("The front end is not built: type scripts/setup.sh python node.", file=sys.stderr)
        return 1
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    bundled = json.loads(BUNDLED.read_text("utf-8"))
    found = bill(read_environment(), project, read_version(ROOT), bundled)
    text = json.dumps(found, indent=2) + "\n"
    problem = JsonStrictValidator(SCHEMA).validate_str(text)
    if problem is not None:
        print(f"The bill of materials is not valid: {problem}", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, "utf-8")
    scopes = [component["scope"] for component in found["components"]]
    print(
        f"{TARGET.relative_to(ROOT)}: {scopes.count('required')} required components, "
        f"{len(bundled['packages'])} of them in the front end, {scopes.count('optional')} optional"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
