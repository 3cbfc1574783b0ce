"""Import paths: what they find, which folder comes first, and what is said of those that lead nowhere."""

from __future__ import annotations

import sys

import pytest

from boca.domain.errors import InvalidInput
from boca.studyfile import importing
from boca.studyfile.importing import imported, nearest


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Leave path and modules as they were."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(importing, "_folders", set())
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def folder(path, **modules):
    path.mkdir(exist_ok=True)
    for name, text in modules.items():
        (path / f"{name}.py").write_text(text)
    return str(path)


def test_an_object_is_found_through_packages_and_attributes(tmp_path):
    (tmp_path / "pack_a").mkdir()
    folder(tmp_path / "pack_a", __init__="", deep="class Model:\n    @staticmethod\n    def score(): return 3.0")
    assert imported("pack_a.deep:Model.score", "objective", str(tmp_path))() == 3.0


def test_two_folders_may_each_have_a_module_of_the_same_name(tmp_path):
    one, two = (folder(tmp_path / name, obj_b=f"value = {name!r}") for name in ("one", "two"))
    for expected, place in (("one", one), ("two", two), ("one", one)):
        assert imported("obj_b:value", "objective", place) == expected
        assert sys.path[0] == place


def test_a_module_of_the_same_folder_is_not_loaded_twice(tmp_path):
    place = folder(tmp_path, obj_c="kept = []")
    imported("obj_c:kept", "objective", place).append(1)
    assert imported("obj_c:kept", "cost", place) == [1]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("obj_d", "objective must be an import path such as 'package.module:name'; got 'obj_d'."),
        ("obj_d:", "must be an import path"),
        ("a/b:c", "must be an import path"),
        ("obj:value", "objective 'obj:value' does not exist: there is no module 'obj' (did you mean 'obj_d'?)."),
        ("obj_d:valeu", "objective 'obj_d:valeu' does not exist: 'obj_d' has no 'valeu' (did you mean 'value'?)."),
        ("bad_d:f", "objective 'bad_d:f' cannot be imported: ZeroDivisionError: division by zero (bad_d.py, line 2)"),
        ("obj_exit:f", "objective 'obj_exit:f' cannot be imported: SystemExit: 3 (obj_exit.py, line 1)"),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_is_refused_with_the_part_that_fails(tmp_path, path, message):
    place = folder(tmp_path, obj_d="value = 1", bad_d="\n1 / 0", obj_exit="raise SystemExit(3)")
    with pytest.raises(InvalidInput) as caught:
        imported(path, "objective", place)
    assert message in str(caught.value)


def test_a_module_that_another_one_hides_is_refused(tmp_path):
    place = folder(tmp_path, json="f = 1")
    with pytest.raises(InvalidInput, match=r"already loaded.*'json'.*Rename json\.py"):
        imported("json:f", "objective", place)


def test_a_name_is_suggested_only_if_it_is_close():
    assert nearest("sed", ["seed", "name"]) == " (did you mean 'seed'?)"
    assert nearest("zzz", ["seed", "name"]) == ""
