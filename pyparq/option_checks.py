"""How an option is declared, the checks of its value, and what unknown options may have meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache, wraps
from types import NoneType
from typing import Any, TypeVar, cast

from pyparq.column_names import NOT_COMPUTED, as_list, is_name
from pyparq.errors import OptionError, by_each, near, near_matches
from pyparq.runtime.messages import called, warn_caller

T = TypeVar("T")

Check = Callable[[str, Any], None]
"""Takes the name of an option and its value. Raises :class:`OptionError` for a wrong one."""
GIB = 1 << 30


def option(default: Any, check: Check | None = None, *, help: str, is_list: bool = False) -> Any:
    """A field of a class of options. ``default``: ``dict`` is an empty one. ``is_list``: as text it may be names with
    commas between them."""
    said = {"help": " ".join(help.split()), "check": check, "is_list": is_list}
    return field(default_factory=dict, metadata=said) if default is dict else field(default=default, metadata=said)


def check_given(options: Any) -> None:
    """Check the options that are not the defaults."""
    for name, default, check in _checked(type(options)):  # type: ignore[arg-type]
        value = getattr(options, name)
        if value is not default:
            if check in (check_names, switch_by_name, switch, switch_or_values):
                object.__setattr__(options, name, value := as_list(value))
            check(name, value)


@cache
def _checked(options: Any) -> list[tuple[str, Any, Check]]:
    """The options that have a check, with their defaults."""
    found = [(f.name, f.default, f.metadata["check"]) for f in fields(options)]
    return [(name, {} if default is MISSING else default, check) for name, default, check in found if check is not None]


# ---- checks


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _fail(name: str, wanted: str, value: Any) -> None:
    raise OptionError(f"{name} must be {wanted}, not {value!r}")


def whole(least: int, most: int | None = None) -> Check:
    """A whole number. ``most``: a small number, or one of GiB in bytes."""

    def check(name: str, value: Any) -> None:
        if not is_int(value) or value < least:
            _fail(name, f"a whole number of at least {least}", value)
        if most is not None and value > most:
            _fail(name, f"at most {most // GIB} GiB" if most >= GIB else f"at most {most}", value)

    return check


def instance(kind: Any, shown: str, *words: str) -> Check:
    """An object of a class, or one of some words."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, kind) and value not in words:
            _fail(name, shown, value)

    return check


def choice(*choices: str) -> Check:
    """One of some texts."""
    return instance((), " or ".join(map(repr, choices)), *choices)


flag = instance(bool, "True or False")
flag_or_auto = instance(bool, "True, False or 'auto'", "auto")


def seconds(name: str, value: Any) -> None:
    if not is_number(value) or value < 0:
        _fail(name, "a number of seconds", value)


def _are_names(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(is_name, value))


def check_names(name: str, value: Any) -> None:
    if not _are_names(value):
        _fail(name, "a list of names", value)


def as_columns(columns: Any) -> Any:
    """The columns to read as a list. Raises :class:`OptionError` for a dict, and for one number."""
    if isinstance(columns, Mapping) or not hasattr(columns, "__iter__"):
        raise OptionError(f"columns must be a list of names or numbers, not {columns!r}; use {NOT_COMPUTED}")
    return [columns] if isinstance(columns, str) else list(columns)


def switch_by_name(name: str, value: Any, more: str = "") -> None:
    """``True``, ``False``, or the columns it is on for."""
    if not isinstance(value, bool) and not _are_names(value):
        _fail(name, f"True, False or a list of names{more}", value)


def switch(name: str, value: Any) -> None:
    """The same, or a dict of booleans by column."""
    if not isinstance(value, Mapping) or not all(isinstance(v, bool) for v in value.values()):
        switch_by_name(name, value, ", or a dict of names to booleans")


def switch_or_values(name: str, value: Any) -> None:
    """``True``, ``False`` (or ``None``), the columns it is on for, or a dict of values by column."""
    if value is not None and not isinstance(value, Mapping):
        switch_by_name(name, value, ", or a dict with columns as keys")


by_column = instance(Mapping, "a dict with columns as keys")
by_column_or_auto = instance((Mapping, NoneType), "'auto' or a dict with columns as keys", "auto")


# ---- unknown options


NOT_FOR_WRITING = by_each({
    "append": 'a Parquet file cannot grow: pyparq.write_dataset(data, folder, mode="append") adds a file to a folder',
    "allow_truncated_timestamps": "pyparq never truncates timestamps, so leave it out",
    "basename_template existing_data_behavior partition_by partition_cols partitioning": "this writes a single file. "
        "Use pyparq.write_dataset(data, folder, partition_cols=[...]) for a folder of many files",
    "coerce_timestamps": "give a schema with the unit, such as timestamp[us]",
    "columns": "every column of the data is written. Select columns before writing",
    "encryption_properties": "give encryption=pyparq.EncryptionProperties(...)",
    "flavor": "names are kept as they are, so leave it out",
    "object_encoding": "columns become what their values are. For another type give a schema of all columns, such as "
        "{'x': 'json?', 'n': 'int64?'}", "times": "give int96_timestamps=True for 'int96'",
    "store_decimal_as_integer": "give decimal_storage: 'smallest' stores short decimals as integers, as is done anyway",
    "row_group_offsets chunksize": "give row_group_size, or call write() of a ParquetWriter for each row group",
    "has_nulls": "leave it out: nulls take no space where there are none. Or give a schema: types without ? take none",
    "mode overwrite if_exists exist_ok": "an existing file is replaced when the new one is complete. "
        "pyparq.write_dataset(data, folder, mode='append') adds rows",
    "use_byte_stream_split": "give column_encoding={'x': 'BYTE_STREAM_SPLIT'}",
    "use_compliant_nested_type": "lists always have the standard structure, so leave it out",
    "version": "every type is written as it is, so leave it out",
    "write_batch_size": "give data_page_size or max_rows_per_page",
})  # fmt: skip
NOT_FOR_READING = by_each({
    "include_file_paths filename": "use pyparq.dataset(source, filename='path').read()", "index": "to_pandas() and "
        "set_index(name) of the frame", "categories": "give read_dictionary= to read_table() or ParquetFile()",
    "row_index_name file_row_number": "pyparq.polars.scan(source).with_row_index(name)",
    "n_rows nrows usecols": "give limit= or columns= to read_table() or scan()",
    "where predicate": "give filters= to read_table() or scan()",
    "dtype dtypes timezone binary_as_string": "cast() of the table, or pyparq.dataset(source, schema=...).read()",
    "dtype_backend use_nullable_dtypes as_pandas parse_dates": "use pyparq.pandas.read_parquet(source, ...)",
    "fs open_with credentials": "give storage_options= or filesystem=", "chunksize": "use iter_batches() of the file",
    "offset skip_rows": "use read_rows(start, stop) of the file", "glob": "a source may be a pattern: leave it out",
    "union_by_name allow_missing_columns": "columns that a file lacks are null there, so leave it out",
    "extra_columns": "give columns= or schema= to leave columns out",
    "columns filters limit row_groups rows": "give it to read_table(), or to read() or scan() of an "
        "open file or dataset",
    "decryption_properties": "give decryption=pyparq.DecryptionProperties(...)",
    "hive_partitioning hive_schema partition_cols partitioning": "folders called name=value become columns by "
        "themselves. For anything else use pyparq.dataset(source, partitioning=...).read()",
    "ignore_metadata": "to_pandas() decides what becomes of pandas' metadata, so leave it out",
    "ignore_prefixes": "names that begin with _ or . are passed over, so leave it out",
    "schema": "give it to pyparq.dataset(source, schema=...).read()",
    "thrift_container_size_limit thrift_string_size_limit": "give limits=pyparq.Limits(...)",
    "promote promote_options": "the tables need the same columns, but files do not: pyparq.dataset([...]).read(); or "
        "pyarrow.concat_tables([t.to_arrow(), ...], promote_options='default')",
    "use_pandas_metadata": "to_pandas() always uses the pandas metadata, so leave it out",
})  # fmt: skip
"""Options of pyarrow that have no counterpart, and what to do without."""
OF_OTHERS = by_each({
    "nrows n_rows": "limit", "usecols": "columns", "filter predicate": "filters", "root_path base_dir where": "path",
    "partition_by partition_on": "partition_cols", "max_rows_per_group": "row_group_size",
    "statistics stats": "write_statistics", "metadata custom_metadata": "key_value_metadata", "table batch": "data",
    "use_deprecated_int96_timestamps": "int96_timestamps", "page_checksum_verification": "verify_checksums",
    "preserve_index write_index": "index", "include_file_paths": "filename", "level": "compression_level",
    "checksum": "write_page_checksum", "path": "source filename", "files": "source",
})  # fmt: skip
"""Names of arguments in other libraries, which are taken for ours."""
_SAY_NOTHING = {"format": "parquet", "hive_partitioning": True, "version": "2.6", "use_compliant_nested_type": True,
                "row_filter": True, "has_nulls": True, "missing_columns": "insert", "times": "int64",
                "object_encoding": "infer", "use_nullable_dtypes": False, "use_threads": True,
                "use_pandas_metadata": True, "use_legacy_dataset": False, "partitioning_flavor": "hive"}  # fmt: skip
"""Arguments of other libraries that are taken with the value that tells what is done anyway."""
_TUNE = {
    "buffer_size", "memory_map", "pre_buffer", "low_memory", "engine", "rechunk", "parallel", "use_statistics", "cache",
    "use_pyarrow",
}  # fmt: skip
"""Arguments that tune other libraries, and change nothing here."""


class UnknownArgument(OptionError, TypeError):
    """A keyword argument that the function does not have."""


def refuse_unknown(
    given: Mapping[str, Any],
    known: Collection[str],
    hints: Mapping[str, str],
    parameters: Sequence[str] = (),
    whose: str = "",
) -> dict[str, Any]:
    """The options that were given, by our names. Raises :class:`UnknownArgument` for the first name that is not known.
    ``parameters`` may have been meant, and so may those of the function that the user called. ``whose``: what to name
    in its place."""
    taken: dict[str, Any] = {}
    for name, value in given.items():
        real = name if name in known else OF_OTHERS.get(name, name)
        if real in {*taken, *given} - {name}:
            raise OptionError(f"{name!r} is another name of {real!r}, which is given too. Give only one of them")
        if real in known:
            taken[real] = value
        elif name not in _TUNE and _SAY_NOTHING.get(name, OF_OTHERS) != value:
            function, own = called()
            meant = _meant(name, [*known], [*parameters, *own], hints)
            raise UnknownArgument(f"{whose or function} has no option {name!r}{meant}")
    return taken


def _meant(name: str, known: Sequence[str], parameters: Sequence[str], hints: Mapping[str, str]) -> str:
    """What to write in place of ``name``: options, parameters and the names of others are searched together."""
    if name in hints and name not in parameters:
        return f"; {hints[name]}"
    found = near(name, [*known, *parameters, *hints])
    if found and found[0] in hints and found[0] not in parameters:
        return f"; did you mean {found[0]!r}? {hints[found[0]]}"
    return near_matches(name, [*known, *parameters], "options")


F = TypeVar("F", bound=Callable[..., Any])


def keywords(function: F) -> F:
    """A wrong keyword gets a sentence that says what it may have meant. Names of other libraries are taken."""
    code = function.__code__
    known = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    any_name = code.co_flags & inspect.CO_VARKEYWORDS

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for name in given.keys() - known if given else ():
            said = function.__qualname__.removesuffix(".__init__")
            new = next((new for new in OF_OTHERS.get(name, "").split() if new in known), None)
            if new in {*given, *code.co_varnames[: min(len(args), code.co_argcount)]}:
                raise OptionError(f"{name!r} is another name of {new!r}, which is given too. Give only one of them")
            if new:
                if name in ("where", "path", "files"):  # these were ours: they are taken until 1.0
                    warn_caller(f"{said}(): {name}= is called {new}= now", DeprecationWarning)
                given[new] = given.pop(name)
            elif not any_name and (name in _TUNE or _SAY_NOTHING.get(name, OF_OTHERS) == given[name]):
                del given[name]
            elif not any_name:
                if "." in said:  # a method, of the class that the user knows
                    said = f"{getattr(args[0], '__name__', type(args[0]).__name__)}.{function.__name__}"
                meant = _meant(name, sorted(known), (), NOT_FOR_READING)
                raise UnknownArgument(f"{said}() has no argument {name!r}{meant}")
        return function(*args, **given)

    return cast(F, call)


def methods_told(cls: type[T]) -> type[T]:
    """The same for all public methods of a class that take anything or convert; for the making alone of a class of
    options."""
    for name, method in list(vars(cls).items()):
        if name != "__init__" if is_dataclass(cls) else name.startswith("_"):
            continue
        code = getattr(method, "__code__", None)
        if code is not None and (name.startswith("to_") or code.co_argcount + code.co_kwonlyargcount > 1):
            setattr(cls, name, keywords(method))
        elif isinstance(method, classmethod):
            setattr(cls, name, classmethod(keywords(method.__func__)))
    return cls
