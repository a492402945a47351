"""The lines of the benchmark by group; each module has ``lines(inputs)``, which makes no table and no file yet."""

from collections.abc import Callable, Iterator

from inputs import Inputs
from lines import Line

from groups import columns, costs, filters, many, objects, processes, professions, scans, selective, text, writes

GROUPS: dict[str, Callable[[Inputs], Iterator[Line]]] = {
    "filters": filters.lines,
    "scans": scans.lines,
    "text": text.lines,
    "columns": columns.lines,
    "many": many.lines,
    "writes": writes.lines,
    "objects": objects.lines,
    "selective": selective.lines,
    "professions": professions.lines,
    "costs": costs.lines,
    "processes": processes.lines,
}

#: What the geometric mean of a group may be at most.
MEANS = {
    "filters": 0.6,
    "scans": 0.5,
    "text": 0.5,
    "columns": 0.6,
    "many": 0.5,
    "writes": 0.6,
    "objects": 0.7,
    "selective": 0.4,
    "professions": 0.6,
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
    "professions": "How long do conditions on text and computed values take, and many keys?",
    "costs": "What does encryption add, and what does the start cost?",
    "processes": "What does a second thread bring, and how much memory does a read take?",
}
