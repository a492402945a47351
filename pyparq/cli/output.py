"""What commands print: tables, facts and titles for people, JSON for programs.

On a terminal, tables are laid out by rich: coloured, and fitted to the width. Everywhere else they are plain and whole.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Self, TypeVar

import click

from pyparq.runtime import fork_safety
from pyparq.runtime import text as terminal_text
from pyparq.runtime.text import visible

GAP = 2
MANY = 2000
"""Rows from which on even a terminal gets the plain form (styling costs about 0.1 ms a cell)."""
LEAST = (20, 8)
"""Cells that a column needs which may fold: the first while others can be left out."""
PRETTY = 1_000_000
"""Characters of JSON up to which it is indented."""
NULL = "NULL"
FOUND = "pyparq.found"
"""In the ``meta`` of click's context: the exit code so far, for a command whose reader of stdout leaves early."""


# ---- text


def one_line(message: str) -> str:
    """A message on one line."""
    return visible(" ".join(message.split()))


def width(line: str) -> int:
    """Cells that ``line`` takes on a terminal."""
    if line.isascii():
        return len(line)
    from rich.cells import cell_len

    return cell_len(line)


def cut(line: str, limit: int) -> str:
    """``line`` in at most ``limit`` cells, an ellipsis at its end when something was left out."""
    return terminal_text.cut(line, limit, width)


def count(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``, ``2 dictionaries``."""
    if number == 1:
        return f"1 {noun}"
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("x") else "s")
    return f"{number:,} {plural}"


def ratio(compressed: int, uncompressed: int) -> str:
    """How many times smaller the stored bytes are."""
    return f"{uncompressed / compressed:.1f}" if compressed > 0 else "-"


def ranges(numbers: Iterable[int]) -> str:
    """``0-3 7``: consecutive numbers together."""
    found: list[list[int]] = []
    for n in numbers:
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found) or "-"


# ---- lines


def on_terminal(out: IO[str] | None = None) -> bool:
    """Whether ``out`` (stdout) is a terminal."""
    return bool((out or sys.stdout).isatty()) and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    import shutil  # with tempfile in other places: it takes a while to load

    return max(shutil.get_terminal_size().columns, 40)


def emit(text: str = "") -> None:
    """A line of plain text."""
    sys.stdout.write(text + "\n")


def say(text: str, style: str = "", out: IO[str] | None = None) -> None:
    """A line of text, in several where a terminal is narrower."""
    if not on_terminal(out):
        click.echo(visible(text), file=out)
        return
    from rich.text import Text

    _console(out).print(Text(visible(text), style=style))


def title(text: str) -> None:
    """A line that heads what follows; bold on a terminal."""
    say(text, "bold")


def print_json(document: Any) -> None:
    """A document on stdout; indented unless it is long (which takes ten times as long)."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    if len(text) < PRETTY:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    emit(text)


def raise_problems(problems: Sequence[str]) -> None:
    """End with an error when something could not be described (what could be has been printed)."""
    if problems:
        more = f" (and {count(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
        raise click.ClickException(problems[0] + more)


def _console(out: IO[str] | None = None) -> Any:
    from rich.console import Console

    return Console(file=out, highlight=False, width=terminal_width())


# ---- tables


@dataclass(slots=True)
class Heading:
    """A column of a table. ``folds``: into several lines, where a terminal is narrow. ``optional``: left out there, the
    highest first. ``droppable``: left out where every cell is empty. ``key``: of a row that is a dict."""

    title: str
    right: bool = False
    folds: bool = False
    optional: int = 0
    droppable: bool = False
    is_place: bool = False
    """A number whose digits are not grouped, such as an offset."""
    key: str = ""

    @classmethod
    def parse(cls, text: str) -> Heading:
        """From a title with marks before it: ``>`` aligns right, ``=`` folds, ``?`` is optional, ``-`` droppable, ``@``
        a place; and with ``:key`` behind it, if the key is not the title."""
        name, _, key = text.lstrip(">=?@-").partition(":")
        marks = text[: len(text) - len(text.lstrip(">=?@-"))]
        return cls(name, ">" in marks or "@" in marks, "=" in marks, marks.count("?"), "-" in marks, "@" in marks,
                   key or name)  # fmt: skip

    def text(self, value: Any) -> str:
        """A cell. Numbers are grouped; ``-`` stands for what is not known."""
        if value is None or (value.__class__ is int and value < 0):
            return "-"
        if value.__class__ is int:
            return str(value) if self.is_place else f"{value:,}"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return visible(" ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))


class Grid:
    """A table. ``spec``: headings with ``|`` between them, as :meth:`Heading.parse` reads them."""

    def __init__(self, spec: str | Sequence[Heading], rows: Iterable[Mapping[str, Any]] = (), indent: int = 2) -> None:
        self.headings = [Heading.parse(part) for part in spec.split("|")] if isinstance(spec, str) else list(spec)
        self.rows: list[list[str | None]] = []
        """Cells as they are printed; ``None`` is a null."""
        self._indent = indent
        for row in rows:
            self.add(*(row[heading.key] for heading in self.headings))

    def add(self, *values: Any) -> None:
        """A row."""
        for heading, value in zip(self.headings, values, strict=True):
            heading.right = heading.right or value.__class__ is int
        self.rows.append([h.text(value) for h, value in zip(self.headings, values, strict=True)])

    def show(self) -> None:
        """Print it."""
        empty = [h.droppable and all(row[k] in ("", "-") for row in self.rows) for k, h in enumerate(self.headings)]
        self._drop([k for k, drop in enumerate(empty) if drop])
        if on_terminal() and len(self.rows) <= MANY:
            self._show_fitted(terminal_width() - self._indent)
            return
        widths = [max(column) for column in self._widths()]
        above: list[list[str | None]] = [[h.title for h in self.headings], ["-" * w for w in widths]]
        for row in (*above, *self.rows):
            line = (" " * GAP).join(self._padded(row, widths))
            emit(" " * self._indent + line.rstrip())

    def _padded(self, row: Sequence[str | None], widths: Sequence[int]) -> Iterable[str]:
        for heading, cell, w in zip(self.headings, row, widths, strict=True):
            text = NULL if cell is None else cell
            pad = " " * (w - width(text))
            yield pad + text if heading.right else text + pad

    def _widths(self) -> list[list[int]]:
        """Of each column, the cells that its title and its rows take."""
        return [
            [width(h.title), *(len(NULL) if row[k] is None else width(row[k] or "") for row in self.rows)]
            for k, h in enumerate(self.headings)
        ]

    def _drop(self, numbers: Sequence[int]) -> None:
        for row in (self.headings, *self.rows):
            for k in reversed(numbers):
                del row[k]  # type: ignore[attr-defined]

    def _show_apart(self) -> None:
        """Each row as lines of its own, for a terminal that is too narrow for a table."""
        for row in self.rows:
            emit()
            facts([(h.title, NULL if cell is None else cell) for h, cell in zip(self.headings, row, strict=True)])

    def _show_fitted(self, room: int) -> None:
        if self._needs(LEAST[1], all_of=False) > room:
            self._show_apart()
            return
        left_out = self._leave_out(room)
        from rich.padding import Padding
        from rich.rule import Rule
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for heading in self.headings:
            table.add_column(
                Text(heading.title), justify="right" if heading.right else "left", no_wrap=not heading.folds,
                overflow="fold" if heading.folds else "ellipsis",
            )  # fmt: skip
        table.add_row(*(Rule(characters="-", style="dim") for _ in self.headings))
        for row in self.rows:
            table.add_row(*(Text(NULL, "dim italic") if cell is None else Text(cell) for cell in row))
        console = _console()
        console.print(Padding(table, (0, 0, 0, self._indent), expand=False))
        if left_out:
            say(f"{' ' * self._indent}(no room for: {', '.join(left_out)})", "dim")

    def _needs(self, least: int, all_of: bool = True) -> int:
        """Cells that the table takes, with ``least`` for each column that may fold; or its columns that must stay."""
        widths = [max(found) for found in self._widths()]
        kept = [(h, w) for h, w in zip(self.headings, widths, strict=True) if all_of or not h.optional]
        return sum(min(w, least) if h.folds else w for h, w in kept) + GAP * (len(kept) - 1)

    def _leave_out(self, room: int) -> list[str]:
        """The titles of the optional columns that there is no room for."""
        left_out: list[str] = []
        while any(ranks := [h.optional for h in self.headings]) and self._needs(LEAST[0]) > room:
            k = max(k for k, rank in enumerate(ranks) if rank == max(ranks))
            left_out.insert(0, self.headings[k].title)
            self._drop([k])
        return left_out


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Lines of ``name  value``, aligned."""
    if not on_terminal():
        longest = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            emit(f"  {name.ljust(longest)}  {visible(value)}")
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, GAP, 0, 0))
    for name, value in pairs:
        table.add_row(Text(name, no_wrap=True), Text(visible(value), overflow="fold"))
    _console().print(Padding(table, (0, 0, 0, 2), expand=False))


# ---- progress on stderr, for people: only on a terminal, and only when something takes more than a second


T = TypeVar("T")

DELAY = 1.0
"""Seconds of silence."""


class Busy:
    """``with Busy("reading", total) as busy: ... busy.step()``; without a total, a spinner. ``share``: a percentage
    (:meth:`show`). ``rows``: rows are counted, and shown beside it."""

    def __init__(self, text: str, total: int | None = None, *, rows: bool = False, share: bool = False) -> None:
        self._text = text
        self._total: float | None = 1.0 if rows or share else total
        self._shows_share = share
        self._counts_rows = rows
        self._rows = 0
        self._done = 0.0
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        """No bar in a child: the threads that draw it are its parent's."""
        self._lock = threading.Lock()
        self._progress: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer = threading.Timer(DELAY, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        if self._counts_rows:
            columns += [BarColumn(), TextColumn("{task.percentage:.0f} %, {task.fields[rows]:,} rows", markup=False)]
        elif self._shows_share:
            columns += [BarColumn(), TextColumn("{task.percentage:.0f} %", markup=False)]
        elif self._total is not None:
            columns += [BarColumn(), MofNCompleteColumn()]
        with self._lock:
            if self._timer is None:  # it ended in the meantime
                return
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(self._text, total=self._total, completed=self._done, rows=self._rows)
            self._progress.start()

    def step(self) -> None:
        """One of ``total`` is done."""
        self._done += 1
        if self._progress is not None:
            self._progress.update(self._task, completed=self._done)

    def show(self, share: float, rows: int) -> None:
        """So much of all is done (0 to 1), and so many rows came of it."""
        self._done, self._rows = share, rows
        if self._progress is not None:
            self._progress.update(self._task, completed=share, rows=rows)

    def show_share(self, done: int, total: int) -> None:
        """``done`` of ``total`` is done."""
        self.show(done / total if total else 0.0, 0)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._progress is not None:
                self._progress.stop()


# ---- explanations

LINE = 200
"""Characters of a line that are shown."""


def print_explanation(explanation: Any, out: IO[str], apart: bool = False) -> None:
    """The explanation as text; ``apart``: after an empty line."""
    named = replace(
        explanation,
        source=visible(explanation.source),
        columns=[visible(name) for name in explanation.columns],
        predicate=visible(explanation.predicate),
    )
    lines = [cut(line, LINE) for line in ("\n" * apart + str(named)).splitlines()]
    begin = next((k for k, line in enumerate(lines) if line.startswith("  index ")), 0) if explanation.stages else 0
    end = begin + 2 + len(explanation.stages) if begin else 0
    for k, line in enumerate(lines):
        if not on_terminal(out) or not begin <= k < end:
            say(line, out=out)
        elif k == begin:
            _show_stages(lines[begin:end], out)


def _show_stages(lines: list[str], out: IO[str]) -> None:
    """The table of stages. Where it does not fit, without the columns that the last lines repeat."""
    room = terminal_width()
    while max(map(len, lines)) > room and "  " in lines[1].strip():
        at = lines[1].rstrip().rindex("  ")  # where the rule of the last column begins
        lines = [line[:at] for line in lines]
    click.echo("\n".join(line.rstrip() for line in lines), file=out)
