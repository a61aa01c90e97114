"""HTML of the job's page on YARN: the job, its tasks, its files and links.

The page has no script. Every value comes from programs, users or the cluster: it is escaped, its
length is limited, and only http and https become links.
"""

from __future__ import annotations

import time
from html import escape
from typing import Any, Iterator, Mapping, Sequence
from urllib.parse import quote

from submarine_runtime.translation import _

#: Seconds between two loads of the page while the job is active.
REFRESH_SECONDS = 5
MAX_TEXT, MAX_URL, MAX_TRACEBACK = 300, 2000, 8000
MAX_LINKS, MAX_FILES, MAX_NOTES = 30, 30, 20
#: Tasks in the table; those that have not succeeded come first where there are more.
MAX_TASKS = 200
#: Columns whose cells may be broken within a word.
_LONG = ("State", "Node", "Container", "Image")
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")

_STYLE = """
*{box-sizing:border-box}
body{margin:0;background:#f5f6f8;color:#1f2933;font:14px/1.5 system-ui,sans-serif}
main{max-width:1600px;margin:0 auto;padding:20px 24px 40px}
h1{font-size:22px;margin:0;overflow-wrap:anywhere}
h2{font-size:15px;margin:0 0 10px}
header{display:flex;gap:12px;align-items:center;flex-wrap:wrap;margin-bottom:4px}
section{background:#fff;border:1px solid #dde2e8;border-radius:8px;
padding:14px 16px;margin-top:14px}
.state{display:inline-block;border-radius:10px;padding:1px 9px;font-size:12px;font-weight:600;
background:#e4e7eb;color:#3e4c59;white-space:nowrap}
.RUNNING,.STARTING,.FINISHING{background:#dbeafe;color:#1e4fa3}
.SUCCEEDED{background:#d8f3e0;color:#15673a}
.FAILED{background:#fde2e1;color:#a61b1b}
.detail{margin:2px 0 0;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(220px,1fr));gap:10px 20px;margin:0}
dt{color:#616e7c;font-size:12px}
dd{margin:0;overflow-wrap:anywhere}
progress{width:70%;height:10px;vertical-align:middle}
table{border-collapse:collapse;width:100%;font-size:13px}
th{text-align:left;color:#616e7c;font-weight:600;font-size:12px;border-bottom:1px solid #dde2e8}
th,td{padding:6px 10px 6px 0;vertical-align:top}
tbody tr+tr td{border-top:1px solid #eef1f4}
td{white-space:nowrap}
.long{white-space:normal;overflow-wrap:anywhere;min-width:80px}
td progress{width:60px}
.id{font:12px/1.6 ui-monospace,monospace}
.muted{color:#616e7c}
ul{margin:0;padding-left:18px;overflow-wrap:anywhere}
pre{margin:0;overflow:auto;max-height:30em;font:12px/1.5 ui-monospace,monospace}
a{color:#1e4fa3}
@media (max-width:1100px){
main{padding:14px}
thead{display:none}
tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(165px,1fr));
gap:6px 14px;padding:10px 0}
tbody tr+tr{border-top:1px solid #dde2e8}
td,tbody tr+tr td{border:0;padding:0;white-space:normal}
.none{display:none}
td::before{content:attr(data-name);display:block;color:#616e7c;font-size:11px}
}
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{refresh}
<title>{title}</title><style>{style}</style></head><body><main>
{body}</main></body></html>
"""


def render_page(job: Mapping[str, Any]) -> bytes:
    """Return the page of a job as HTML.

    Parameters
    ----------
    job
        The job's record as JSON values, and ``images`` (role -> Docker image) and ``file_browser``
        (URL before the path of a directory); every value is untrusted.
    """
    state = _text(job.get("state"))
    title = _text(job.get("name") or job.get("job_id") or "job")
    detail = job.get("pending") or job.get("detail")
    body = [
        f"<header><h1>{title}</h1>{_state(job.get('state'))}</header>",
        f'<p class="detail">{_text(detail, MAX_URL)}</p>' if detail else "",
        _section("", _facts(job)),
        _section("Tasks", _tasks(job)),
        _section("Error", _failure(job.get("failure"))),
        _section("Warnings", _list(_text(one, MAX_URL) for one in _sequence(job, "warnings"))),
        _section("Saved files", _list(_files(job))),
        _section("Links", _list(_links(job))),
    ]
    refresh = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
    page = _PAGE.format(
        refresh="" if state in _ENDED else refresh,
        title=f"{title} - {state}",
        style=_STYLE,
        body="\n".join(filter(None, body)),
    )
    return page.encode("utf-8", "replace")


def _section(title: str, content: str) -> str:
    head = f"<h2>{title}</h2>" if title else ""
    return f"<section>{head}{content}</section>" if content else ""


def _list(items: Iterator[str]) -> str:
    found = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{found}</ul>" if found else ""


def _facts(job: Mapping[str, Any]) -> str:
    created, finished = _number(job.get("created")), _number(job.get("finished"))
    facts = {
        "Progress": _progress(job.get("progress")) or _("not reported"),
        "Job": _text(job.get("job_id")),
        "User": _text(job.get("user")),
        "Queue": _text(job.get("queue")),
        "Application": _text(job.get("application_id")),
        "Submitted (UTC)": _time(created),
        "Ended (UTC)": _time(finished),
        "Time": "" if created is None else _duration((finished or time.time()) - created),
        "Reason": _text(job.get("reason")),
    }
    found = "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items() if v)
    return f"<dl>{found}</dl>"


def _tasks(job: Mapping[str, Any]) -> str:
    tasks = [one for one in _sequence(job, "tasks") if isinstance(one, Mapping)]
    shown = tasks
    if len(tasks) > MAX_TASKS:
        shown = sorted(tasks, key=lambda task: task.get("state") == "SUCCEEDED")[:MAX_TASKS]
    columns = [_columns(job, task) for task in shown]
    # A column without any value is left out: most clusters run no images.
    names = [name for name in (columns or [{}])[0] if any(row[name] for row in columns)]
    if not names:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(
        f"<tr>{''.join(_cell(name, row[name]) for name in names)}</tr>" for row in columns
    )
    more = ""
    if len(tasks) > len(shown):
        sentence = _("{shown} of {count} tasks are shown.").format(
            shown=len(shown), count=len(tasks)
        )
        more = f'<p class="muted">{sentence}</p>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(name: str, content: str) -> str:
    kind = ("long" if name in _LONG else "") if content else "none"
    mark = f' class="{kind}"' if kind else ""
    return f'<td data-name="{name}"{mark}>{content or "&ndash;"}</td>'


def _columns(job: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a task by the head of their column."""
    role, since = str(task.get("role")), _number(job.get("created"))
    size = _mapping(_mapping(_mapping(job, "resources"), "requested"), role)
    log = str(task.get("log_url") or "")
    state = _state(task.get("state"))
    note = " ".join(str(task.get(key) or "") for key in ("reason", "detail")).strip()
    if note:
        state += f'<div class="muted">{_text(note)}</div>'
    return {
        "Task": _text(task.get("task")),
        "Role": _text(task.get("role")),
        "State": state,
        "Node": _text(task.get("host")),
        "Container": _id(task.get("container_id")),
        "Image": _text(_mapping(job, "images").get(role)),
        "CPU": _lines(
            _amount(size.get("vcores"), "vcores", "vcore"), _cpu(task.get("cpu_seconds"))
        ),
        "Memory": _memory(task, size),
        "GPUs": _gpus(task, size),
        "Started (UTC)": _time(_number(task.get("started")), since),
        "Finished (UTC)": _time(_number(task.get("finished")), since),
        "Progress": _progress(task.get("progress")),
        "Restarts": _text(task.get("restarts") or ""),
        "Log": _link("log", log) if _is_link(log) else "",
    }


def _cpu(value: Any) -> str:
    seconds = _number(value)
    return "" if seconds is None else f"{seconds:.0f} s used"


def _memory(task: Mapping[str, Any], size: Mapping[str, Any]) -> str:
    now, peak = _number(task.get("memory_now")), _number(task.get("memory_peak"))
    used = "" if now is None else f"{now:.0f} MiB used"
    most = "" if peak is None else f"{peak:.0f} MiB peak"
    return _lines(_amount(size.get("memory"), "MiB"), used, most)


def _gpus(task: Mapping[str, Any], size: Mapping[str, Any]) -> str:
    percent, memory = _number(task.get("gpu_percent")), _number(task.get("gpu_memory"))
    return _lines(
        _amount(size.get("gpus"), "GPUs", "GPU"),
        "" if percent is None else f"{percent:.0f} % used",
        "" if memory is None else f"{memory:.0f} MiB",
    )


def _failure(failure: Any) -> str:
    if not isinstance(failure, Mapping):
        return ""
    text = failure.get("text") or f"{failure.get('type')}: {failure.get('message')}"
    return f"<pre>{escape(str(text)[-MAX_TRACEBACK:])}</pre>"


def _files(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield the saved model, the published outputs and the job directory."""
    browser, directory = str(job.get("file_browser") or ""), str(job.get("job_dir") or "")
    found = [
        (one.get("name"), one.get("uri"))
        for one in _sequence(job, "saved_outputs")
        if isinstance(one, Mapping)
    ]
    outputs = (one for one in _sequence(job, "outputs") if isinstance(one, Mapping))
    if any(str(one.get("path")).startswith("model/") for one in outputs):
        found.append(("model", f"{directory}/model"))
    if directory:
        found.append(("job directory", directory))
    for name, uri in found[:MAX_FILES]:
        scheme, mark, rest = str(uri).partition("://")
        path = rest[rest.find("/") :] if mark else scheme
        if browser and scheme in ("hdfs", path) and path.startswith("/"):
            yield f"{_text(name)}: {_link(str(uri), browser + quote(path))}"
        else:
            yield f"{_text(name)}: {_text(uri)}"


def _links(job: Mapping[str, Any]) -> Iterator[str]:
    for label, url in list(_mapping(job, "links").items())[:MAX_LINKS]:
        address = str(url)
        yield _link(label, address) if _is_link(address) else f"{_text(label)}: {_text(url)}"


def _is_link(url: str) -> bool:
    return url.startswith(("http://", "https://")) and len(url) <= MAX_URL


def _link(label: Any, url: str) -> str:
    return f'<a rel="noreferrer" href="{escape(url)}">{_text(label)}</a>'


def _state(state: Any) -> str:
    text = _text(state)
    return f'<span class="state {text if text.isalpha() else ""}">{text}</span>' if text else ""


def _progress(value: Any) -> str:
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        return ""
    return f'<progress max="1" value="{number:.3f}"></progress> {100 * number:.0f} %'


def _id(value: Any) -> str:
    """Return an identifier that may be broken at its underscores."""
    text = _text(value).replace("_", "_<wbr>")
    return f'<span class="id">{text}</span>' if text else ""


def _lines(*texts: str) -> str:
    return "<br>".join(filter(None, texts))


def _amount(value: Any, unit: str, single: str = "") -> str:
    return f"{_text(value)} {single if single and value == 1 else unit}" if value else ""


def _time(moment: float | None, since: float | None = None) -> str:
    """Return a time in UTC, without the date if it is that of ``since``."""
    if moment is None or not 0 < moment < 1e11:
        return ""
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment))
    return text[11:] if since is not None and text[:11] == _time(since)[:11] else text


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _text(value: Any, limit: int = MAX_TEXT) -> str:
    return escape(str("" if value is None else value)[:limit])


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def _mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, Mapping) else {}


def _sequence(values: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = values.get(key)
    return value[:100_000] if isinstance(value, (list, tuple)) else []
