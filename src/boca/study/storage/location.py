"""From what a person writes to the URL of a database: the one place where a file becomes a URL."""

from __future__ import annotations

import sqlalchemy as sa

from boca.domain.errors import InvalidInput


def location(text: str) -> str:
    """Return the URL of a storage, which is given as such or as the file of a SQLite database."""
    if not isinstance(text, str):
        raise InvalidInput(f"The storage must be a URL such as 'sqlite:///study.db', or a file; got {text!r}.")
    return text if "://" in text else file_url(text)


def file_url(path: str, *, driver: str = "sqlite", query: str = "") -> str:
    """Return the URL of a file, quoted only where it has to be: versions of SQLAlchemy differ in what they unquote."""
    for url in (f"{driver}:///{path}", sa.URL.create(driver, database=path).render_as_string()):
        if sa.make_url(url).database == path:
            return f"{url}?{query}" if query else url
    raise InvalidInput(f"storage must be a file whose path can be part of a URL; got {path!r}.")
