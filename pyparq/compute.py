"""``pyarrow.compute``'s names, by pyarrow where it is installed: ``import pyparq.compute as pc``. Filters take its
expressions. Without pyarrow there is ``field``, which is :func:`pyparq.col`."""

from typing import Any

from pyparq.filters.expression import col
from pyparq.runtime.lazy_import import load


def __getattr__(name: str) -> Any:
    try:
        return getattr(load("pyarrow.compute"), name)
    except ImportError:
        if name == "field":
            return col
        raise AttributeError(f"pyparq.compute.{name} needs pyarrow: pip install pyarrow") from None
