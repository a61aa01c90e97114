"""Find what the libraries that a program imports require in the job's environment.

A subprocess of the job's interpreter reads the metadata of installed projects; no code of a package
runs. An interpreter that is not on this machine is not queried.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence

from submarine_jobs.checks.interpreter import run_script

#: Reads [modules, names of projects] and prints [module, project] for each requirement, direct or
#: through others. A requirement of an extra does not count: most users do not install it.
_SCRIPT = r"""
import json, re, sys
from importlib.metadata import PackageNotFoundError, distribution, distributions

def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()

def named(name):
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None

def files(found):
    listed = found.read_text("top_level.txt")
    return listed.split() if listed else [path.parts[0] for path in found.files or ()]

def required(first):
    reached, pending = set(), [first]
    while pending:
        for text in pending.pop().requires or ():
            name = normal(re.match(r"[\w.-]+", text).group())
            if name in reached or re.search(r";.*\bextra\b", text):
                continue
            reached.add(name)
            one = named(name)
            if one is not None:
                pending.append(one)
    return reached

modules, projects = json.load(sys.stdin)
owners = {module: named(normal(module)) for module in modules}
missing = {module for module in modules if owners[module] is None}
if missing:
    for one in distributions():
        for module in missing.intersection(files(one)):
            owners[module] = one
answer = []
for module in modules:
    if owners[module] is not None:
        found = required(owners[module])
        answer += [[module, project] for project in projects if project in found]
print(json.dumps(answer))
"""
#: Modules of other projects, which need no search; few programs import none of them.
_PLAIN = frozenset({"PIL", "cv2", "dateutil", "matplotlib", "sklearn", "yaml"})


def required_projects(
    python: str, modules: Iterable[str], projects: Sequence[str], timeout: float = 120.0
) -> Mapping[str, str]:
    """Return project -> the first of ``modules`` that requires it in the interpreter ``python``.

    Empty if the interpreter is not on this machine.

    Raises
    ------
    InterpreterError
        If it cannot be queried.
    """
    asked = sorted(set(modules) - _PLAIN)
    if not asked or shutil.which(python) is None:
        return {}
    answer = run_script(python, ["-B", "-c", _SCRIPT], json.dumps([asked, projects]), timeout)
    found: dict[str, str] = {}
    for item in answer:
        if isinstance(item, list) and len(item) == 2:
            found.setdefault(str(item[1]), str(item[0]))
    return found
