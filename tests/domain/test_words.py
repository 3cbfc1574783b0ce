"""Amounts and means as people read them."""

from __future__ import annotations

import math
import random
import time

import pytest

from boca.domain.words import duration, expected, moment, printable, readable, text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (16.94, "16.9"),
        (23.849999999999998, "23.8"),
        (25, "25"),
        (0.0123456, "0.0123"),
        (0.1 + 0.2, "0.3"),
        (999.6, "1,000"),
        (1234.5, "1,230"),
        (30_000, "30,000"),
        (12_345_678, "12,300,000"),
        (-1.5, "-1.5"),
        (1.2345e12, "1.23e+12"),
        (1.2345e-7, "1.23e-07"),
        (math.inf, "inf"),
    ],
)
def test_three_digits_are_kept_and_an_exponent_is_the_exception(amount, text):
    assert readable(amount) == text


def test_the_text_is_the_amount_to_half_a_unit_of_the_third_digit():
    rng = random.Random(0)
    for _ in range(300):
        amount = 10.0 ** rng.uniform(-12, 15)
        text = readable(amount)
        assert float(text.replace(",", "")) == pytest.approx(amount, rel=5.1e-3)
        digits = text.partition("e")[0].replace(",", "").replace(".", "").lstrip("0")
        assert len(digits.rstrip("0")) <= 3


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [
        (0.893729, 0.0031415, "0.8937 ± 0.0031"),
        (12345.678, 251.2, "12346 ± 251"),
        (1.0, 2.34, "1.0 ± 2.3"),
        (5.0, 0.0, "5 ± 0"),
        (1e12, 3.0, "1e+12 ± 3"),
    ],
)
def test_a_mean_has_the_digits_that_its_deviation_allows(mean, std, words):
    assert expected(mean, std) == words


def test_what_a_terminal_obeys_is_made_visible():
    assert printable("a\x1b[31mb\x07\u202ec\ud800 ü漢") == "a\\x1b[31mb\\x07\\u202ec\\ud800 ü漢"
    assert text("\x1b]0;x") == "\\x1b]0;x"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.01234, "0.0123 s"),
        (59.9, "59.9 s"),
        (60.0, "1 min"),
        (245.4, "4 min 5 s"),
        (7800.0, "2 h 10 min"),
        (273_600.0, "3 d 4 h"),
        (math.inf, "unknown"),
    ],
)
def test_a_span_has_two_units(seconds, words):
    assert duration(seconds) == words


def test_a_moment_is_of_this_place_and_a_damaged_one_is_unknown(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert moment(1795129669.8) == "2026-11-19 23:07:49"
    assert moment(math.nan) == "unknown"
