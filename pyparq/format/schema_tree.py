"""The schema of a file as a tree: nodes with levels, leaves with their column ordinal.

The flat list of SchemaElements in the footer is untrusted, so child counts, depth and repetition are checked here.
Files with thousands of columns exist, so building is cheap per leaf: types are resolved at first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyparq.column_names import ColumnName
from pyparq.errors import ColumnNotFoundError, CorruptFileError, LimitError, OptionError, near_matches
from pyparq.format.annotation import annotation_name
from pyparq.format.schema_node import Node, parts_of
from pyparq.format.types import OPTIONAL, REPEATED, REQUIRED, Physical
from pyparq.runtime.tables import Cell, html_view, viewable
from pyparq.runtime.text import printable

_PHYSICAL_NAMES = {int(p): p.name for p in Physical}
_REPETITIONS = {REQUIRED: "required", OPTIONAL: "optional", REPEATED: "repeated"}
_LONG = 60
"""Characters of an annotation that are shown: that of a geometry may hold a whole coordinate system."""


def _stored(node: Node) -> str:
    """The physical type of a leaf with its length, as a file states them; they may be wrong."""
    if not node.is_leaf:
        return "group"
    number, length = node.element.type, node.element.type_length
    kind = _PHYSICAL_NAMES.get(number, f"type {number}")
    return f"{kind}({length})" if number == Physical.FIXED_LEN_BYTE_ARRAY else kind


class SchemaTree:
    """The tree below ``root`` with its ``leaves`` in column order."""

    def __init__(self, root: Node, leaves: list[Node], case_sensitive: bool = True) -> None:
        self.root = root
        self.leaves = leaves
        self.case_sensitive = case_sensitive
        """Whether :meth:`find` tells names apart by case."""
        self._paths: frozenset[tuple[str, ...]] | None = None
        self._named: dict[Node, dict[str, list[Node]]] = {}
        self._lowered: dict[Node, dict[str, list[Node]]] = {}

    @viewable
    def _repr_html_(self) -> str:
        rows: list[list[Cell]] = [
            [leaf.dotted, _stored(leaf), annotation_name(leaf.element)[:_LONG], _REPETITIONS[leaf.repetition],
             leaf.max_def, leaf.max_rep]
            for leaf in self.leaves
        ]  # fmt: skip
        headings = ["leaf", "physical type", "logical type", "", "definition level", "repetition level"]
        return html_view(f"SchemaTree ({len(self.leaves):,} leaves)", (), headings, rows)

    @printable
    def __repr__(self) -> str:
        lines = [f"pyparq.SchemaTree ({len(self.leaves)} leaves)"]
        todo = [(child, 0) for child in reversed(self.root.children)]
        while todo:
            node, depth = todo.pop()
            kind = f"{_stored(node)} {annotation_name(node.element)[:_LONG]}".rstrip()
            lines.append("  " * depth + f"{node.name}: {_REPETITIONS[node.repetition]} {kind}")
            todo += [(child, depth + 1) for child in reversed(node.children)]
        return "\n".join(lines)

    @property
    def names(self) -> list[str]:
        """Top-level names."""
        return [child.name for child in self.root.children]

    def has_leaf(self, path: Iterable[str]) -> bool:
        """Whether this is exactly the path of a leaf."""
        if self._paths is None:
            self._paths = frozenset(leaf.path for leaf in self.leaves)
        return tuple(path) in self._paths

    def find(self, name: ColumnName) -> Node:
        """The node that a user's name stands for, a leaf or a group.

        A tuple is the exact path of names from the top down. A string is a top-level column's name, or else a path as
        :attr:`Node.dotted` prints it, whether its dots separate names or belong to them. Shorter, both may say what
        lists and maps mean instead of the nodes they consist of: ``ls.y`` for ``ls.list.element.y``, a field of the
        structs in a list, ``m.key`` for the keys of a map. Where both fit, the nodes' own names win. Without
        :attr:`case_sensitive`, strings fit in any case, and tuples where none fits exactly.

        Raises :class:`ColumnNotFoundError` where nothing fits, or several columns do (with the tuples that tell them
        apart), :class:`OptionError` for what is neither a string nor a tuple of strings.
        """
        if not self.case_sensitive:
            return self._find_in_any_case(name)
        if isinstance(name, str) and (tops := self._children(self.root).get(name)) is not None:
            return self.single(tops, name)
        found = self.fitting(name)
        if not found:
            raise self._missing(name)
        return self.single(found, name)

    def path_of(self, name: ColumnName) -> tuple[str, ...] | None:
        """The path of the column or group that a name stands for, as :meth:`find` resolves it; ``None`` where there is
        none."""
        nodes = self.fitting(name)
        if len({node.path for node in nodes}) > 1:
            self.single(nodes, name)
        return nodes[0].path if nodes else None

    def _find_in_any_case(self, name: ColumnName) -> Node:
        found = [] if isinstance(name, str) else self.fitting(name)
        if isinstance(name, str):
            found = self._in_lower_case(self.root).get(name.lower(), [])
        found = found or self.fitting(name, any_case=True)
        if not found:
            raise self._missing(name)
        return self.single(found, name)

    def fitting(self, name: ColumnName, *, any_case: bool = False) -> list[Node]:
        """All nodes that a name may mean, at the top or below."""
        parts = name if isinstance(name, str) else tuple(name) if isinstance(name, (tuple, list)) else ()
        if not (isinstance(parts, str) or (parts and all(isinstance(part, str) for part in parts))):
            raise OptionError(f"a column name must be a string or a tuple of strings, not {name!r}")
        if any_case:
            parts = parts.lower() if isinstance(parts, str) else tuple(part.lower() for part in parts)
        for short in (False, True):
            found = self._below(self.root, parts, _Search(short, any_case, set()))
            if found:
                return found
        return []

    def _below(self, node: Node, rest: ColumnName, search: _Search) -> list[Node]:
        """The nodes at a path below ``node``, by the names of nodes, or also by what lists and maps mean (``short``):
        what nodes are called comes first, and one thing that fits keeps the next from being asked.
        """
        if rest == ():
            return [node]
        if (node, rest) in search.tried:
            return []
        search.tried.add((node, rest))
        heads = _beginnings(rest)
        for named in self._steps(node, search):
            ways = [(child, more) for head, more in heads for child in named.get(head, ())]
            found = [end for child, more in ways for end in self._below(child, more, search)]
            if found:
                return found
        return []

    def _steps(self, node: Node, search: _Search) -> Iterator[Mapping[str, Sequence[Node]]]:
        yield self._in_lower_case(node) if search.any_case else self._children(node)
        if search.short:
            parts = [] if node is self.root else parts_of(node)
            yield from [_lowered(parts)] if search.any_case else ({name: [part]} for name, part in parts)

    def _children(self, node: Node) -> dict[str, list[Node]]:
        """A node's children by name; kept, because files may be wide at any depth."""
        found = self._named.get(node)
        if found is None:
            found = {}
            for child in node.children:
                found.setdefault(child.name, []).append(child)
            self._named[node] = found
        return found

    def _in_lower_case(self, node: Node) -> dict[str, list[Node]]:
        found = self._lowered.get(node)
        if found is None:
            found = self._lowered[node] = _lowered((child.name, child) for child in node.children)
        return found

    def single(self, found: list[Node], name: ColumnName) -> Node:
        """The one node that :meth:`fitting` found. Raises :class:`ColumnNotFoundError` if it found several."""
        if len(found) == 1:
            return found[0]
        dotted = name if isinstance(name, str) else ".".join(name)
        paths = list(dict.fromkeys(node.path for node in found))
        if len(paths) == 1:
            raise ColumnNotFoundError(
                f"{len(found)} columns have the name {dotted!r}, so it does not identify one of them"
            )
        shown = ", ".join(map(repr, paths[:5])) + (", ..." if len(paths) > 5 else "")
        raise ColumnNotFoundError(f"{dotted!r} matches {len(found)} columns: give a tuple of names, one of {shown}")

    def _missing(self, name: ColumnName) -> ColumnNotFoundError:
        dotted = name if isinstance(name, str) else ".".join(name)
        tops = [node for head, _ in _beginnings(name) for node in self._children(self.root).get(head, ())]
        known = [leaf.dotted for top in tops for leaf in top.leaves()]
        same = next((leaf.path for leaf in self.leaves if leaf.dotted == dotted), None)
        if same is not None:
            shown = name if isinstance(name, tuple) else (name,)
            return ColumnNotFoundError(f"no column {shown!r}; did you mean the path {same!r}?")
        if not known:
            known = self.names if dotted == name and "." not in name else [leaf.dotted for leaf in self.leaves]
        return ColumnNotFoundError(f"no column {dotted!r}{near_matches(dotted, known)}")


class _Search(NamedTuple):
    """A name that is looked for below a node, and the nodes that were searched already."""

    short: bool
    any_case: bool
    tried: set[tuple[Node, ColumnName]]


def _lowered(named: Iterable[tuple[str, Node]]) -> dict[str, list[Node]]:
    """Nodes by name in lower case, each once."""
    found: dict[str, dict[Node, None]] = {}
    for name, node in named:
        found.setdefault(name.lower(), {})[node] = None
    return {name: list(nodes) for name, nodes in found.items()}


def _beginnings(name: ColumnName) -> list[tuple[str, ColumnName]]:
    """Possible first names of a path, each with the rest of the path (empty if that is all). A tuple has one; a string
    has one for each of its dots, and the whole string."""
    if not isinstance(name, str):
        return [(name[0], tuple(name[1:]))] if name else []
    dots = [k for k, char in enumerate(name) if char == "."]
    return [*((name[:k], name[k + 1 :]) for k in dots), (name, ())]


def build_tree(elements: Sequence[Any], max_depth: int = 64, *, case_sensitive: bool = True) -> SchemaTree:
    """The tree of a footer's list of SchemaElements (depth-first order, the root first). ``case_sensitive``: see
    :class:`SchemaTree`.

    Raises :class:`CorruptFileError` when the list does not describe one tree, :class:`LimitError` beyond
    ``max_depth``.
    """
    if not elements:
        raise CorruptFileError("the footer has no schema")
    root = Node(elements[0], None, 0)
    leaves: list[Node] = []
    end = _fill_flat(root, elements, leaves)
    if end is None:
        leaves.clear()
        end = _fill(root, elements, 1, leaves, max_depth)
    if end != len(elements):
        raise CorruptFileError(f"the schema lists {len(elements)} elements, but its tree uses only {end}")
    return SchemaTree(root, leaves, case_sensitive)


def _fill_flat(root: Node, elements: Sequence[Any], leaves: list[Node]) -> int | None:
    """Read a flat schema, the common case: all elements except the root are leaves. ``None`` if they are not."""
    count = len(elements) - 1
    if root.element.num_children != count or any(e.num_children for e in elements[1:]):
        return None
    for column, element in enumerate(elements[1:]):
        _check(element, is_leaf=True)
        leaves.append(Node(element, root, column))
    root.children = tuple(leaves)
    return count + 1


def _fill(node: Node, elements: Sequence[Any], at: int, leaves: list[Node], depth: int) -> int:
    """Read the children of ``node`` from ``elements[at:]``; returns the index after them."""
    if depth <= 0:
        raise LimitError("the schema nests too deeply: more than limits.max_schema_depth allows", column=node.dotted)
    count = node.element.num_children or 0
    if count < 0 or count > len(elements) - at:
        raise CorruptFileError(
            f"the schema group {node.name!r} declares {count} children, but only {len(elements) - at} elements are left"
        )
    children = []
    for _ in range(count):
        if at >= len(elements):
            raise CorruptFileError("the schema ends in the middle of a group")
        child = Node(elements[at], node, len(leaves))
        at += 1
        _check(child.element, child.is_leaf)
        if child.is_leaf:
            leaves.append(child)
        else:
            at = _fill(child, elements, at, leaves, depth - 1)
        children.append(child)
    node.children = tuple(children)
    return at


def _check(element: Any, is_leaf: bool) -> None:
    stated = element.repetition_type
    # A leaf without one is REQUIRED, as in other readers. A group without one may be of an unknown kind.
    if stated not in (REQUIRED, OPTIONAL, REPEATED) and not (stated is None and is_leaf):
        raise CorruptFileError(f"the schema has the unknown repetition type {stated}", column=str(element.name))
    if is_leaf and element.type is None:
        raise CorruptFileError("the schema element has neither a type nor children", column=str(element.name))
