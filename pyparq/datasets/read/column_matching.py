"""Decides which columns of different files are the same column: columns of one name, or of one field id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyparq.arrow.schema.extensions import FIELD_ID
from pyparq.errors import SchemaError
from pyparq.format.schema_node import Node
from pyparq.format.types import Field, Schema


class Named(NamedTuple):
    """A column or a nested field, with the attributes that matching needs."""

    name: str
    number: bytes | None
    """Its field id."""


def of_fields(fields: Iterable[Field]) -> list[Named]:
    return [Named(field.name, field.metadata.get(FIELD_ID)) for field in fields]


def of_nodes(nodes: Iterable[Node]) -> list[Named]:
    numbered = ((node.name, node.element.field_id) for node in nodes)
    return [Named(name, None if number is None else str(number).encode()) for name, number in numbered]


StoredNames = dict[bytes, tuple[str, ...]]
"""The names under which files may store columns, by field id."""


class Matching(NamedTuple):
    """The rule by which columns are matched. Nested fields follow it too."""

    by: str = "name"
    """``"name"`` or ``"field_id"``. A column without a field id is matched by its name."""
    case_sensitive: bool = True
    apart: frozenset[str] = frozenset()
    """Names in lower case that some file has in two spellings. For these names, case matters after all."""
    stored: Mapping[bytes, tuple[str, ...]] = {}
    """For a table whose log names its columns, the names in files by field id (:data:`StoredNames`). With
    ``by="field_id"`` they are asked for columns of files that have no id, and else for all columns."""
    of_table: bool = False
    """Whether the schema is that of a table, which may have widened its files' dates to timestamps."""

    def among(self, schemas: Iterable[Schema]) -> Matching:
        """The same rule for files with these schemas."""
        if self.case_sensitive:
            return self
        return self._replace(apart=frozenset(name for schema in schemas for name in _in_two_spellings(schema.fields)))

    def has(self, names: Iterable[str], name: str) -> bool:
        """Whether a column called ``name`` is one of ``names``."""
        if self.case_sensitive:
            return name in names
        return name.lower() in {other.lower() for other in names}

    def keys(self, columns: Sequence[Named]) -> list[object]:
        """The keys by which the columns of a file are matched. If several columns have one key, the first ones of all
        files match, the second ones match, and so on."""
        seen, keys = dict[object, int](), list[object]()
        for column in columns:
            key = self._key(column)
            seen[key] = seen.get(key, 0) + 1
            keys.append(key if seen[key] == 1 else (key, seen[key]))
        return keys

    def places(self, wanted: Sequence[Named], have: Sequence[Named]) -> list[int | None]:
        """For each of ``wanted``, its position in ``have``; ``None`` if it is missing.

        Raises :class:`SchemaError` if two of ``have`` differ by case only, and the wanted column may be either.
        """
        if self.stored:
            return [self._stored_place(column, have) for column in wanted]
        there = {key: k for k, key in enumerate(self.keys(have))}
        found = [there.get(key) for key in self.keys(wanted)]
        if not self.case_sensitive:
            for k, column in zip(found, wanted, strict=True):
                if k is not None:
                    self._check_one(column, have)
        return found

    def _stored_place(self, wanted: Named, have: Sequence[Named]) -> int | None:
        by_id = self.by == "field_id"
        if by_id and wanted.number is not None:
            for k, column in enumerate(have):
                if column.number == wanted.number:
                    return k
        names = self.stored.get(wanted.number or b"", ())
        if by_id and not names and have and all(column.number is None for column in have):
            raise SchemaError(
                "the file has no field ids, and the table has no name mapping (schema.name-mapping.default), so its "
                "columns cannot be told",
                column=wanted.name,
            )
        return next((k for k, c in enumerate(have) if c.name in names and not (by_id and c.number is not None)), None)

    def _key(self, column: Named) -> object:
        if self.by == "field_id" and column.number is not None:
            return column.number
        if self.case_sensitive:
            return column.name
        lower = column.name.lower()
        return column.name if lower in self.apart else lower

    def _check_one(self, wanted: Named, have: Sequence[Named]) -> None:
        key = self._key(wanted)
        names = list(dict.fromkeys(column.name for column in have if self._key(column) == key))
        if len(names) > 1 and not isinstance(key, bytes):
            raise SchemaError(
                f"the file has columns that differ only by case: {', '.join(map(repr, names))}. Give "
                "case_sensitive=True, or leave the file out",
                column=wanted.name,
            )


BY_NAME = Matching()


def _in_two_spellings(fields: Iterable[Field]) -> set[str]:
    """Names in lower case that neighbouring fields have in two spellings, at any depth."""
    spelled: dict[str, str] = {}
    found: set[str] = set()
    for field in fields:
        lower = field.name.lower()
        if spelled.setdefault(lower, field.name) != field.name:
            found.add(lower)
        found |= _in_two_spellings(field.type.children)
    return found
