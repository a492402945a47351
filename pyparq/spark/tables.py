"""Tables and views of pyparq in Spark's catalog: what Spark 4.3 tells a source in Python of them.

It hands the options of a table over when the table is made, and never again. So they are kept in the metadata of the
table's first column, which a reader gets. A writer gets the columns of the rows. These may come from another table, so
they do not say where to write to. The options of temporary views are always handed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError
from pyparq.spark.option_text import is_of_writes

_MARK = "pyparq.options"
"""Metadata of the first column of a table: the options that the table was made with."""

OF_TABLES = ("comment", "external", "is_managed_location", "location", "owner", "provider", "serialization.format")
"""Properties that Spark adds to the options of a table in its catalog."""


def with_options(schema: Any, options: Mapping[str, str]) -> Any:
    """The schema of a table for Spark's catalog, with the options that the table is made with."""
    from pyspark.sql.types import StructField, StructType

    kept = {name: text for name, text in options.items() if not name.startswith("option.") and name not in OF_TABLES}
    if "storage_options" in kept:
        raise OptionError(
            "storage_options would stand in the catalog: configure the file system on the workers instead"
        )
    first, *others = schema.fields
    metadata = {**first.metadata, _MARK: json.dumps(kept)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_of(schema: Any) -> dict[str, Any]:
    """The options that :func:`with_options` put into the schema of a table.

    Raises :class:`OptionError` for a table that was made otherwise.
    """
    found = _marked(schema)
    if not found:
        raise OptionError(
            "Spark has not told pyparq where this table lies. Make it without columns (CREATE TABLE … USING pyparq "
            "OPTIONS (path '…')), or as a view (CREATE TEMPORARY VIEW … USING pyparq OPTIONS (path '…'))"
        )
    return found


def _marked(schema: Any) -> dict[str, Any]:
    text = next((field.metadata[_MARK] for field in schema.fields if _MARK in field.metadata), "{}")
    return dict(json.loads(text))


def unmarked(schema: Any) -> Any:
    """The schema without the options of a table that its columns come from."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(f.name, f.dataType, f.nullable, {k: v for k, v in f.metadata.items() if k != _MARK})
            for f in schema.fields
        ]
    )


def options_of_write(given: Mapping[str, str], schema: Any) -> dict[str, str]:
    """The options of a write: those that are given, and, where the columns belong to a table in the same folder, what
    the table says of its files.

    Raises :class:`OptionError` where no folder is given.
    """
    options = {name.lower(): value for name, value in given.items()}
    if "path" not in options and "paths" not in options:
        raise OptionError(
            "Spark does not tell pyparq which table is written to. Name its folder: INSERT INTO t WITH ('path' = '…') "
            '…, df.writeTo("t").option("path", "…").append(), df.write.format("pyparq").mode("append").save("…"). Or '
            "insert into a view: CREATE TEMPORARY VIEW … USING pyparq OPTIONS (path '…')"
        )
    table = _marked(schema)
    if _folder(table.get("path")) != _folder(options.get("path")):
        return options
    return {**{name: value for name, value in table.items() if is_of_writes(name)}, **options}


def _folder(path: str | None) -> str | None:
    return path if path is None else path.removeprefix("file:").rstrip("/")
