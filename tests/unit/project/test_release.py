"""Version, changelog, archives' description, index of the rehearsal, bill of materials."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from readme_renderer.markdown import render

import submarine_jobs
from submarine_jobs.cli import main
from submarine_server.version import VERSION

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
try:
    import bounds_test
    import release
    import sbom
finally:
    sys.path.pop(0)

CHANGES = """# Changelog

## [Unreleased]

### Added

- Something.

## [0.2.0] - 2026-11-30

### Fixed

- An error.
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that state the version, the project's metadata, and a changelog."""
    for place in release.VERSION_PLACES:
        (tmp_path / place.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place.file, tmp_path / place.file)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


# The version


def test_all_places_state_one_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.version_problems(ROOT) == []
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"submarine {submarine_jobs.__version__}\n"
    assert submarine_jobs.__version__ == VERSION == release.read_version(ROOT)


def test_no_other_file_states_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert "version" not in project


@pytest.mark.parametrize(("version", "npm"), [("0.2.0", "0.2.0"), ("1.0.0rc1", "1.0.0-rc.1")])
def test_a_version_is_written_into_all_places(checkout: Path, version: str, npm: str) -> None:
    release.write_version(checkout, version)
    assert release.version_problems(checkout) == []
    stated = [release.read_version(checkout, place) for place in release.VERSION_PLACES]
    assert stated == [version, npm, npm]
    package = json.loads((checkout / "labextension/package.json").read_text())
    assert package["version"] == npm
    assert package["devDependencies"] == json.loads(
        (ROOT / "labextension/package.json").read_text()
    )["devDependencies"], "nothing else changes"  # fmt: skip


def test_a_copy_that_differs_is_found(checkout: Path) -> None:
    file = checkout / "labextension/src/api/readiness.ts"
    file.write_text(re.sub(r"VERSION = '[^']*'", "VERSION = '9.9.9'", file.read_text()))
    (problem,) = release.version_problems(checkout)
    assert "readiness.ts states 9.9.9" in problem
    assert "scripts/release.py version" in problem


# The changelog


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert release.changelog_problems(text) == []
    assert release.changelog_problems(CHANGES) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("### Added", "### Not implemented", "is none of"),
        ("### Fixed", "### Fixed\n\n### Added", "must come before"),
        (" - 2026-11-30", "", "has no date"),
        ("2026-11-30", "30.11.2026", "has no date"),
        ("## [0.2.0] - ", "## 0.2.0 ", "a release is"),
        ("[Unreleased]", "[0.3.0] - 2026-12-01", "the first section"),
        ("[Unreleased]", "[Unreleased]\n\n## [0.1.0] - 2026-01-01", "newest release"),
    ],
)
def test_a_changelog_of_another_form_is_refused(old: str, new: str, problem: str) -> None:
    (found,) = release.changelog_problems(CHANGES.replace(old, new))
    assert problem in found


def test_the_changes_become_those_of_the_version() -> None:
    text = release.released_changelog(CHANGES, "0.3.0", "2026-12-01")
    found = release.sections(text)
    assert list(found) == ["Unreleased", "0.3.0", "0.2.0"]
    assert found["Unreleased"] == ""
    assert "Something" in found["0.3.0"]
    assert release.changelog_problems(text) == []
    with pytest.raises(SystemExit, match="no changes"):
        release.released_changelog(text, "0.4.0", "2026-12-02")
    with pytest.raises(SystemExit, match="already"):
        release.released_changelog(text, "0.3.0", "2026-12-02")


def test_a_release_has_its_section_and_its_tag(checkout: Path) -> None:
    def git(*words: str) -> None:
        name = ("-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=checkout, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", "-A")
    git("commit", "--quiet", "-m", "Before")
    release.write_version(checkout, "0.3.0")
    text = "\n".join(release.release_problems(checkout))
    for problem in ("no section of 0.3.0", "below `## [Unreleased]`", "uncommitted", "tag v0.3.0"):
        assert problem in text
    assert "no project address Changelog, Documentation, Homepage, Issues, Source" in text
    release.write_project_urls(checkout, "https://code.example.org/team/jupyter-submarine")
    (checkout / "CHANGELOG.md").write_text(
        release.released_changelog(CHANGES, "0.3.0", "2026-12-01")
    )
    git("add", "-A")
    git("commit", "--quiet", "-m", "Release")
    git("tag", "-a", "v0.3.0", "-m", "Release")
    assert release.release_problems(checkout) == []


# What an index shows


@pytest.fixture(scope="module")
def metadata() -> Any:
    return ProjectMetadata(str(ROOT), PluginManager()).core


def test_the_description_has_no_link_into_the_repository(metadata: Any) -> None:
    text = metadata.readme
    links = re.findall(r"\]\(([^)\s]*)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    rendered = render(text)
    assert rendered is not None
    assert "<table>" in rendered
    assert "<img" not in rendered
    hrefs = re.findall(r'href="([^"]*)"', rendered)
    assert [href for href in hrefs if not href.startswith(("https://", "#", "mailto:"))] == []
    # All sections are there, up to the links at the end.
    source = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^## .*$", text, re.M) == re.findall(r"^## .*$", source, re.M)


def test_the_classifiers_name_what_is_tested(metadata: Any) -> None:
    prefix = "Programming Language :: Python :: 3."
    versions = {one[len(prefix) :] for one in metadata.classifiers if one.startswith(prefix)}
    (newer,) = [re.findall(r"python3\.(\d+)$", one)[0] for one in bounds_test.PACKAGES[:1]]
    assert versions == {metadata.requires_python.removeprefix(">=3."), newer}
    assert "Framework :: Jupyter :: JupyterLab :: Extensions :: Prebuilt" in metadata.classifiers
    lab = next(one for one in metadata.classifiers if re.fullmatch(r".*JupyterLab :: \d", one))
    package = json.loads((ROOT / "labextension/package.json").read_text("utf-8"))
    assert f"^{lab[-1]}." in package["dependencies"]["@jupyterlab/application"]


def test_the_addresses_are_those_of_one_repository_or_none(checkout: Path) -> None:
    stated = release.project_urls(ROOT)
    assert not stated or stated == _addresses_below(stated["Homepage"])
    before = tomllib.loads((checkout / "pyproject.toml").read_text())
    for repository in ("https://code.example.org/old/name", "https://code.example.org/new/name"):
        release.write_project_urls(checkout, repository)
        found = ProjectMetadata(str(checkout), PluginManager()).core.urls
        assert found == _addresses_below(repository)
        assert found["Issues"] == f"{repository}/issues"
    after = tomllib.loads((checkout / "pyproject.toml").read_text())
    del after["project"]["urls"]
    before["project"].pop("urls", None)
    assert after == before


def _addresses_below(repository: str) -> dict[str, str]:
    return {name: repository + path for name, path in release.PROJECT_URLS.items()}


@pytest.mark.parametrize("text", ["http://a.org/b", "https://a.org", 'https://a.org/"\n[x]', "a/b"])
def test_another_address_of_the_project_is_refused(checkout: Path, text: str) -> None:
    with pytest.raises(SystemExit, match="is not an address like"):
        release.write_project_urls(checkout, text)


# The index of the rehearsal


def test_the_index_keeps_and_lists_what_is_uploaded(tmp_path: Path) -> None:
    boundary = "part"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="content"; filename="../a-1.whl"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\nwheel\r\n--{boundary}--\r\n"
    ).encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    with release.local_index(tmp_path) as address:
        assert address.startswith("http://127.0.0.1:")
        request = urllib.request.Request(address, body, kind)
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="409"):
            urllib.request.urlopen(request, timeout=30)
        with urllib.request.urlopen(f"{address}{release.PROJECT}/", timeout=30) as answer:
            listed = answer.read().decode()
        (link,) = re.findall(r'href="/(files/a-1\.whl)#sha256=\w{64}"', listed)
        with urllib.request.urlopen(address + link, timeout=30) as answer:
            assert answer.read() == b"wheel"
        for path in ("other/", "files/../secret", "files/b"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(address + path, timeout=30)
    assert [file.name for file in tmp_path.iterdir()] == ["a-1.whl"]


# The bill of materials


def component(name: str, version: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": f"{name}=={version}", "name": name, "version": version}


def test_the_bill_has_what_the_wheel_requires_and_the_front_end_bundles() -> None:
    environment = {
        "metadata": {"component": {"bom-ref": "root", "name": "jupyter-submarine"}},
        "components": [
            component("requests", "1"), component("urllib3", "2"), component("pytest", "3"),
            component("Click", "4"),
        ],
        "dependencies": [
            {"ref": "root", "dependsOn": ["requests==1", "pytest==3"]},
            {"ref": "requests==1", "dependsOn": ["urllib3==2", "pytest==3"]},
            {"ref": "pytest==3"},
            {"ref": "urllib3==2"},
        ],
    }  # fmt: skip
    project = {
        "dependencies": ["requests>=1", "not-installed; python_version < '3'"],
        "optional-dependencies": {"more": ["click"]},
    }
    packages = [{"name": "@scope/css", "versionInfo": "7.1", "licenseId": "MIT"}]
    found = sbom.bill(environment, project, "1.2.3", {"packages": packages})
    scopes = {one["bom-ref"]: one["scope"] for one in found["components"]}
    assert scopes == {
        "requests==1": "required",
        "urllib3==2": "required",
        "Click==4": "optional",
        "npm:@scope/css@7.1": "required",
    }
    assert found["metadata"]["component"]["version"] == "1.2.3"
    assert found["components"][-1]["purl"] == "pkg:npm/%40scope/css@7.1"
    assert found["dependencies"][0]["dependsOn"] == ["npm:@scope/css@7.1", "requests==1"]
    assert {"ref": "requests==1", "dependsOn": ["urllib3==2"]} in found["dependencies"]


def test_a_requirement_that_is_not_installed_is_named() -> None:
    with pytest.raises(SystemExit, match="no-such-package-here is not installed"):
        sbom.required(["no-such-package-here>=1"])
