"""From what a user writes to the URL of a database: the one place where a file becomes a URL."""

from __future__ import annotations

import re

import sqlalchemy as sa

from boca.domain.errors import InvalidInput


def location(text: str) -> str:
    """Return the URL of a storage, which is given as such or as the file of a SQLite database."""
    if not isinstance(text, str):
        raise InvalidInput(f"storage is {text!r}, and must be a file or a URL, such as 'sqlite:///study.db'.")
    return text if "://" in text else file_url(text)


def file_url(path: str, *, driver: str = "sqlite", query: str = "") -> str:
    """Return the URL of a file, quoted only where it has to be: versions of SQLAlchemy differ in what they unquote."""
    for url in (f"{driver}:///{path}", sa.URL.create(driver, database=path).render_as_string()):
        if sa.make_url(url).database == path:
            return f"{url}?{query}" if query else url
    raise InvalidInput(f"The path {path!r} cannot be part of a URL, as that of a storage must. Rename the file.")


URLS = "a URL: 'sqlite:///study.db' or 'postgresql+psycopg://user@host/name' (pip install 'boca[postgres]')"


def parsed(url: str) -> sa.URL:
    """Return a URL in its parts, or say what one looks like."""
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise InvalidInput(f"storage is {without_password(url)!r}, and must be {URLS}. It says: {error}.") from error


def sqlite_path(url: str) -> str | None:
    """Return the file of a URL of SQLite; None for other databases and for one in memory."""
    parts = parsed(url)
    is_file = parts.get_backend_name() == "sqlite" and parts.database not in (None, "", ":memory:")
    return parts.database if is_file else None


def without_password(url: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)
