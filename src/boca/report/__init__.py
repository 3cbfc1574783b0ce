"""A study as one HTML file for any browser: what was searched and found, what it cost, plots, every trial.

The file needs no network, and neither the objective nor the cost function.
"""

from __future__ import annotations

from pathlib import Path

from boca.domain.errors import InvalidInput
from boca.domain.space import finite_number
from boca.plots.study import load, study
from boca.report import page, sentences
from boca.study.storage.reader import refuse_to_replace

__all__ = ["html", "load", "warnings", "write"]


def html(source: object, *, optimum: float | None = None) -> str:
    """Return the report of an `Optimizer`, a `Result`, or what `load(url, name)` returns, as a page."""
    return page.page(study(source), optimum=None if optimum is None else finite_number(optimum, "optimum"))


def warnings(source: object) -> list[str]:
    """Return the warnings of the report as sentences: what to know before trusting the results."""
    return sentences.warnings(study(source))


def write(source: object, path: str | Path, *, optimum: float | None = None) -> Path:
    """Write the report to a file and return its path; with a known `optimum`, it shows the regret too."""
    try:
        file = Path(path)
    except TypeError:
        raise InvalidInput(f"path must be a string or a Path; got {path!r}.") from None
    refuse_to_replace(file, "The report")
    content = html(source, optimum=optimum)
    try:
        file.write_text(content, encoding="utf-8", errors="replace")  # a name may hold half of a surrogate pair
    except OSError as error:
        raise InvalidInput(
            f"The report cannot be written to {file}: {error.strerror}. Pass a path that can be written."
        ) from error
    return file
