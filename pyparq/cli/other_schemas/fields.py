"""What all of them ask of a type."""

from __future__ import annotations

from pyparq.errors import UnsupportedError
from pyparq.format.types import DataType, Field


def stored(type_: DataType) -> DataType:
    """The type of the values: of a dictionary its entries', of run ends their values'."""
    if type_.dictionary is not None:
        return stored(type_.dictionary)
    return stored(type_.children[1].type) if type_.kind == "run_end" else type_


def entry_of(map_type: DataType) -> tuple[Field, Field]:
    """Key and value of a map."""
    key, value = map_type.children[0].type.children
    return key, value


def none_for(who: str, path: str, type_: DataType) -> UnsupportedError:
    return UnsupportedError(f"{who} has no type for {type_}. Leave the column out with --columns", column=path)
