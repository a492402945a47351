"""The files of a folder by the columns that they have, for jobs that replace files.

A table of Spark's catalog gives a column's DEFAULT for files that do not have the column. A new file with nulls in its
place would say null for good, so new files are made of files that have the same columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyparq.datasets.common_schema import tree_of
from pyparq.datasets.dataset import dataset, files_of
from pyparq.datasets.scan import DatasetPlan
from pyparq.datasets.write.job_sources import place_of
from pyparq.format.types import Schema
from pyparq.maintenance.kept_storage import ROW_METADATA, storage_kept
from pyparq.option_values import sort_keys
from pyparq.read.footers.open_file import OpenFile
from pyparq.spark.keys import keys_of


@dataclass(frozen=True)
class Columns:
    """The top-level columns of some files."""

    names: frozenset[str]
    """In lower case, unless the session tells names apart by case."""
    case_sensitive: bool
    described: bytes | None = field(default=None, compare=False)
    """Spark's own schema of the first of these files."""

    @staticmethod
    def of(file: OpenFile, case_sensitive: bool) -> Columns:
        names = (node.name for node in file.tree.root.children)
        return Columns(
            frozenset(name if case_sensitive else name.lower() for name in names),
            case_sensitive,
            file.key_values.get(ROW_METADATA.encode()),
        )

    def has(self, name: str) -> bool:
        """Whether there is a column of this name, or one that has the field of this dotted name."""
        name = name if self.case_sensitive else name.lower()
        return name in self.names or name.split(".")[0] in self.names

    def narrowed(self, plan: DatasetPlan, places: Collection[str]) -> DatasetPlan:
        """The plan of the files in ``places`` alone, which have these columns. Its rows have no others."""
        header = plan.header
        inner = {f.name for f in header.partitions}
        kept = [f for f in header.result.fields if f.name in inner or self.has(f.name)]
        metadata = {key: value for key, value in header.result.metadata.items() if key != ROW_METADATA.encode()}
        if self.described is not None:
            metadata[ROW_METADATA.encode()] = self.described
        if 0 < len(kept) < len(header.result.fields):
            names, tree = [f.name for f in kept], tree_of(header.schema)
            columns = [(name,) for name in names] if header.columns is None else header.columns
            own = [name for name in columns if tree.find(name).path[0] in names]
            header = replace(header, columns=own, result=Schema(tuple(kept), metadata))
        else:
            header = replace(header, result=replace(header.result, metadata=metadata))
        return replace(plan, header=header, files=tuple(f for f in plan.files if f.where in places)).trimmed()


def columns_of_files(
    folder: str, case_sensitive: bool, decryption: str | None, storage_options: Any
) -> dict[Columns, frozenset[str]]:
    """The absolute paths or URLs of the files of a folder, by their columns. Reads all footers."""
    ds = files_of(dataset(folder, decryption=keys_of(decryption), storage_options=storage_options))
    found: dict[Columns, list[str]] = {}
    for k, file in ds.open_all(range(len(ds.found.files))):
        found.setdefault(Columns.of(file, case_sensitive), []).append(place_of(ds.found.files[k]))
    return {columns: frozenset(places) for columns, places in found.items()}


def options_for(
    options: Mapping[str, Any], whole: Schema, own: Schema, without: Collection[str] = ()
) -> dict[str, Any]:
    """Write options that name columns of ``whole``, for files that have those of ``own`` alone. They keep the storage
    that ``own`` tells of; ``without``: columns that become names of folders."""
    missing = set(whole.names) - set(own.names)
    if missing:
        options = {name: _without(value, name, whole, missing) for name, value in options.items()}
    return storage_kept(own, options, without)


_SORTS = ("sort_by", "sorting_columns")


def _without(value: Any, option: str, whole: Schema, missing: Collection[str]) -> Any:
    tree = tree_of(whole)

    def is_kept(name: Any) -> bool:
        node = tree.leaves[name] if isinstance(name, int) else tree.find(name)
        return node.path[0] not in missing

    if option in _SORTS:
        return [replace(key, name=_path(tree, key.name)) for key in sort_keys(value) if is_kept(key.name)]
    if option == "key_value_metadata":
        return value
    if isinstance(value, Mapping):
        return {name: inner for name, inner in value.items() if is_kept(name)}
    return [name for name in value if is_kept(name)] if isinstance(value, (list, tuple, set, frozenset)) else value


def _path(tree: Any, name: Any) -> Any:
    return tree.leaves[name].path if isinstance(name, int) else name
