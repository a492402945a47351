"""The blocks of code of the documentation, and how they run: as a reader would copy them.

Each block runs by itself, in the order of its page, in one folder for the page. ``docs_files.py`` puts the files there
that the page talks of. What is not for running is a block of ``text`` or data, or says why::

    <!-- not run: needs a cluster -->

A ``text`` block behind ``<!-- prints -->`` is what the block before it prints. Behind
``<!-- prints, numbers apart -->`` the words are the same, and the numbers may be others: sizes in bytes change when
pyparq writes something better.
"""

from __future__ import annotations

import glob
import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyparq import cli

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*?) -->\n)?```(?P<language>[^\n]*)\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE
)
RUNS = ("python", "bash")
DATA = ("text", "json", "console", "sh", "")
"""``console`` shows what commands look like; ``sh`` is run by the tests of the command line."""
ELSEWHERE = ("main job", "pipeline", "test command")
"""Notes of commands that the gate or another test runs."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    code: str
    note: str

    @property
    def runs(self) -> bool:
        return self.language in RUNS and not self.note.startswith("not run: ") and self.note not in ELSEWHERE

    @property
    def spark(self) -> bool:
        """Needs a Spark session, or has a part of Spark do something."""
        if self.language == "bash":
            return self.runs and any("--spark" in command for command in commands(self.code))
        return bool(re.search(r"pyspark|pyparq\.spark", self.code))


def pages() -> list[str]:
    return ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md"))]


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text("utf-8")
    return [
        Block(page, text[: found.start()].count("\n") + 1, found["language"], found["code"], found["note"] or "")
        for found in FENCE.finditer(text)
    ]


def run(page: str, chosen: list[Block], names: dict[str, Any]) -> None:
    """Runs these blocks of a page in the current folder, each with ``names`` alone, and compares what they print."""
    for block in chosen:
        printed = _printed(block, names)
        said = _said_to_print(page, block)
        if said is not None:
            same = _words if said.note.endswith("numbers apart") else _lines
            assert same(printed) == same(said.code), f"{page}, line {block.line}, prints:\n{printed}"


def _printed(block: Block, names: dict[str, Any]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        try:
            if block.language == "python":
                code = compile("\n" * block.line + block.code, block.page, "exec")
                exec(code, {"__name__": "__main__", **names})
            else:
                for command in commands(block.code):
                    assert cli.main(command) == 0, f"{command} failed"
        except BaseException as error:
            error.add_note(f"{block.page}, the block in line {block.line}")
            raise
    return printed.getvalue()


def commands(code: str) -> Iterator[list[str]]:
    """The arguments of each ``pyparq`` command: quotes, comments and globs as a shell takes them."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        assert words[0] == "pyparq", f"only pyparq runs here: {line}"
        quoted = {word for part in re.findall(r"'[^']*'|\"[^\"]*\"", line) for word in shlex.split(part)}
        yield [found for word in words[1:] for found in ([word] if word in quoted else _expanded(word))]


def _expanded(word: str) -> list[str]:
    return sorted(glob.glob(word)) or [word]


def _said_to_print(page: str, block: Block) -> Block | None:
    after = next((b for b in blocks(page) if b.line > block.line), None)
    return after if after is not None and after.note.startswith("prints") else None


def _words(text: str) -> list[str]:
    """Without numbers, and without the lines of a table, which are as long as its numbers."""
    return re.findall(r"[^\W\d_]+", text)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
