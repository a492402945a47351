"""Converts a PySpark ``Column`` to a tree of :mod:`pyparq.filters.conditions`.

A classic session keeps it as a tree in the JVM, Spark Connect as a message. Neither is read as printed text.
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import Any

from pyparq.errors import FilterError
from pyparq.filters.conditions import Attribute, Call, Condition, Literal, Other
from pyparq.spark.translate import parsed

_SAME = {"=": "==", "!": "not"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def is_column(value: Any) -> bool:
    """Whether it is a ``pyspark.sql.Column``, of a classic session or of Connect."""
    return type(value).__name__ == "Column" and type(value).__module__.startswith("pyspark.sql.")


def taken(filters: Any, spark: Any) -> Any:
    """``filters``, a ``Column`` as a condition that can be pickled."""
    return condition_of(filters, spark) if is_column(filters) else filters


def condition_of(column: Any, spark: Any) -> Condition:
    """The condition that a ``Column`` is.

    Raises :class:`FilterError` where SQL text in it (``F.expr``) cannot be parsed.
    """
    if ".connect." in type(column).__module__:
        return _of_message(column.to_plan(spark.client))
    tree = getattr(column, "_jc", None)
    if tree is None:
        raise FilterError("this Column cannot be looked into: give the condition as SQL text")
    return _of_node(tree.node())


def _call(name: str, arguments: list[Condition]) -> Condition:
    name = _SAME.get(name.lower(), name.lower())
    if name == "like" and len(arguments) == 2:
        arguments.append(Literal("\\"))
    if name in ("negative", "-") and len(arguments) == 1 and isinstance(arguments[0], Literal):
        value = arguments[0].value
        return Literal(-value) if isinstance(value, (int, float)) else Call("negative", tuple(arguments))
    return Call(name, tuple(arguments))


# ---- classic ---------------------------------------------------------------------------------------------------------


def _of_node(node: Any) -> Condition:
    kind = node.getClass().getSimpleName()
    if kind == "UnresolvedAttribute":
        return Attribute(tuple(_items(node.nameParts())))
    if kind == "Literal":
        return _of_value(node.value(), str(node))
    if kind == "UnresolvedFunction" and not node.isDistinct() and not node.isUserDefinedFunction():
        return _call(node.functionName(), [_of_node(argument) for argument in _items(node.arguments())])
    if kind == "UnresolvedExtractValue":
        return Call("[]", (_of_node(node.child()), _of_node(node.extraction())))
    if kind == "SqlExpression":
        return parsed(node.expression())
    if kind == "Alias":
        return _of_node(node.child())
    if kind == "Cast" and node.dataType().sql() == "DATE":
        return Call("to_date", (_of_node(node.child()),))
    if kind == "ExpressionColumnNode" and node.expression().getClass().getSimpleName() == "AttributeReference":
        return Attribute((node.expression().name(),))
    return Other(str(node.sql()))


def _items(seq: Any) -> list[Any]:
    return [seq.apply(k) for k in range(seq.size())]


def _of_value(value: Any, text: str) -> Condition:
    """A literal, as py4j hands it over."""
    if not hasattr(value, "getClass"):
        return Literal(bytes(value) if isinstance(value, (bytes, bytearray)) else value)
    with suppress(ValueError, OverflowError):  # beyond the years of Python
        return _of_java(value, text)
    return Other(text, ())


def _of_java(value: Any, text: str) -> Condition:
    kind = value.getClass().getName()
    if kind in ("java.sql.Date", "java.time.LocalDate"):
        return Literal(dt.date.fromisoformat(value.toString()))
    if kind == "java.sql.Timestamp":
        seconds = value.getTime() // 1000
        return Literal(_EPOCH + dt.timedelta(seconds=seconds, microseconds=value.getNanos() // 1000))
    if kind == "java.time.LocalDateTime":
        return Literal(value.toString(), "timestamp_ntz")
    return Other(text, ())


# ---- Connect ---------------------------------------------------------------------------------------------------------


def _of_message(message: Any) -> Condition:
    kind = message.WhichOneof("expr_type")
    found = getattr(message, kind)
    if kind == "unresolved_attribute":
        return _names(found.unparsed_identifier)
    if kind == "literal":
        return _of_literal(found)
    if kind == "unresolved_function" and not found.is_distinct and not found.is_user_defined_function:
        return _call(found.function_name, [_of_message(argument) for argument in found.arguments])
    if kind == "unresolved_extract_value":
        return Call("[]", (_of_message(found.child), _of_message(found.extraction)))
    if kind == "expression_string":
        return parsed(found.expression)
    if kind == "alias":
        return _of_message(found.expr)
    if kind == "cast" and (found.type_str.lower() == "date" or found.type.WhichOneof("kind") == "date"):
        return Call("to_date", (_of_message(found.expr),))
    return Other(kind)


def _names(text: str) -> Condition:
    """``a.`b.c``` as its names."""
    names, name, quoted = [], "", False
    for char in text:
        if char == "`":
            quoted = not quoted
        elif char == "." and not quoted:
            names.append(name)
            name = ""
        else:
            name += char
    return Attribute((*names, name))


def _of_literal(found: Any) -> Condition:
    kind = found.WhichOneof("literal_type")
    value = getattr(found, kind)
    if kind == "null":
        return Literal(None)
    if kind == "decimal":
        from decimal import Decimal

        return Literal(Decimal(value.value))
    if kind == "date":
        return Literal(dt.date(1970, 1, 1) + dt.timedelta(days=value))
    if kind == "timestamp":
        return Literal(_EPOCH + dt.timedelta(microseconds=value))
    if kind == "timestamp_ntz":
        return Literal((_EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=None).isoformat(), "timestamp_ntz")
    known = ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary")
    return Literal(value) if kind in known else Other(f"a literal of type {kind}", ())
