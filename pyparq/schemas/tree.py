"""The schema of a file as a tree: nodes with levels, leaves with their column ordinal.

The flat list of SchemaElements in the footer is untrusted: child counts, depth and repetition are checked here.
Building is kept cheap per leaf (files with thousands of columns exist): types are resolved on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyparq.errors import ColumnNotFoundError, CorruptFileError, LimitError, near_matches
from pyparq.schemas.annotation import leaf_type
from pyparq.schemas.types import OPTIONAL, REPEATED, REQUIRED, DataType, LeafType, Physical, arrow_type

_PHYSICAL_NAMES = {int(p): p.name for p in Physical}
_REPETITIONS = {REQUIRED: "required", OPTIONAL: "optional", REPEATED: "repeated"}


class Node:
    """A schema node. ``max_def`` and ``max_rep`` are the levels at this node (README.md, Nested Encoding)."""

    __slots__ = (
        "_dotted", "_type", "children", "column", "element", "max_def", "max_rep", "name", "num_leaves", "parent",
        "repetition",
    )  # fmt: skip

    def __init__(self, element: Any, parent: Node | None, column: int) -> None:
        self.element = element
        self.parent = parent
        self.name: str = element.name
        repetition = element.repetition_type
        self.repetition: int = REQUIRED if parent is None or repetition is None else repetition
        self.max_def: int = 0 if parent is None else parent.max_def + (self.repetition != REQUIRED)
        self.max_rep: int = 0 if parent is None else parent.max_rep + (self.repetition == REPEATED)
        self.children: tuple[Node, ...] = ()
        self.column = column
        """Ordinal of this leaf (of the first leaf below, for a group): its place in ``RowGroup.columns``."""
        self.num_leaves = 1
        self._type: LeafType | None = None
        self._dotted: str | None = None

    @property
    def is_leaf(self) -> bool:
        return self.element.num_children is None or (self.element.num_children == 0 and self.element.type is not None)

    @property
    def path(self) -> tuple[str, ...]:
        """Names from below the root down to here."""
        names: list[str] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            names.append(node.name)
            node = node.parent
        return tuple(reversed(names))

    @property
    def dotted(self) -> str:
        if self._dotted is None:
            self._dotted = ".".join(self.path)
        return self._dotted

    @property
    def type(self) -> LeafType:
        """Physical type and annotation of a leaf; resolved once."""
        if self._type is None:
            found = leaf_type(self.element)
            if found.kind == "binary" and self._in_variant():
                found = replace(found, kind="variant")
            self._type = found
        return self._type

    @type.setter
    def type(self, leaf: LeafType) -> None:
        """Read (or write) the leaf as another type over the same stored values."""
        self._type = leaf

    def _in_variant(self) -> bool:
        """Below a group annotated with VARIANT, whose binary values have no order."""
        node = self.parent
        while node is not None:
            if node.is_variant:
                return True
            node = node.parent
        return False

    @property
    def is_variant(self) -> bool:
        """A group annotated with VARIANT."""
        logical = self.element.logicalType
        return logical is not None and logical.VARIANT is not None

    @property
    def arrow_type(self) -> DataType:
        """Arrow type of a leaf's values."""
        return arrow_type(self.type)

    @property
    def nullable(self) -> bool:
        return self.repetition == OPTIONAL

    def leaves(self) -> Iterator[Node]:
        """The leaves at or below this node, in column order."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    def __repr__(self) -> str:
        return f"<{'leaf' if self.is_leaf else 'group'} {self.dotted or self.name!r}>"


class SchemaTree:
    """The tree below ``root`` with its ``leaves`` in column order."""

    def __init__(self, root: Node, leaves: list[Node]) -> None:
        self.root = root
        self.leaves = leaves
        self._by_name: dict[str, Node] | None = None
        self._by_dotted: dict[str, Node] | None = None

    def __repr__(self) -> str:
        lines = [f"pyparq.SchemaTree ({len(self.leaves)} leaves)"]
        todo = [(child, 0) for child in reversed(self.root.children)]
        while todo:
            node, depth = todo.pop()
            number = node.element.type
            kind = _PHYSICAL_NAMES.get(number, f"type {number}") if node.is_leaf else "group"
            lines.append("  " * depth + f"{node.name}: {_REPETITIONS[node.repetition]} {kind}")
            todo += [(child, depth + 1) for child in reversed(node.children)]
        return "\n".join(lines)

    @property
    def names(self) -> list[str]:
        """Top-level names."""
        return [child.name for child in self.root.children]

    def top(self, name: str) -> Node:
        """The top-level node called ``name``; :class:`ColumnNotFoundError` if there is none, or several."""
        if self._by_name is None:
            self._by_name = {child.name: child for child in self.root.children}
        try:
            found = self._by_name[name]
        except KeyError:
            raise ColumnNotFoundError(f"no column {name!r}{near_matches(name, self.names)}") from None
        if len(self._by_name) != len(self.root.children) and self.names.count(name) > 1:
            raise ColumnNotFoundError(
                f"{self.names.count(name)} columns are called {name!r}: the name tells none of them"
            )
        return found

    def find(self, path: str | Sequence[str]) -> Node:
        """The node at a path: a tuple of names, or a dotted string (a name that holds dots wins over a path).

        Names are those of the schema's nodes (``ls.list.element.y``) or, shorter, of what these mean: ``ls.y`` for a
        field of the structs in a list, ``m.key`` for the keys of a map. Where both fit, the node's name wins.
        """
        if isinstance(path, str):
            names = (path,) if "." not in path or self._has_top(path) else tuple(path.split("."))
        else:
            names = tuple(path)
        try:
            node = self.top(names[0])
        except ColumnNotFoundError:
            if self._has_top(names[0]):
                raise  # several
            dotted = ".".join(names)
            known = self.names if len(names) == 1 else [leaf.dotted for leaf in self.leaves]
            raise ColumnNotFoundError(f"no column {dotted!r}{near_matches(dotted, known)}") from None
        found = _below(node, names[1:])
        if found is None:
            wanted = ".".join(names)
            raise ColumnNotFoundError(f"no column {wanted!r}{near_matches(wanted, [x.dotted for x in node.leaves()])}")
        return found

    def _has_top(self, name: str) -> bool:
        # Not by catching top()'s error: its message searches for near matches.
        return any(child.name == name for child in self.root.children)


def _below(node: Node, names: tuple[str, ...]) -> Node | None:
    """The node at a path below ``node``."""
    if not names:
        return node
    for child in node.children:
        if child.name == names[0] and (found := _below(child, names[1:])) is not None:
            return found
    from pyparq.schemas.shape import parts_of  # stands on this module

    for name, part in parts_of(node):
        if name == names[0] and (found := _below(part, names[1:])) is not None:
            return found
    return None


def build_tree(elements: Sequence[Any], max_depth: int = 64) -> SchemaTree:
    """The tree of a footer's list of SchemaElements (depth-first order, the root first).

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
        raise CorruptFileError(f"the schema lists {len(elements)} elements, its tree holds {end}")
    return SchemaTree(root, leaves)


def _fill_flat(root: Node, elements: Sequence[Any], leaves: list[Node]) -> int | None:
    """The common case, all elements but the root are leaves; ``None`` when they are not."""
    count = len(elements) - 1
    if root.element.num_children != count or any(e.num_children for e in elements[1:]):
        return None
    for column, element in enumerate(elements[1:]):
        _check(element, is_leaf=True)
        leaves.append(Node(element, root, column))
    root.children = tuple(leaves)
    root.num_leaves = count
    return count + 1


def _fill(node: Node, elements: Sequence[Any], at: int, leaves: list[Node], depth: int) -> int:
    """Read the children of ``node`` from ``elements[at:]``; returns the index after them."""
    if depth <= 0:
        raise LimitError("the schema nests too deeply", column=node.dotted)
    count = node.element.num_children or 0
    if count < 0 or count > len(elements) - at:
        raise CorruptFileError(f"schema group {node.name!r} claims {count} children, {len(elements) - at} are left")
    first, children = len(leaves), []
    for _ in range(count):
        if at >= len(elements):
            raise CorruptFileError("the schema ends inside a group")
        child = Node(elements[at], node, len(leaves))
        at += 1
        _check(child.element, child.is_leaf)
        if child.is_leaf:
            leaves.append(child)
        else:
            at = _fill(child, elements, at, leaves, depth - 1)
        children.append(child)
    node.children = tuple(children)
    node.num_leaves = len(leaves) - first
    return at


def _check(element: Any, is_leaf: bool) -> None:
    stated = element.repetition_type
    # A leaf without one is REQUIRED, as others read it. A group may rather be one of some other kind.
    if stated not in (REQUIRED, OPTIONAL, REPEATED) and not (stated is None and is_leaf):
        raise CorruptFileError(f"repetition type {stated}", column=str(element.name))
    if is_leaf and element.type is None:
        raise CorruptFileError("a schema element with neither a type nor children", column=str(element.name))
