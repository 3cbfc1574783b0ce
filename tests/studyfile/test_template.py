"""The file that `boca init` writes: it loads as it is, and with every key that it has as a comment."""

from __future__ import annotations

import re
import tomllib

import pytest
from jsonschema import Draft202012Validator

from boca.studyfile import load, template
from boca.studyfile.keys import KEYS, schema


def written(folder, *, command, change=lambda text: text):
    text = change(template.text("study.toml", command=command))
    (folder / "study.toml").write_text(text)
    (folder / "objective.py").write_text(template.FUNCTION)
    return text


@pytest.mark.parametrize("command", [False, True])
def test_it_loads(command, tmp_path):
    text = written(tmp_path, command=command)
    study = load(tmp_path / "study.toml")
    assert study.problem.direction == "minimize"
    assert list(study.problem.fidelity) == ["n"]
    assert not list(Draft202012Validator(schema()).iter_errors(tomllib.loads(text)))
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("command", [False, True])
def test_every_key_is_in_it_and_every_example_is_accepted(command, tmp_path):
    text = template.text("study.toml", command=command)
    for name in KEYS:
        if name in ("trial_folders", "stop_grace", "command") and not command:
            continue
        assert re.search(rf"^#?\[?{name}\b", text, re.M) or f'"{name}' in text or f"{name} = " in text, name

    def uncommented(text):
        skipped = ("#memory", "#subject_to", "#value", "#outcomes", "#reference")  # which exclude others
        skipped += ("#candidates",)  # which needs its file
        return "\n".join(
            line[1:] if re.match(r"#\w+ = ", line) and not line.startswith(skipped) else line
            for line in text.splitlines()
        )

    written(tmp_path, command=command, change=uncommented)
    study = load(tmp_path / "study.toml")
    assert study.place.kind == "dask"
    assert study.workers == 2
