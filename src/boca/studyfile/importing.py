"""Import paths, `package.module:name`, as a study file has them: its own folder is searched first."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from boca.domain.errors import InvalidInput

# Folders of study files that are on the path: each may have an objective.py, and that of the latest file is meant.
_folders: set[str] = set()


def imported(path: str, what: str, folder: str) -> Any:
    """Return the object at an import path, or say which part of the path does not exist; `what` is the key of the file.

    The folder stays on `sys.path`, so that a worker process finds the module of a pickled function too.
    """
    module_name, _, name = path.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), *name.split(".")]):
        raise InvalidInput(f"{what} must be an import path such as 'package.module:name'; got {path!r}.")
    beside = _prefer(folder)
    module = _module(module_name, path, what, beside)
    _check_origin(module_name.partition(".")[0], path, what, folder, beside)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            hint = nearest(part, (name for name in dir(found) if not name.startswith("_")))
            raise InvalidInput(f"{what} {path!r} does not exist: {module_name!r} has no {part!r}{hint}.") from error
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known name that is most similar, or nothing if none is."""
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _prefer(folder: str) -> set[str]:
    """Put a folder first on the path, unload modules of the same names from other folders, and return the names."""
    if sys.path[:1] != [folder]:
        sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
    importlib.invalidate_caches()
    beside = {module.name for module in pkgutil.iter_modules([folder])}
    others = {os.path.realpath(other) for other in _folders - {folder}}
    for name in beside & set(sys.modules):
        if _home(sys.modules[name]) in others - {os.path.realpath(folder)}:
            for loaded in [key for key in sys.modules if key.partition(".")[0] == name]:
                del sys.modules[loaded]
    _folders.add(folder)
    return beside


def _home(module: ModuleType) -> str | None:
    """Return the folder from which a top-level module or package was imported."""
    file: str | None = getattr(module, "__file__", None)
    if file is None:
        return None
    is_package = hasattr(module, "__path__")
    return os.path.realpath(os.path.dirname(os.path.dirname(file) if is_package else file))


def _module(name: str, path: str, what: str, beside: set[str]) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            hint = nearest(name, beside)
            raise InvalidInput(f"{what} {path!r} does not exist: there is no module {error.name!r}{hint}.") from error
        raise InvalidInput(f"{what} {path!r} cannot be imported: {_described(error)}.") from error
    except (Exception, SystemExit) as error:  # a script that was not written to be imported may raise anything
        raise InvalidInput(f"{what} {path!r} cannot be imported: {_described(error)}.") from error


def _described(error: BaseException) -> str:
    """Return an exception in one line, with the line of the user's code that raised it."""
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    if isinstance(error, SyntaxError) or len(frames) < 2:  # the first frame is in boca; a SyntaxError has its own line
        return words
    return f"{words} ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})"


def _check_origin(name: str, path: str, what: str, folder: str, beside: set[str]) -> None:
    """Refuse a module beside the file if Python has loaded another one of the same name."""
    home = _home(sys.modules[name])
    if name in beside and home != os.path.realpath(folder):
        raise InvalidInput(
            f"{what} {path!r} names a module that Python has already loaded from another place: {name!r} from "
            f"{home or 'Python itself'}. Rename {name}.py."
        )
