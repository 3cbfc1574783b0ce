"""Failures with equal causes together."""

from __future__ import annotations

from dataclasses import replace

from boca.domain.failures import causes, in_words
from support.trials import made


def failed(number, reason):
    return replace(made(number, {"a": 0.5}, {"n": 1.0}), state="failed", reason=reason)


TRIALS = [
    failed(0, "exit status 3: solver diverged at a=0.81"),
    failed(1, "exit status 1: no license"),
    made(2, {"a": 0.5}, {"n": 1.0}),
    failed(3, "exit status 3: solver diverged at a=-1.2e-05\nmore of it"),
    failed(4, "exit status 3: solver diverged at a=7"),
]


def test_reasons_that_differ_in_numbers_are_one_cause_and_the_most_frequent_comes_first():
    first, second = causes(TRIALS)
    assert [t.number for t in first.trials] == [0, 3, 4]
    assert first.reason == "exit status 3: solver diverged at a=7"
    assert (second.reason, second.last.number) == ("exit status 1: no license", 1)
    assert causes([TRIALS[2]]) == []


def test_a_sentence_has_the_counts_and_the_reasons():
    words = in_words(causes(TRIALS))
    assert words == "3 with: exit status 3: solver diverged at a=7; 1 with: exit status 1: no license"
    many = [failed(k, f"cause {chr(97 + k)}") for k in range(5)]
    assert in_words(causes(many)).endswith("and 2 other causes")
