"""Render a job as HTML without scripts or external resources, with inline styles.

The card uses the colours of the page and half-transparent colours, so it is readable in light and
dark themes. Without styles, which GitHub removes, it is a heading, a table and preformatted text.
"""

from __future__ import annotations

from collections.abc import Mapping

from submarine_jobs.display import status, summary, task_rows, task_table, timeline
from submarine_jobs.display.columns import STATE_COLOURS
from submarine_jobs.display.failure import failure_html
from submarine_jobs.display.plain import LOG_LINES
from submarine_jobs.display.sanitized_record import sanitize_view
from submarine_jobs.model import JobView
from submarine_jobs.text import ansi, duration, escape_html, escape_html_line, web_link
from submarine_runtime.protocol import JobRecord
from submarine_runtime.translation import _

PHASE_COLOURS = {
    "upload": "#8b949e",
    "queue": "#d29922",
    "master start": "#e3b341",
    "containers": "#f0883e",
    "localizing": "#a371f7",
    "start": "#bc8cff",
    "first line": "#79c0ff",
    "run": "#2f81f7",
    "save": "#3fb9a9",
}
_CARD = (
    "border:1px solid rgba(127,127,127,.35);border-left:4px solid {colour};border-radius:6px;"
    "padding:10px 14px;margin:4px 0;max-width:860px;font-size:13px;line-height:1.5;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
)
_BADGE = (
    "background-color:{colour};color:#ffffff;border-radius:10px;padding:1px 9px;font-size:11px;"
    "letter-spacing:.03em"
)
#: Style of terminal text: a dark box in light and dark themes.
BOX = (
    "background-color:#1b1f24;color:#d4d4d4;color-scheme:dark;border-radius:4px;"
    "padding:8px 10px;margin:4px 0 0 0;"
    "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px;"
    "line-height:1.4;overflow-x:auto;white-space:pre"
)
_QUIET = "opacity:.72"
_LABEL = (
    "text-align:left;vertical-align:top;padding:1px 14px 1px 0;font-weight:normal;opacity:.72;"
    "border:none;background:none;white-space:nowrap"
)
_VALUE = (
    "text-align:left;vertical-align:top;padding:1px 0;border:none;background:none;"
    "overflow-wrap:anywhere"
)


def html(
    view: JobView, *, now: float | None = None, result: Mapping[str, str] | None = None
) -> str:
    """Return the card of a job; for the arguments see ``plain.text``."""
    view = sanitize_view(view)
    record = view.record
    parts = [
        f'<div class="tex2jax_ignore mathjax_ignore" '
        f'style="{_CARD.format(colour=STATE_COLOURS[record.state])}">',
        _header(view, now),
        _sentence(view),
        _progress(record),
        _phase_bar(view, now),
        _tasks(view, now),
        _facts(view, now, result or {}),
        _links(record),
        _notes(view),
        _timeline(record),
        _failure(view),
        _log(view),
        "</div>",
    ]
    return "\n".join(part for part in parts if part)


def _header(view: JobView, now: float | None) -> str:
    record = view.record
    took = summary.format_elapsed(view, now)
    after = f' <span style="{_QUIET}">{took}</span>' if took else ""
    badge = _BADGE.format(colour=STATE_COLOURS[record.state])
    return (
        f'<div><strong style="font-size:15px">{escape_html_line(record.name, 100)}</strong> &nbsp;'
        f'<strong style="{badge}">{record.state.value}</strong>{after} '
        f"&nbsp;<code>{escape_html_line(record.job_id, 100)}</code></div>"
    )


def _sentence(view: JobView) -> str:
    step = escape_html_line(status.next_step(view))
    after = f' <span style="{_QUIET}">{step}</span>' if step else ""
    return f'<div style="margin:4px 0">{escape_html_line(status.sentence(view))}{after}</div>'


def _progress(record: JobRecord) -> str:
    done = summary.progress(record)
    if done is None or record.state.ended:
        return ""
    return (
        f'<div style="margin:6px 0"><div style="{_TRACK}"><div style="width:{done:.1%};'
        f'height:8px;background-color:{STATE_COLOURS[record.state]}"></div></div> {done:.0%}</div>'
    )


_TRACK = (
    "display:inline-block;vertical-align:middle;width:70%;height:8px;border-radius:4px;"
    "overflow:hidden;background-color:rgba(127,127,127,.25)"
)


def _phase_bar(view: JobView, now: float | None) -> str:
    """Return a bar with one segment for each phase, and its legend."""
    phases = summary.phases(view, now)
    if not phases:
        return ""
    total = sum(phase.alone for phase in phases) or 1.0
    segments, words = [], []
    for phase in phases:
        colour = PHASE_COLOURS.get(phase.name, "#8b949e")
        share = max(phase.alone / total * 100, 0.4)
        segments.append(
            f'<div style="display:inline-block;height:5px;width:{share:.1f}%;'
            f'max-width:100%;background-color:{colour}"></div>'
        )
        so_far = "…" if phase.open else ""
        words.append(
            f'<span style="white-space:nowrap"><span style="color:{colour}">■</span> '
            f"{escape_html_line(phase.name, 40)} {duration(phase.seconds)}{so_far}</span>"
        )
    bar = (
        '<div style="height:5px;line-height:0;font-size:0;white-space:nowrap;overflow:hidden;'
        f'border-radius:3px;margin:6px 0 3px 0">{"".join(segments)}</div>'
    )
    return f'{bar}<div style="font-size:12px;{_QUIET}">{" &nbsp;".join(words)}</div>'


def _facts(view: JobView, now: float | None, result: Mapping[str, str]) -> str:
    rows = [(escape_html_line(label), escape_html_line(v)) for label, v in summary.facts(view, now)]
    rows += [
        (
            _("Returned {name}").format(name=escape_html_line(name, 80)),
            f"<code>{escape_html_line(value, 200)}</code>",
        )
        for name, value in list(result.items())[:20]
    ]
    if not rows:
        return ""
    body = "".join(
        f'<tr style="background:none;border:none"><th style="{_LABEL}">{label}</th>'
        f'<td style="{_VALUE}">{value}</td></tr>'
        for label, value in rows
    )
    style = "border:none;border-collapse:collapse;margin:6px 0 2px 0;font-size:12px"
    return f'<table style="{style}"><tbody>{body}</tbody></table>'


def _tasks(view: JobView, now: float | None) -> str:
    if not task_rows.many(view.record):
        return ""
    return task_table.html(view.record, summary.now_of(view, now))


def _timeline(record: JobRecord) -> str:
    entries, older = timeline.timeline(record)
    if not entries:
        return ""
    words = _("… {older} earlier").format(older=older)
    first = f'<div style="{_QUIET}">{words}</div>' if older else ""
    lines = "".join(
        f'<div><span style="{_QUIET}">{escape_html_line(m.when, 40)} &nbsp;'
        f"{escape_html_line(m.word, 40)}"
        f"</span> &nbsp;{escape_html_line(m.sentence, 300)}</div>"
        for m in entries
    )
    return f'<div style="font-size:12px;margin-top:6px">{first}{lines}</div>'


def _links(record: JobRecord) -> str:
    shown = []
    for label, url in list(record.links.items())[:8]:
        words = escape_html_line(label, 80)
        if link := web_link(url):
            shown.append(
                f'<a href="{escape_html(link, 2000)}" target="_blank" rel="noopener noreferrer">'
                f"{words}</a>"
            )
        else:
            shown.append(f"{words}: {escape_html_line(url, 300)}")
    return f'<div style="font-size:12px">{" · ".join(shown)}</div>' if shown else ""


def _notes(view: JobView) -> str:
    return "".join(
        f'<div style="font-size:12px;{_QUIET}">{label}: {escape_html_line(words)}</div>'
        for label, words in summary.notes(view)
    )


def _failure(view: JobView) -> str:
    record = view.record
    if record.failure is None:
        return ""
    task = summary.failing(view)
    words = (
        _("Traceback of {task} (most recent call last)")
        if task
        else _("Traceback (most recent call last)")
    )
    head = words.format(task=escape_html_line(task, 60))
    return (
        f'<div style="margin-top:6px">{head}</div>'
        f'<pre style="{BOX};border-left:3px solid #c62828">{failure_html(record.failure)}</pre>'
    )


def _log(view: JobView) -> str:
    shown = ansi.to_html(view.tail, lines=LOG_LINES)
    if not shown:
        return ""
    words = _("Log of {task}, last lines") if view.task else _("Log, last lines")
    head = words.format(task=escape_html_line(view.task, 60))
    return (
        f'<details open><summary style="margin-top:6px;{_QUIET}">{head}</summary>\n'
        f'<pre style="{BOX}">{shown}</pre></details>'
    )
