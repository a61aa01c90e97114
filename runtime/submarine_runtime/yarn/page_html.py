"""The job's page as HTML: script-free, everything escaped, links only to http and https."""

from __future__ import annotations

from html import escape
from typing import Any, Mapping

REFRESH_SECONDS = 5
MAX_TEXT = 300
MAX_LINKS = 30

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{refresh}">
<title>{title}</title><style>
body {{ font: 15px/1.5 sans-serif; margin: 2em; max-width: 50em; color: #222; }}
th {{ text-align: left; padding-right: 1.5em; font-weight: 600; vertical-align: top; }}
progress {{ width: 20em; vertical-align: middle; }}
</style></head><body><h1>{title}</h1><table>{rows}</table>{links}</body></html>
"""


def page(job: Mapping[str, Any]) -> bytes:
    """The page of a job.

    Parameters
    ----------
    job
        ``job_id name state detail progress task host log_url links``; every value is untrusted.
    """
    rows = [_row("State", _text(job.get("state"))), _row("Progress", _progress(job))]
    for label, key in (("Detail", "detail"), ("Job", "job_id"), ("Task", "task"), ("Host", "host")):
        if job.get(key):
            rows.append(_row(label, _text(job[key])))
    links = job.get("links")
    named = dict(links) if isinstance(links, Mapping) else {}
    if job.get("log_url"):
        named = {"Log of the task": job["log_url"], **named}
    items = "".join(_link(label, url) for label, url in list(named.items())[:MAX_LINKS])
    text = _PAGE.format(
        refresh=REFRESH_SECONDS,
        title=_text(job.get("name") or job.get("job_id") or "job"),
        rows="".join(rows),
        links=f"<h2>Links</h2><ul>{items}</ul>" if items else "",
    )
    return text.encode("utf-8", "replace")


def _row(label: str, value: str) -> str:
    return f"<tr><th>{label}</th><td>{value}</td></tr>"


def _text(value: Any) -> str:
    return escape(str(value or "")[:MAX_TEXT])


def _progress(job: Mapping[str, Any]) -> str:
    value = job.get("progress")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        return "not reported"
    return f'<progress max="1" value="{value:.3f}"></progress> {100 * value:.0f} %'


def _link(label: Any, url: Any) -> str:
    address = str(url)
    if not address.startswith(("http://", "https://")) or len(address) > 2000:
        return f"<li>{_text(label)}: {_text(address)}</li>"
    return f'<li><a rel="noreferrer" href="{escape(address)}">{_text(label)}</a></li>'
