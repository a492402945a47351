"""A dataset's schema as a tree of Parquet columns, in which filters and projections look up names."""

from __future__ import annotations

from dataclasses import replace

from pyparq.arrow.layouts import normal_field
from pyparq.arrow.schema.to_parquet import elements_from_schema
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import Field, Schema


def tree_of(schema: Schema, *, case_sensitive: bool = True) -> SchemaTree:
    """The tree of a schema.

    Types that Parquet does not have (intervals, run-end encoding, views) become columns of their stored form. Columns
    may share a name. ``case_sensitive``: see :class:`SchemaTree`.
    """
    stored = replace(schema, fields=tuple(map(_stored, schema.fields)))
    return build_tree(elements_from_schema(stored), case_sensitive=case_sensitive)


def _stored(field: Field) -> Field:
    plain = normal_field(field)
    return field if plain is field else replace(plain, metadata={**field.metadata, **plain.metadata})
