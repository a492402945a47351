"""Random questions in all dialects: pyparq finds what the dialect's own library finds, and the dialects agree.

Few questions are asked by default. ``PYPARQ_QUESTIONS=20000 PYPARQ_SEED=7 pytest tests/filters/test_dialects.py`` asks
more, and others. What is known to differ is named in ``DIFFERENCES`` of ``tests/support/dialects.py``.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from dialects import DIALECTS, DIFFERENCES
from questions import Dialect, Question, Unsaid, questions

from pyparq.errors import ParquetError

COUNT = int(os.environ.get("PYPARQ_QUESTIONS", "150"))
SEED = int(os.environ.get("PYPARQ_SEED", "1"))
LEAST = {"col": 0.9, "tuples": 0.1, "sql": 0.6, "pyarrow": 0.4, "polars": 0.3, "polars-lazy": 0.8}
"""The share of questions that a dialect answers at least: who refuses everything is never wrong."""


def differs(dialect: Dialect, question: Question, from_others: bool) -> bool:
    known = (d for d in DIFFERENCES if dialect.name in d.dialects and d.from_others is from_others)
    return any(difference.applies(question) for difference in known)


def said(dialect: Dialect, question: Question) -> Any:
    """``None`` where the dialect, or its library, has no words for it."""
    try:
        return dialect.say(question)
    except Unsaid:
        return None
    except Exception as error:  # the library's own, of a literal that it does not take
        if isinstance(error, ParquetError):
            raise
        return None


def found(dialect: Dialect, words: Any) -> list[int] | None:
    """``None`` where pyparq refuses. Every other error is a failure."""
    try:
        return dialect.found(words)
    except ParquetError:
        return None


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars warns of None and of slow forms
        yield


@pytest.mark.sweep(3)
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_the_library_of_the_dialect_finds(dialect: Dialect) -> None:
    outcomes: Counter[str] = Counter()
    for question in islice(questions(SEED), COUNT):
        words = said(dialect, question)
        if words is None or differs(dialect, question, False):
            outcomes["not asked"] += 1
            continue
        try:
            right = dialect.right(question, words)
        except BaseException as error:  # a panic of polars is no Exception
            if isinstance(error, (KeyboardInterrupt, AssertionError)):
                raise
            outcomes["refused by the library"] += 1
            if dialect.name != "polars-lazy":  # there polars raises it in our query, too
                found(dialect, words)
            continue
        rows = found(dialect, words)
        outcomes["refused" if rows is None else "answered"] += 1
        assert rows in (None, right), f"{question}\n{words}"
    print(f"{dialect.name}: {COUNT} questions of seed {SEED}: {dict(outcomes)}")
    assert outcomes["answered"] >= LEAST.get(dialect.name, 0) * COUNT, outcomes


@pytest.mark.timeout(7200)
def test_the_dialects_agree() -> None:
    compared: Counter[str] = Counter()
    asked = [dialect for dialect in DIALECTS if dialect.name != "polars-lazy"]
    for question in islice(questions(SEED + 1), COUNT):
        answers: dict[str, list[int]] = {}
        for dialect in asked:
            words = None if differs(dialect, question, True) else said(dialect, question)
            rows = None if words is None else found(dialect, words)
            if rows is not None:
                answers[dialect.name] = rows
        compared.update(list(answers) if len(answers) > 1 else [])
        first = set(next(iter(answers.values()), ()))
        others = {name: sorted(first ^ set(rows)) for name, rows in answers.items() if set(rows) != first}
        assert not others, f"{question}\n{others} beside {next(iter(answers))}"
    print(f"{COUNT} questions of seed {SEED + 1} in several dialects: {dict(compared)}")
    assert set(compared) == {dialect.name for dialect in asked}
