"""pyarrow's arguments as pyparq's: sources and targets, options, filters."""

from __future__ import annotations

import operator as compare
import os
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyparq.errors import OptionError
from pyparq.filters.given import ArrowTuples
from pyparq.io.locations import StorageOptions
from pyparq.io.locations import located as on_system
from pyparq.limits import Limits
from pyparq.option_checks import UnknownArgument

# ---- sources and targets


def located(where: Any, filesystem: Any) -> tuple[Any, Any]:
    """A path, URL or file, and the storage options for it. ``filesystem``: ``None``, or what
    :func:`pyparq.io.locations.located` takes.
    """
    if filesystem is None:
        return [_plain(one) for one in where] if isinstance(where, (list, tuple)) else _plain(where), None
    if isinstance(filesystem, StorageOptions):
        return where, filesystem
    if hasattr(where, "read") or hasattr(where, "write"):
        raise ValueError("filesystem passed but specified path is file-like, so there is nothing to open")
    place, options = on_system(where, filesystem)
    return _plain(place) if isinstance(filesystem, str) else place, options


def _plain(where: Any) -> Any:
    """A source as pyparq takes it: Buffers become memory, paths have ``~`` expanded."""
    if isinstance(where, str) or hasattr(where, "__fspath__"):
        path = os.fspath(where)
        if isinstance(path, str):
            path = path.removeprefix("fsspec+")
        if isinstance(path, str) and path.startswith("file://"):
            return path
        return os.path.expanduser(path) if isinstance(path, str) else path
    if hasattr(where, "to_pybytes") and not hasattr(where, "read"):
        return memoryview(where)
    return where


def check_source(source: Any, buffer_size: int = 0) -> None:
    """Raise :class:`TypeError` for what is no source, and :class:`ValueError` for a buffer of negative size."""
    if source is None or isinstance(source, (int, float)):
        raise TypeError(f"a source must be a path, a buffer or a file, not {type(source).__name__}")
    if buffer_size < 0:
        raise ValueError("Buffer size must be larger than zero")


def is_folder(where: Any) -> bool:
    return isinstance(where, (str, bytes)) and os.path.isdir(where)


def files_in(folder: str, ignored: Sequence[str]) -> list[str]:
    """All files below a folder, but for those with a name on their way that begins with one of ``ignored``."""
    found, prefixes = list[str](), tuple(ignored)
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(prefixes))
        found += [os.path.join(place, name) for name in sorted(names) if not name.startswith(prefixes)]
    return found


# ---- options

_TUNING_OF_READS = {
    "memory_map", "buffer_size", "pre_buffer", "thrift_string_size_limit", "thrift_container_size_limit", "metadata",
    "common_metadata",
}  # fmt: skip
"""Arguments of reads that only tune pyarrow, or tell it what pyparq finds itself."""


def check_tuning(function: str, tuning: dict[str, Any]) -> None:
    """Raise :class:`TypeError` for arguments that pyarrow does not have either."""
    unknown = tuning.keys() - _TUNING_OF_READS
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {min(unknown)!r}")


def read_options(
    coerce_int96_timestamp_unit: str | None = None,
    decryption_properties: Any = None,
    schema_depth_limit: int | None = None,
) -> dict[str, Any]:
    """Options of :class:`pyparq.ReadOptions`. Checksums are always verified: it costs little."""
    made: dict[str, Any] = {"coerce_int96_timestamp_unit": coerce_int96_timestamp_unit or "ns"}
    if decryption_properties is not None:
        made["decryption"] = decryption_properties
    if schema_depth_limit is not None:
        made["limits"] = Limits(max_schema_depth=schema_depth_limit)
    return made


_TUNING_OF_WRITES = {
    "write_batch_size", "writer_engine_version", "use_compliant_nested_type", "use_content_defined_chunking", "version",
    "flavor", "coerce_timestamps", "allow_truncated_timestamps",
}  # fmt: skip
"""Arguments of writes that only tune pyarrow, or that are obeyed before."""
_SAME = {
    "use_dictionary", "compression", "compression_level", "data_page_size", "data_page_version", "column_encoding",
    "dictionary_pagesize_limit", "store_schema", "write_page_index", "write_page_checksum", "sorting_columns",
    "write_time_adjusted_to_utc", "max_rows_per_page", "bloom_filter_options",
}  # fmt: skip
_RENAMED = {"encryption_properties": "encryption", "use_deprecated_int96_timestamps": "int96_timestamps"}


def write_options(given: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Options of :class:`pyparq.WriteOptions` for pyarrow's arguments of a writer. ``names``: of the columns.

    Raises :class:`OptionError` for unknown ones.
    """
    left = {name: value for name, value in given.items() if name not in _TUNING_OF_WRITES}
    if left.get("data_page_version", "1.0") not in ("1.0", "2.0"):
        raise OptionError(f"Unsupported Parquet data page version: {left['data_page_version']}")
    for name in ("dictionary_pagesize_limit", "data_page_size", "max_rows_per_page"):
        if not isinstance(left.get(name), (int, type(None))):
            raise TypeError(f"{name} must be a number, not {left[name]!r}")
    if "compression" in left:
        left["compression"] = _codecs(left["compression"], names)
    codec = str(left.get("compression", "")).lower()
    if codec.startswith("lz4"):
        left.pop("compression_level", None)  # pyarrow takes it
    if codec in ("none", "uncompressed") and left.get("compression_level") is not None:
        raise OptionError("uncompressed data has no compression level")
    made: dict[str, Any] = {
        "store_schema": True,
        "decimal_storage": "smallest" if left.pop("store_decimal_as_integer", False) else "fixed",
        "write_statistics": left.pop("write_statistics", True),
    }
    unknown = left.keys() - _SAME - _RENAMED.keys()
    if unknown:
        raise UnknownArgument(f"unexpected keyword argument {min(unknown)!r}")
    return made | {_RENAMED.get(name, name): value for name, value in left.items() if value is not None}


def _codecs(given: Any, names: Sequence[str]) -> Any:
    """``None`` is no compression. So have columns that a dict does not name."""
    if isinstance(given, dict):
        others = {(name,): "none" for name in names if name not in given}
        return others | {name: codec or "none" for name, codec in given.items()}
    return "none" if given is None else given


# ---- filters


def is_expression(filters: Any) -> bool:
    """Whether this is an expression of pyarrow's."""
    return type(filters).__module__.startswith("pyarrow")


def given_filters(filters: Any) -> Any:
    """Lists of tuples, as pyarrow allows them and with its meaning. Raises :class:`ValueError` for others. pyarrow's
    expressions stay as they are."""
    if filters is None or is_expression(filters) or isinstance(filters, ArrowTuples):
        return filters
    if not filters or not isinstance(filters, (list, tuple)):
        raise ValueError("Malformed filters: a list of tuples is needed, or a list of such lists")
    groups = [[filters]] if isinstance(filters[0], str) else [filters] if isinstance(filters[0], tuple) else filters
    for group in groups:
        for test in group:
            if not isinstance(test, (tuple, list)) or len(test) != 3:
                raise ValueError(f"Malformed filters: {test!r} is not (column, operator, value)")
            _check(*test)
    # Text as a collection stands for its letters, as in pyarrow.
    return ArrowTuples([[(n, op, list(v) if op in ("in", "not in") else v) for n, op, v in group] for group in groups])


def _check(name: Any, operator: str, value: Any) -> None:
    if operator not in (*_COMPARISONS, "in", "not in"):
        raise ValueError(f'"{operator}" is not a valid operator in predicates, such as {(name, "==", value)}')
    if operator not in ("in", "not in") and isinstance(value, (set, list, tuple, frozenset)):
        raise NotImplementedError(f"{(name, operator, value)}: only 'in' and 'not in' take a collection")


def filters_to_expression(filters: Any) -> Any:
    """Lists of tuples as an expression of ``pyarrow.compute``: ANDs, joined by OR.

    Example::

        import pyparq.parquet as pq

        print(pq.filters_to_expression([("dest", "==", "LAX"), ("flight", "<", 10)]))
    """
    import pyarrow.compute as pc

    given = given_filters(filters)
    if is_expression(given):
        return given
    groups = [[_expression(pc.field(name), *test) for name, *test in group] for group in given.groups]
    return reduce(compare.or_, [reduce(compare.and_, group) for group in groups])


_COMPARISONS = {"=": compare.eq, "==": compare.eq, "!=": compare.ne, "<": compare.lt, ">": compare.gt, "<=": compare.le,
                ">=": compare.ge}  # fmt: skip


def _expression(field: Any, operator: str, value: Any) -> Any:
    if operator in ("in", "not in"):
        found = field.isin(value)
        return found if operator == "in" else ~found
    return _COMPARISONS[operator](field, value)
