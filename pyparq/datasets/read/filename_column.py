"""The column with the name of each row's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyparq.arrow.column_operations import take
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching
from pyparq.errors import OptionError
from pyparq.format.types import DataType, Field


def with_filenames(partitions: Partitions, files: Sequence[DataFile], name: str, case_sensitive: bool) -> Partitions:
    """The partition columns, and behind them the file's name: one combination of values per file."""
    if Matching(case_sensitive=case_sensitive).has(partitions.names, name):
        raise OptionError(f"the column of file names cannot be called {name!r}: a partition has this name")
    columns = [take(column, partitions.of_file) for column in partitions.columns]
    columns.append(column_from_list([_valid(file.name) for file in files], name, DataType("u")))
    fields = (*partitions.fields, Field(name, DataType("u"), False))
    return replace(partitions, fields=fields, columns=tuple(columns), of_file=np.arange(len(files)))


def _valid(name: str) -> str:
    """The name as valid UTF-8, which a string column needs. A name on disk need not be."""
    return name.encode("utf-8", "backslashreplace").decode()
