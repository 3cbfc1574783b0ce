"""The page of the report: one file that loads nothing and runs only its own two scripts.

Names, options and reasons may hold anything.  Text is escaped.  Plotly's library and the numbers of the figures are
packed, as letters and digits: they are most of the file.  The browser unpacks them.  The content policy of the page, by
the hashes of its scripts, keeps a browser from running or fetching anything else, the unpacked library included.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from boca.domain.html import ends
from boca.domain.trial import Trial
from boca.domain.words import option, point, readable, text
from boca.plots.axis import Note
from boca.plots.study import StudyView
from boca.report import figures, sentences
from boca.report.feasible_figure import causes
from boca.report.library import plotly
from boca.report.traces import Figure, Picture

MAX_ROWS = 1000  # of the table of trials, which is then cut in the middle: it would be most of the file
_MAX_SENTENCE = 600  # characters of a reason, an error or a warning
_MAX_HEAD = 24  # characters of a name above a column
_MAX_OPTION = 60  # characters of a value in a row

# Plotly has a button that sends a chart to its maker's server. A study stays on this machine.
_DRAW = """
const settings = {responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud", "select2d", "lasso2d"]};
async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
async function draw() {
  const library = document.createElement("script");
  library.textContent = await unpack("library");
  document.body.append(library);
  const { words, figures } = JSON.parse(await unpack("figures"));
  for (const [key, figure] of Object.entries(figures)) {
    for (const trace of figure.data) if (trace.words) trace.text = trace.words.map((place) => words[place]);
    Plotly.newPlot("figure-" + key, figure.data, figure.layout, settings);
  }
}
draw().catch((error) => {
  for (const plot of document.querySelectorAll(".plot")) plot.textContent = `This browser cannot draw it: ${error}`;
});
"""

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; margin: 0 auto; max-width: 75rem;
  padding: 1rem clamp(0.75rem, 3vw, 2rem); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0.5rem 0; } h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 0; } p { margin: 0.4rem 0; max-width: 48rem; } .dim { color: #555; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.4rem 1.2rem; margin: 0.8rem 0; }
dt { font-weight: 600; } dd { margin: 0; }
.warnings { border-left: 0.3rem solid #b35900; background: #fff7ee; padding: 0.4rem 1rem; }
.warnings ul { margin: 0.3rem 0; padding-left: 1.2rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figcaption { font-size: 0.85rem; color: #555; }
.plot { height: 20rem; } .note { border: 1px dashed #bbb; padding: 2rem 1rem; color: #555; text-align: center; }
.wide { overflow-x: auto; overflow-wrap: normal; } table { border-collapse: collapse; font-size: 0.85rem; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #ddd; }
th { white-space: nowrap; } td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.why { min-width: 22rem; } tr.failed td { color: #8a2b00; } tr.target td:first-child { font-weight: 700; }
pre { white-space: pre-wrap; font-size: 0.75rem; margin: 0.3rem 0; } summary { cursor: pointer; color: #555; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 0.6rem; } }
@media print { details { display: none; } .pictures { display: block; } }
"""


def page(study: StudyView, *, optimum: float | None = None) -> str:
    """Return the whole page."""
    library = plotly()
    drawn = list(figures.pictures(study, optimum))
    data = {picture.key: picture.figure for picture in drawn if isinstance(picture.figure, dict)}
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(_DRAW)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    title = f"Study {text(study.name)}"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<header><h1>{escape(title)}</h1><p class='dim'>{escape(_subtitle(study))}</p></header>",
            _section("found", "What was found", _definitions(sentences.findings(study))),
            _warnings(sentences.warnings(study)),
            _section("searched", "What was searched", _searched(study)),
            _section("pictures", "Plots", _pictures(drawn)),
            _failures(study),
            _section("trials", "Trials", _trials(study)),
            f'<script type="text/plain" id="library">{packed(library)}</script>',
            f'<script type="text/plain" id="figures">{packed(json.dumps(shared(data), allow_nan=False))}</script>',
            f"<script>{_DRAW}</script>\n</body>\n</html>\n",
        ]
    )


def shared(data: Mapping[str, Figure]) -> dict[str, Any]:
    """Return the figures with every text under the pointer once: a trial has the same one in most of them."""
    places: dict[str, int] = {}
    figures = {key: {**figure, "data": [_sharing(t, places) for t in figure["data"]]} for key, figure in data.items()}
    return {"words": list(places), "figures": figures}


def _sharing(trace: Figure, places: dict[str, int]) -> Figure:
    said = trace.get("text")
    if not isinstance(said, list) or not all(isinstance(words, str) for words in said):
        return trace
    rest = {key: value for key, value in trace.items() if key != "text"}
    return rest | {"words": [places.setdefault(words, len(places)) for words in said]}


def packed(words: str) -> str:
    """Return text in a form that takes a fraction of the space and cannot end a script."""
    return base64.b64encode(gzip.compress(words.encode(), 9, mtime=0)).decode()


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


# Parts ------------------------------------------------------------------------------------------------------------


def _subtitle(study: StudyView) -> str:
    counts = [f"{len(study.history)} trials"]
    for state in ("failed", "running"):
        n = sum(t.state == state for t in study.history)
        counts += [f"{n} {state}"] if n else []
    aim = "maximized" if study.problem.direction == "maximize" else "minimized"
    if study.problem.objectives:
        aim = text(study.problem.aims)
    return f"{aim}, {', '.join(counts)}"


def _section(key: str, title: str, content: str) -> str:
    return f'<section id="{key}"><h2>{escape(title)}</h2>\n{content}</section>'


def _definitions(pairs: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{escape(said)}</dd>\n" for term, said in pairs) + "</dl>"


def _warnings(found: Sequence[str]) -> str:
    if not found:
        return ""
    items = "".join(f"<li>{escape(text(warning, _MAX_SENTENCE))}</li>" for warning in found)
    return f'<section id="warnings" class="warnings"><h3>Warnings</h3><ul>{items}</ul></section>'


def _searched(study: StudyView) -> str:
    rows = [[text(name), sentences.kind(parameter), ""] for name, parameter in study.problem.space.items()]
    rows += [
        [f"{text(name)} (fidelity)", sentences.kind(parameter), option(study.problem.target[name])]
        for name, parameter in study.problem.fidelity.items()
    ]
    heads = ["parameter", "range", "target"] if study.problem.fidelity else ["parameter", "range"]
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row[: len(heads)]) + "</tr>\n" for row in rows
    )
    how = [("Constraint", text(constraint.words)) for constraint in study.problem.space.constraints]
    if study.settings:
        how.append(("Strategy", text(str(study.settings.get("type", "")).rpartition(".")[2])))
    if study.seed is not None:
        how.append(("Seed", str(study.seed)))
    settings = f"<details><summary>all settings</summary>{_pre(study.settings)}</details>" if study.settings else ""
    return f"<div class='wide'>{_table(heads, body)}</div>{_definitions(how) if how else ''}{settings}"


def _pictures(drawn: Sequence[Picture]) -> str:
    return "<div class='pictures'>" + "\n".join(_picture(picture) for picture in drawn) + "</div>"


def _picture(picture: Picture) -> str:
    if isinstance(picture.figure, Note):
        inside = f"<div class='note'>{escape(picture.figure.words)}</div>"
    else:
        inside = f"<div class='plot' id='figure-{escape(picture.key)}'></div>"
    return (
        f"<figure><h3>{escape(picture.title)}</h3>{inside}<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _failures(study: StudyView) -> str:
    rows = causes(study)
    return _section("failures", "Failures by cause", _definitions(rows)) if rows else ""


def _trials(study: StudyView) -> str:
    trials = study.history
    if not trials:
        return "<p>There are no trials yet.</p>"
    names = [*study.problem.space.names, *study.problem.fidelity]
    outcomes = list(study.problem.outcomes)
    heads = ["trial", "state", "value", "cost", *(text(name, _MAX_HEAD) for name in [*outcomes, *names]), "why"]
    rows = [_trial(study, trial) for trial in ends(trials, MAX_ROWS)]
    if len(trials) > MAX_ROWS:
        more = f"<tr><td colspan='{len(heads)}'>… {len(trials) - MAX_ROWS} more trials …</td></tr>"
        rows.insert(MAX_ROWS // 2, more)
    return f"<div class='wide'>{_table(heads, ''.join(rows))}</div>"


def _trial(study: StudyView, trial: Trial) -> str:
    at_target = study.problem.is_target(trial.z)
    kind = " ".join([trial.state, *(["target"] if at_target else [])])
    cells = [str(trial.number), trial.state, text(trial.value), readable(trial.cost)]
    cells += [text(trial.outcomes.get(name)) for name in study.problem.outcomes]
    queried = trial.x | trial.z
    names = (*study.problem.space.names, *study.problem.fidelity)
    cells += [option(queried[name], _MAX_OPTION) if name in queried else "" for name in names]
    plain = "".join(f"<td{_alignment(i)}>{escape(cell)}</td>" for i, cell in enumerate(cells))
    failed = f"Failed with: {text(trial.reason, _MAX_SENTENCE)}. " if trial.state == "failed" else ""
    noted = f" Notes: {text(point(trial.notes), _MAX_SENTENCE)}." if trial.notes else ""
    said = escape(failed + text(trial.why.get("reason"), _MAX_SENTENCE) + noted)
    numbers = {key: value for key, value in trial.why.items() if key != "reason"}
    return (
        f"<tr class='{escape(kind)}'>{plain}<td class='why'>{said}"
        f"<details><summary>in numbers</summary>{_pre(numbers)}</details></td></tr>\n"
    )


def _alignment(i: int) -> str:
    return " class='number'" if i in (0, 2, 3) else ""


def _table(heads: Sequence[str], body: str) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>"


def _pre(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False, default=str))}</pre>"
