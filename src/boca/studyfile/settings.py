"""Set the fields of a dataclass, such as a strategy or a part of one, from a table of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from boca.domain.errors import InvalidInput
from boca.studyfile.importing import nearest

Table: TypeAlias = dict[str, Any]


def only(table: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Refuse an unknown key, and suggest the known one that it resembles."""
    allowed = list(known)
    for key in table:
        if key not in allowed:
            raise InvalidInput(
                f"{what} may have the keys {', '.join(allowed) or '(none)'}; got {key!r}{nearest(key, allowed)}."
            )


def configured(base: Any, settings: Table, what: str) -> Any:
    """Return a dataclass with these fields set; `base` is an instance, or a class, which is called."""
    kind = base if isinstance(base, type) else type(base)
    if settings and not is_dataclass(kind):
        raise InvalidInput(f"{what} may have settings only if it is a dataclass; got {settings!r} for {base!r}.")
    known = {f.name: f for f in fields(kind) if f.init} if is_dataclass(kind) else {}
    only(settings, known, what)
    values = {
        name: _setting(value, _hint(kind, name), getattr(base, name, None), f"{what}.{name}")
        for name, value in settings.items()
    }
    try:
        if isinstance(base, type):
            return base(**values)
        return replace(base, **values) if values else base
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from error
    except Exception as error:
        raise InvalidInput(f"{what} cannot be created with {settings!r}: {type(error).__name__}: {error}.") from error


def _hint(kind: type, name: str) -> Any:
    try:
        return get_type_hints(kind)[name]
    except Exception:  # the annotations of a strategy from outside may not resolve
        return Any


def _setting(value: Any, hint: Any, current: Any, what: str) -> Any:
    """Return the value of a field, or refuse one of a wrong type; a table sets the fields of a nested dataclass."""
    kinds = [k for k in (get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)) if k is not NoneType]
    for kind in kinds:
        if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
            return configured(current if isinstance(current, kind) else kind, value, what)
        if _fits(value, kind):
            return float(value) if kind is float else value
    raise InvalidInput(f"{what} must be {' or '.join(_words(kind) for kind in kinds)}; got {value!r}.")


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return isinstance(value, int | float) and abs(value) <= sys.float_info.max  # false for infinity and NaN
    plain = get_origin(kind) or kind
    return isinstance(plain, type) and isinstance(value, plain) and (plain is str or not isinstance(value, str))


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {list(get_args(kind))}"
    names = {bool: "true or false", int: "an integer", float: "a finite number", str: "a string"}
    plain = get_origin(kind) or kind
    if plain in names:
        return names[plain]
    if is_dataclass(plain) or plain is Mapping or plain is dict:
        return "a table"
    return f"a {getattr(plain, '__name__', plain)}"
