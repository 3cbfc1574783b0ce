"""Every key of a study file: the parser, the reference page, `boca init` and the JSON schema agree on this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Key:
    """One key: its type in words, its default, its unit, what it is, and a JSON schema of its value."""

    type: str
    default: str
    unit: str
    meaning: str
    schema: Mapping[str, Any]


_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
_NOT_NEGATIVE = {"type": "number", "minimum": 0}
_TEXT = {"type": "string", "minLength": 1}
_OPTION = {"type": ["string", "number", "boolean"]}

_DIRECTION = {"enum": ["maximize", "minimize", "max", "min"]}
_LIMIT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "at_most": {"type": "number"},
        "at_least": {"type": "number"},
        "at": {"enum": ["target", "any"]},
    },
    "oneOf": [{"required": ["at_most"]}, {"required": ["at_least"]}],
}

KINDS: Final = ("float", "int", "steps", "choice")
"""Of parameters."""

PARAMETER: Final[Mapping[str, Key]] = {
    "type": Key('"float", "int", "steps" or "choice"', "required", "", "its kind; steps for a fidelity", {}),
    "low": Key("number", "required, except for a choice", "its own", "the lower bound", {"type": "number"}),
    "high": Key("number", "required, except for a choice", "its own", "the upper bound", {"type": "number"}),
    "log": Key("true or false", "false", "", "whether its scale is logarithmic", {"type": "boolean"}),
    "choices": Key("list", "required of a choice", "", "its options", {"type": "array", "minItems": 2}),
    "target": Key("a value", "the upper bound", "its own", "of a fidelity: the value that counts", _OPTION),
    "when": Key(
        "table",
        "always active",
        "",
        "of a parameter in [space]: the options of a choice with which it is active",
        {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}},
    ),
}

_SPACE = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["type"],
        "additionalProperties": False,
        "properties": {
            **{name: dict(key.schema) for name, key in PARAMETER.items()},
            "type": {"enum": list(KINDS)},
        },
        "if": {"properties": {"type": {"const": "choice"}}},
        "then": {"required": ["choices"]},
        "else": {"required": ["low", "high"]},
    },
}


def _one_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "properties": properties,
    }


KEYS: Final[Mapping[str, Key]] = {
    "name": Key("text", "the name of the file without its suffix", "", "the study in its storage", _TEXT),
    "direction": Key('"maximize" or "minimize"', '"maximize"', "", "what is better", _DIRECTION),
    "deterministic": Key(
        "true or false", "false", "", "whether the same point always gives the same value", {"type": "boolean"}
    ),
    "first": Key(
        "list of tables",
        "none",
        "",
        "points to begin with; a name left out takes the middle of its range",
        {"type": "array", "items": {"type": "object"}},
    ),
    "objective": Key(
        '"module:name"', "required, or `command`", "", "a function of x and z in a module beside the file", _TEXT
    ),
    "command": Key("text", "required, or `objective`", "", "a command line with placeholders {NAME}", _TEXT),
    "cost": Key(
        '"measured", a table of exponents, or "module:name"',
        '"measured"; 1 without fidelities',
        "free",
        "what one evaluation costs",
        {"oneOf": [_TEXT, {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}]},
    ),
    "budget": Key(
        "table with one of `targets`, `seconds`, `cost`",
        "required",
        "target evaluations, seconds, or units of the cost",
        "what may be spent",
        _one_of(targets=_POSITIVE, seconds=_POSITIVE, cost=_POSITIVE),
    ),
    "strategy": Key(
        "text, or a table with `name` and settings",
        '"boca"',
        "",
        "what chooses the points",
        {"oneOf": [_TEXT, {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}]},
    ),
    "seed": Key("integer", "drawn, and stored", "", "of all random choices", {"type": "integer", "minimum": 0}),
    "workers": Key(
        "integer",
        "1; with `executor` as many as it has",
        "evaluations",
        "how many run at once",
        {"type": "integer", "minimum": 1},
    ),
    "executor": Key(
        "table with one of `dask`, `ray`",
        "worker processes of this machine",
        "",
        'where evaluations run: { dask = "tcp://host:8786" } or { ray = "auto" }',
        _one_of(dask=_TEXT, ray=_TEXT),
    ),
    "memory": Key(
        'number, or text such as "4 GB"',
        "no limit",
        "bytes",
        "what each worker process may use",
        {"oneOf": [{"type": "integer", "minimum": 1}, _TEXT]},
    ),
    "environment": Key(
        "table of text",
        "none",
        "",
        "variables for evaluations, beside those of `boca run`",
        {"type": "object", "additionalProperties": {"type": "string"}},
    ),
    "trial_folders": Key(
        "text",
        "the folder of the file",
        "",
        "of a command: a folder in which every evaluation gets a new one to run in, which is kept",
        _TEXT,
    ),
    "timeout": Key("number", "no limit", "seconds", "after which an evaluation has failed", _POSITIVE),
    "max_retries": Key(
        "integer",
        "2",
        "attempts",
        "how often an evaluation is tried again after its process died",
        {"type": "integer", "minimum": 0},
    ),
    "on_error": Key(
        '"fail" or "raise"',
        '"fail"',
        "",
        "whether a failed trial lets the run continue, or ends it",
        {"enum": ["fail", "raise"]},
    ),
    "grace": Key("number", "0", "seconds", "for running trials to finish after SIGTERM", _NOT_NEGATIVE),
    "stop_grace": Key(
        "number", "10", "seconds", "of a command that is stopped at a step: from SIGTERM to SIGKILL", _NOT_NEGATIVE
    ),
    "checkpoints": Key(
        "text",
        "beside the storage",
        "",
        "the folder for checkpoints of evaluations that pass through steps",
        _TEXT,
    ),
    "keep_checkpoints": Key(
        "integer",
        "all that decisions can use",
        "checkpoints",
        "how many of trials that have ended are kept at most",
        {"type": "integer", "minimum": 0},
    ),
    "storage": Key("URL", "the file NAME.db beside the study file", "", "where the study is stored", _TEXT),
    "where": Key(
        "list of text", "none", "", 'constraints on x, such as "a + b <= 1"', {"type": "array", "items": _TEXT}
    ),
    "subject_to": Key(
        "table of tables with `at_most` or `at_least`, and `at`",
        "none",
        "units of the outcome",
        "limits on further outcomes",
        {"type": "object", "additionalProperties": _LIMIT},
    ),
    "value": Key("text", "the only outcome without a limit", "", "the outcome that is optimized", _TEXT),
    "outcomes": Key(
        'table of "minimize", "maximize" or a limit',
        "none",
        "",
        "what is optimized if it is more than one outcome, in place of `direction` and `value`",
        {"type": "object", "minProperties": 1, "additionalProperties": {"oneOf": [_DIRECTION, _LIMIT]}},
    ),
    "reference": Key(
        "table of numbers",
        "learned",
        "units of the outcome",
        "of several objectives: the worst values that are of interest",
        {"type": "object", "additionalProperties": {"type": "number"}},
    ),
    "candidates": Key(
        "table with `file`, and `labels`, `repeat`",
        "none",
        "",
        "a CSV file whose rows are searched; [space] then describes columns, and may be left out",
        {
            "type": "object",
            "required": ["file"],
            "additionalProperties": False,
            "properties": {"file": _TEXT, "labels": {"type": "array", "items": _TEXT}, "repeat": {"type": "boolean"}},
        },
    ),
    "space": Key("table of parameters", "required, or `candidates`", "", "what is searched", _SPACE),
    "fidelity": Key("table of parameters", "none", "", "what makes an evaluation cheaper", _SPACE),
}


def schema() -> dict[str, Any]:
    """Return the JSON schema of a study file, with which editors complete and check it."""
    properties = {
        name: {"description": f"{key.meaning} ({key.type}; default: {key.default})", **key.schema}
        for name, key in KEYS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of boca",
        "type": "object",
        "additionalProperties": False,
        "required": ["budget"],
        "oneOf": [{"required": ["objective"]}, {"required": ["command"]}],
        "if": {"not": {"required": ["candidates"]}},
        "then": {"required": ["space"], "properties": {"space": {"minProperties": 1}}},
        "properties": properties,
    }
