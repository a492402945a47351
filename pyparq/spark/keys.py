"""Keys for Spark's workers: the name of a function that makes them, never the keys themselves."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyparq.errors import OptionError


def check_factory(given: Any, option: str = "decryption") -> None:
    """Raise :class:`OptionError` unless ``given`` is ``None`` or a name such as ``"my_keys:for_reading"``."""
    if given is None or (isinstance(given, str) and all(given.partition(":"))):
        return
    raise OptionError(
        f'{option} must name a function that the workers can import, such as "my_keys:for_reading" (module:function), '
        "and that returns the properties. Keys themselves are not sent to Spark, where plans and options can be seen"
    )


def keys_of(factory: str | None, option: str = "decryption") -> Any:
    """What the function called ``factory`` returns; ``None`` for ``None``.

    Raises :class:`OptionError` where the process cannot import it.
    """
    if factory is None:
        return None
    module, _, name = factory.partition(":")
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"{option}={factory!r} cannot be imported here ({error}). The module must be installed on every worker, or "
            "be sent to them (spark.submit.pyFiles)"
        ) from error
    return make()
