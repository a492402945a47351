"""What values of options are checked to be, and what unknown options may have meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyparq.column_names import is_name
from pyparq.errors import OptionError, near, near_matches


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_int(name: str, value: Any, least: int) -> None:
    if not is_int(value) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")


def check_switch(name: str, value: Any, per_column: bool) -> None:
    """``True``, ``False``, or the columns it is on for, as names or (``per_column``) as a dict of booleans."""
    if isinstance(value, bool):
        return
    if isinstance(value, Mapping) and per_column and all(isinstance(v, bool) for v in value.values()):
        return
    if isinstance(value, (list, tuple, set, frozenset)) and all(is_name(v) for v in value):
        return
    more = ", or a dict of names to booleans" if per_column else ""
    raise OptionError(f"{name} must be True, False or a list of names{more}, not {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")


_NO_DATASETS = (
    "this writes a single file. Use pyparq.write_dataset(data, folder, partition_cols=[...]) for a folder of many files"
)
NOT_FOR_WRITING = {
    "allow_truncated_timestamps": "pyparq never truncates timestamps, so leave it out",
    "basename_template": _NO_DATASETS,
    "coerce_timestamps": "give a schema with the unit, such as timestamp[us]",
    "columns": "every column of the data is written. Select columns before writing",
    "encryption_properties": "give encryption=pyparq.EncryptionProperties(...)",
    "engine": "pyparq is the engine, so leave it out",
    "existing_data_behavior": _NO_DATASETS,
    "flavor": "names are kept as they are, so leave it out",
    "mode": "an existing file is replaced when the new one is complete, so leave it out",
    "partition_by": _NO_DATASETS,
    "partition_cols": _NO_DATASETS,
    "partitioning": _NO_DATASETS,
    "use_byte_stream_split": "give column_encoding={'x': 'BYTE_STREAM_SPLIT'}",
    "use_compliant_nested_type": "lists always have the standard structure, so leave it out",
    "version": "every type is written as it is, so leave it out",
    "write_batch_size": "give data_page_size or max_rows_per_page",
}
_OF_A_DATASET = (
    "folders called name=value become columns by themselves. For anything else use "
    "pyparq.dataset(source, partitioning=...).read()"
)
_OF_A_SCAN = "it is not an option for opening a file. Give it to read() or scan() of the open file, or to read_table()"
NOT_FOR_READING = {
    "buffer_size": "only the needed bytes are read, so leave it out",
    "columns": _OF_A_SCAN,
    "decryption_properties": "give decryption=pyparq.DecryptionProperties(...)",
    "engine": "pyparq is the engine, so leave it out",
    "filters": _OF_A_SCAN,
    "hive_partitioning": _OF_A_DATASET,
    "hive_schema": _OF_A_DATASET,
    "ignore_metadata": "to_pandas() decides what becomes of pandas' metadata, so leave it out",
    "ignore_prefixes": "names that begin with _ or . are passed over, so leave it out",
    "limit": _OF_A_SCAN,
    "low_memory": "only the needed bytes are read. To read batch by batch, use ParquetFile(...).scan(...).batches()",
    "memory_map": "only the needed bytes are read, so leave it out",
    "page_checksum_verification": "here it is called verify_checksums, and it is on by default",
    "partition_cols": _OF_A_DATASET,
    "partitioning": _OF_A_DATASET,
    "pre_buffer": "nearby byte ranges are always read together, so leave it out",
    "row_groups": _OF_A_SCAN,
    "rows": _OF_A_SCAN,
    "schema": "give it to pyparq.dataset(source, schema=...).read()",
    "thrift_container_size_limit": "give limits=pyparq.Limits(...)",
    "thrift_string_size_limit": "give limits=pyparq.Limits(...)",
    "use_pandas_metadata": "to_pandas() always uses the pandas metadata, so leave it out",
}
"""Options of pyarrow that have no counterpart, and what to do without."""


def refuse_unknown(
    kind: str, given: Mapping[str, Any], known: Sequence[str], parameters: Sequence[str], hints: Mapping[str, str]
) -> None:
    for name in given:
        if name not in known:
            raise OptionError(f"unknown {kind} option {name!r}{_meant(name, known, parameters, hints)}")


def _meant(name: str, known: Sequence[str], parameters: Sequence[str], hints: Mapping[str, str]) -> str:
    """What to write in place of ``name``: options, parameters and the names of others are searched together."""
    if name in hints:
        return f"; {hints[name]}"
    found = near(name, [*known, *parameters, *hints])
    if found and found[0] in hints and found[0] not in parameters:
        return f"; did you mean {found[0]!r}? {hints[found[0]]}"
    return near_matches(name, [*known, *parameters], "options")
