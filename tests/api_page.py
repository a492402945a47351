"""Makes ``docs/api.md`` and the help texts of options from the sources.

    python tests/api_page.py            writes the three files
    python tests/api_page.py --check    names those that are out of date

Each option is described once, under its field in ``pyparq/options.py`` (``pyparq/limits.py`` for limits). This script
copies the description into ``docs/api.md``, into ``help()`` (``pyparq/option_help.py``) and into the classes that tell
type checkers and editors the keyword arguments (``pyparq/arguments.py``).
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pyparq
from pyparq.filters.expression import ColumnRef
from pyparq.options import _ALIASES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "api.md"
HELP = ROOT / "pyparq" / "option_help.py"
ARGUMENTS = ROOT / "pyparq" / "arguments.py"
MARK = "# ---- made by tests/api_page.py: not to be edited here\n"

SECTIONS: list[tuple[str, list[str]]] = [
    ("Reading", ["read_table", "read_schema", "read_metadata", "ParquetFile", "Scan", "ScanPlan", "Explanation",
                 "FileMetaData", "release_unused"]),
    ("Options for reading", ["ReadOptions", "Limits"]),
    ("Filters", ["col", "Expression"]),
    ("Writing", ["write_table", "ParquetWriter"]),
    ("Options for writing", ["WriteOptions", "BloomOptions", "SortKey"]),
    ("Schemas and tables", ["schema", "Schema", "Field", "DataType", "Table", "Batch", "ChunkedArray"]),
    ("Encryption", ["EncryptionProperties", "DecryptionProperties", "EncryptionKey"]),
    ("Errors", ["ParquetError", "CorruptFileError", "ChecksumError", "LimitError", "UnsupportedError", "SchemaError",
                "ColumnNotFoundError", "FilterError", "DataError", "OptionError", "EncryptionError", "MissingKeyError",
                "CorruptIndexWarning", "UnverifiedFooterWarning"]),
]  # fmt: skip
"""Each public name except ``__version__`` is in one section."""

TAKES = {"read_table": "ReadOptions", "read_schema": "ReadOptions", "read_metadata": "ReadOptions",
         "ParquetFile": "ReadOptions", "write_table": "WriteOptions", "ParquetWriter": "WriteOptions"}  # fmt: skip
GIVEN = {"Scan", "ScanPlan", "Explanation", "FileMetaData", "Expression", "Table", "Batch", "ChunkedArray"}
"""Classes whose objects come from calls. Their constructors are not part of the API."""
OPTIONS = {"ReadOptions": "options", "WriteOptions": "options", "BloomOptions": "options", "SortKey": "options",
           "Limits": "limits"}  # fmt: skip
"""Classes whose fields are options, and the module of each class."""


@dataclass(frozen=True)
class Option:
    name: str
    type: str
    default: str
    meaning: str


def options_of(cls: str) -> list[Option]:
    """The fields of an option class as the source has them."""
    tree = ast.parse((ROOT / "pyparq" / f"{OPTIONS[cls]}.py").read_text())
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls)
    found = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found.append(Option(node.target.id, ast.unparse(node.annotation), _default(node), _one_line(said)))
    return found


def _default(node: ast.AnnAssign) -> str:
    """What a field is when nothing is given, as Python would write it; empty where it must be given."""
    if node.value is None:
        return ""
    text = ast.unparse(node.value)
    if text.startswith("field(default_factory="):
        return {"dict": "{}", "list": "[]"}[text[len("field(default_factory=") : -1]]
    if text == "DEFAULT_LIMITS":
        return "Limits()"
    value = eval(text)
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else re.sub("'", '"', repr(value))


def _one_line(said: object) -> str:
    return " ".join(inspect.cleandoc(str(said)).split())


def plain(text: str) -> str:
    """A docstring for people: references as the names they stand for."""
    text = re.sub(r":\w+:`~?([^`]+)`", lambda m: m[1].removeprefix("pyparq."), text)
    return text.replace("``", "`")


# ---- docs/api.md


def page() -> str:
    parts = [
        "# API\n\nAll public names of `import pyparq`, with their options and defaults. `python tests/api_page.py` "
        "makes this page from the\nsources. Names that are not listed here are private and may change.\n"
    ]
    listed = {name for _, names in SECTIONS for name in names} | {"__version__"}
    assert listed == set(pyparq.__all__), f"SECTIONS and pyparq.__all__ differ in {listed ^ set(pyparq.__all__)}"
    for title, names in SECTIONS:
        parts.append(f"## {title}\n")
        parts += [entry for name in names for entry in _entry(name)]
    parts.append(_types())
    return "\n".join(parts)


def _entry(name: str) -> Iterator[str]:
    found = getattr(pyparq, name)
    if isinstance(found, type) and issubclass(found, (Exception, Warning)):
        yield f"- **`{name}`** ({', '.join(base.__name__ for base in found.__bases__)}): {_flat(found)}\n"
        return
    yield f"### `{name}`\n"
    if name not in OPTIONS and name not in GIVEN:
        yield f"```python\n{signature(name, found)}\n```\n"
    yield plain(_doc(found)) + "\n"
    if name in TAKES:
        yield f"`**options`: [{TAKES[name]}](#{TAKES[name].lower()})\n"
    if name in OPTIONS:
        yield _option_table(name)
    members = ColumnRef if name == "col" else found if isinstance(found, type) and name not in OPTIONS else None
    if members is not None:
        yield _members(members)


def _types() -> str:
    """What the short names of types stand for."""
    lines = ["## Types of arguments\n", "The type names that the signatures and tables above use.\n"]
    for node in ast.parse(ARGUMENTS.read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            value = node.value.value if isinstance(node.value, ast.Constant) else ast.unparse(node.value)
            lines.append(f"- `{node.target.id}`: `{value}`".replace("'", '"'))
        elif isinstance(node, ast.ClassDef) and node.name not in ("ReadArguments", "WriteArguments"):
            lines.append(f"- `{node.name}`: {plain(_one_line(ast.get_docstring(node)))}")
    return "\n".join(lines) + "\n"


def _doc(found: Any) -> str:
    """The docstring without what is said of options, which has a place of its own here."""
    return inspect.cleandoc(found.__doc__ or "").split("\n\nOptions, each with")[0].strip()


def _flat(found: Any) -> str:
    return plain(_one_line(_doc(found)))


def _option_table(cls: str) -> str:
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for option in options_of(cls):
        cells = [f"`{option.name}`", f"`{option.type}`", f"`{option.default}`" if option.default else "(needed)",
                 plain(option.meaning)]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _members(cls: type) -> str:
    """Public methods and properties with their first sentences, inherited ones of our own included."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("pyparq")]
    lines = []
    if is_dataclass(cls) and cls.__name__ in GIVEN:
        lines.append("- fields: " + ", ".join(f"`{field.name}`" for field in fields(cls)))
    for name in dict.fromkeys(name for base in ours for name in vars(base)):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_"):
            continue
        if isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member):
            lines.append(f"- `{signature(name, getattr(cls, name))}`{_first(member)}")
        elif isinstance(member, property):
            lines.append(f"- `{name}`{_first(member)}")
    return "\n".join(lines) + "\n" if lines else ""


def _first(member: Any) -> str:
    said = inspect.cleandoc(getattr(member, "__doc__", None) or "").split("\n\n")[0]
    return f": {plain(_one_line(said))}" if said else ""


def signature(name: str, found: Any) -> str:
    """``name(a: int = 1, **options) -> Table``; ``self`` left out."""
    call = inspect.signature(found)
    parameters = [p for p in call.parameters.values() if p.name not in ("self", "cls")]
    said: list[str] = []
    for k, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not any(q.kind in (q.KEYWORD_ONLY, q.VAR_POSITIONAL) for q in parameters[:k]):
            said.append("*")
        if p.kind is p.VAR_KEYWORD:
            said.append(f"**{p.name}")
            continue
        note = "" if p.annotation in (p.empty, "Any") else f": {_annotation(p.annotation)}"
        default = "" if p.default is p.empty else f"{' = ' if note else '='}{_shown_default(p.default)}"
        said.append(("*" if p.kind is p.VAR_POSITIONAL else "") + p.name + note + default)
    returned = call.return_annotation
    arrow = "" if returned in (inspect.Signature.empty, "None", None) else f" -> {_annotation(returned)}"
    return f"{name}({', '.join(said)})" + ("" if isinstance(found, type) else arrow)


def _annotation(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def _shown_default(value: Any) -> str:
    return f"{value:_}" if type(value) is int else repr(value)


# ---- pyparq/option_help.py


def help_module() -> str:
    return (
        '"""What ``help()`` says of options. Made from ``pyparq/options.py`` by ``python tests/api_page.py``."""\n\n'
        "from __future__ import annotations\n\nfrom inspect import cleandoc\n\n\n"
        "def with_options(doc: str | None, options: str) -> str | None:\n"
        '    """A docstring and the options that go with it; ``None`` where Python leaves docstrings out."""\n'
        '    return None if doc is None else f"{cleandoc(doc)}\\n\\n{options}"\n\n\n'
        f'READ = """\\\n{_help("ReadOptions")}"""\n\nWRITE = """\\\n{_help("WriteOptions")}"""\n'
    )


def _help(cls: str) -> str:
    lines = ["Options, each with its default:", ""]
    for option in options_of(cls):
        lines.append(f"{option.name} = {option.default}")
        lines += textwrap.wrap(plain(option.meaning).replace("`", ""), 100, initial_indent="    ",
                               subsequent_indent="    ", break_on_hyphens=False)  # fmt: skip
    return "\n".join(lines).replace("\\", "\\\\") + "\n"


# ---- pyparq/arguments.py


def arguments_module() -> str:
    above = ARGUMENTS.read_text().split(MARK)[0]
    parts = [above + MARK]
    for cls, name, what in (
        ("ReadOptions", "ReadArguments", "Keyword arguments of everything that opens a file for reading."),
        ("WriteOptions", "WriteArguments", "Keyword arguments of everything that writes a file."),
    ):
        lines = [f"\n\nclass {name}(TypedDict, total=False):", f'    """{what}"""', ""]
        for option in options_of(cls):
            lines.append(f"    {option.name}: {option.type}".replace("'", '"'))
            lines += textwrap.wrap(f'"""{option.meaning}"""', 116, initial_indent="    ", subsequent_indent="    ",
                                   break_on_hyphens=False)  # fmt: skip
            for alias in (a for a, real in _ALIASES.items() if real == option.name and cls == "WriteOptions"):
                lines.append(f"    {alias}: {option.type}".replace("'", '"'))
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def wanted() -> dict[Path, str]:
    """Each file that is made, and what has to stand in it."""
    return {PAGE: page(), HELP: help_module(), ARGUMENTS: arguments_module()}


def stale() -> list[str]:
    """The files that say something else than the sources."""
    return [path.name for path, text in wanted().items() if not path.exists() or path.read_text() != text]


def main() -> int:
    if "--check" in sys.argv:
        found = stale()
        print(f"out of date: {', '.join(found)}. Run python tests/api_page.py" if found else "up to date")
        return bool(found)
    for make, path in ((help_module, HELP), (arguments_module, ARGUMENTS), (page, PAGE)):
        path.write_text(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
