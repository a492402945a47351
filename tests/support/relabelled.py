"""Files whose columns say that they are of another type than they were written as: other writers' mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize

SIZES = {8: tt.ConvertedType.INT_8, 16: tt.ConvertedType.INT_16}
UNSIGNED = {8: tt.ConvertedType.UINT_8, 16: tt.ConvertedType.UINT_16}


INT96 = "INT96"


def relabel(path: Path, types: Mapping[str, pa.DataType | str]) -> None:
    """Give the leaves of these names another type: a decimal, an integer of 8 or 16 bits, or INT96 (which binary values
    of 12 bytes are as they stand)."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    meta, _ = deserialize(tt.FileMetaData, data[-8 - size : -8])
    meta.key_value_metadata = None
    found = [element for element in meta.schema if element.name in types and element.type is not None]
    assert {element.name for element in found} == set(types)
    for element in found:
        type_ = types[element.name]
        if isinstance(type_, str):
            element.type, element.type_length = tt.Type.INT96, None
            for group in meta.row_groups:
                for chunk in group.columns:
                    if chunk.meta_data.path_in_schema[-1] == element.name:
                        chunk.meta_data.type = tt.Type.INT96
        elif pa.types.is_decimal(type_):
            element.converted_type = tt.ConvertedType.DECIMAL
            element.precision, element.scale = type_.precision, type_.scale
            element.logicalType = tt.LogicalType(DECIMAL=tt.DecimalType(scale=type_.scale, precision=type_.precision))
        else:
            bits, signed = type_.bit_width, pa.types.is_signed_integer(type_)
            element.converted_type = (SIZES if signed else UNSIGNED)[bits]
            element.logicalType = tt.LogicalType(INTEGER=tt.IntType(bitWidth=bits, isSigned=signed))
    footer = serialize(meta)
    path.write_bytes(data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
