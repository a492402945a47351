"""``pyarrow.dataset``'s names: ``import pyparq.dataset as ds`` is the function :func:`pyparq.dataset`, with these."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pyparq.arrow.schema.from_text import schema as schema_of
from pyparq.datasets.dataset import dataset
from pyparq.datasets.write.write_dataset import write_dataset as write_own
from pyparq.filters.expression import col


def write_dataset(data: Any, base_dir: Any, *, partitioning: Any = None, **options: Any) -> Any:
    """:func:`pyparq.write_dataset`, with what :func:`partitioning` gives for folders called ``name=value``."""
    if partitioning is not None:
        options["partition_cols" if isinstance(partitioning, Mapping) else "partitioning"] = list(partitioning)
    return write_own(data, base_dir, **options)


def partitioning(schema: Any = None, field_names: Sequence[str] | None = None, flavor: str | None = None) -> Any:
    """What ``partitioning=`` takes: for folders called ``name=value`` (``"hive"``), or for those that are values."""
    if schema is None:
        return flavor if field_names is None else list(field_names)
    pairs = [(column.name, column.type) for column in schema_of(schema)]
    return dict(pairs) if flavor == "hive" else pairs


vars(dataset).update(dataset=dataset, field=col, partitioning=partitioning, write_dataset=write_dataset)
# The import puts this into the package, where the function is.
sys.modules[__name__] = dataset  # type: ignore[assignment]
