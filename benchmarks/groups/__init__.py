"""The lines of the benchmark by group; each module has ``lines(inputs)``, which makes no table and no file yet."""

from collections.abc import Callable, Iterator

from inputs import Inputs
from lines import Line

from groups import columns, costs, filters, many, objects, processes, scans, selective, text, writes

GROUPS: dict[str, Callable[[Inputs], Iterator[Line]]] = {
    "filters": filters.lines,
    "scans": scans.lines,
    "text": text.lines,
    "columns": columns.lines,
    "many": many.lines,
    "writes": writes.lines,
    "objects": objects.lines,
    "selective": selective.lines,
    "costs": costs.lines,
    "processes": processes.lines,
}

#: What the geometric mean of a group may be at most.
MEANS = {
    "filters": 0.7,
    "scans": 0.7,
    "text": 0.7,
    "columns": 0.9,
    "many": 0.9,
    "writes": 0.8,
    "objects": 0.7,
    "selective": 0.45,
}

TITLES = {
    "filters": "How long does a filter take that keeps many rows?",
    "scans": "How long does it take to read everything, or one column?",
    "text": "How long does text take?",
    "columns": "What do many columns cost?",
    "many": "What do many row groups, pages and files cost?",
    "writes": "How long does writing take, and how large are the files?",
    "objects": "How long do Python's dicts take, as rows in and out?",
    "selective": "How long does it take to find few rows?",
    "costs": "What does encryption add, and what does the start cost?",
    "processes": "What does a second thread bring, and how much memory does a read take?",
}
