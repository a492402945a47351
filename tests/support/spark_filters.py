"""Random conditions in Spark's SQL, and a table with a column of each type to try them on."""

from __future__ import annotations

import random

TABLE = """
    select
        id, if(id % 7 = 0, null, cast(id % 11 - 5 as tinyint)) as t, if(id % 5 = 0, null, cast(id % 23 as int)) as i,
        id * 900719925474099 as l, cast(id % 9 / 4 as float) as f,
        case id % 8 when 0 then null when 1 then double('NaN') when 2 then -0.0D when 3 then double('Infinity')
            else id / 10 end as d,
        cast(id % 13 - 3.25 as decimal(9, 2)) as m, cast(id % 13 * 1.5 as decimal(30, 3)) as w,
        if(id % 6 = 0, null, concat(chr(97 + id % 5), if(id % 4 = 0, '%', 'x'), id % 3)) as s, id % 3 = 0 as b,
        if(id % 10 = 0, null, date_add(date '2024-03-08', cast(id % 6 as int))) as day,
        if(id % 10 = 1, null, timestamp '2024-03-09 22:00:00' + make_interval(0, 0, 0, 0, 0, 20 * id)) as ts,
        timestamp_ntz '2024-03-09 22:00:00' + make_interval(0, 0, 0, 0, 0, 20 * id) as ntz,
        if(id % 9 = 0, null, named_struct('x', cast(id % 4 as int), 'A b', concat('v', id % 2))) as st,
        if(id % 8 = 0, null, array(cast(id % 4 as int), if(id % 3 = 0, null, 2))) as a,
        if(id % 8 = 1, null, map('k', cast(id % 5 as int), concat('k', id % 3), 7)) as kv,
        unhex(hex(id % 5)) as `bin col`
    from range(400)
"""

_NUMBERS = ("t", "i", "l", "f", "d", "m", "w", "st.x", "id", "ST.x", "st['x']")
_WHOLE = ("0", "1", "-1", "2", "3", "7", "22", "2S", "1L", "900719925474099", "9007199254740993", "3000000000")
_DECIMALS = ("0.5", "0.25", "-3.25", "1.50", "2.0", "0.1", "1.5BD", "1e0", "2.5D", "0.1D", "1e30", "double('NaN')")
_TEXT_NUMBERS = (
    "'2'",
    "'7'",
    "'+5'",
    "'007'",
    "'-1'",
    "'3000000000'",
    "'900719925474099'",
    "'9007199254740993'",
    "'2.5'",
    "' 3'",
)
"""Texts beside numbers: Spark makes numbers of them. Of which type depends on ANSI mode, the column and the others."""
_TEXTS = ("'ax1'", "'b%2'", "''", "'c'", '"ax1"', "'zz'")
_DAYS = (
    "'2024-03-10'",
    "date '2024-03-10'",
    "date'2024-03-11'",
    "'2024-03-09'",
    "timestamp '2024-03-10 00:00:00'",
    "'2024-03-10 05:00:00'",
    "timestamp '2024-03-10 05:00:00'",
    "timestamp_ntz '2024-03-10 00:00:00'",
)
_MOMENTS = (
    "'2024-03-10 02:30:00'", "timestamp '2024-03-10 01:40:00'", "'2024-03-10T03:00'", "'2024-03-10 07:00:00Z'",
    "timestamp '2024-03-10 07:20:00+00:00'", "date '2024-03-11'", "'2024-03-10'", "timestamp_ntz '2024-03-10 04:00:00'",
    "'2024-03-10 03:20:00'", "'2024-03-10 03:20:00.0'", "timestamp_ntz '2024-03-10 02:30:00'",
    "timestamp '2024-03-10 02:40:00'",
)  # fmt: skip
_OPERATORS = ("=", "<", "<=", ">", ">=", "!=", "<>", "<=>", "==")


class Conditions:
    """Conditions on the columns of :data:`TABLE`, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one(self, depth: int = 3) -> str:
        pick = self._random.random()
        if depth == 0 or pick < 0.45:
            return self._test()
        if pick < 0.6:
            return f"not ({self.one(depth - 1)})"
        word = self._random.choice(("and", "or"))
        return f"({self.one(depth - 1)}) {word} {self.one(depth - 1) if pick < 0.7 else self._test()}"

    def _any(self, *given: str) -> str:
        return self._random.choice(given)

    def _value(self, column: str) -> str:
        name = column.lower()
        if self._random.random() < 0.04:
            return "null"
        if name in ("s", "st.`a b`"):
            return self._any(*_TEXTS)
        if name == "day":
            return self._any(*_DAYS)
        if name == "ts":
            return self._any(*_MOMENTS)
        if name == "ntz":
            return self._any("'2024-03-10 02:20:00'", "timestamp_ntz '2024-03-10 22:00:00'", "'2024-03-12'", *_MOMENTS)
        if name == "b":
            return self._any("true", "false")
        if name == "`bin col`":
            return self._any("X'31'", "X'3'", "X''", "'1'")
        floats = name in ("f", "d")
        if self._random.random() < 0.15:
            return self._any(*_TEXT_NUMBERS)
        return self._any(*_WHOLE, *(_DECIMALS if floats else _DECIMALS[:8]))

    def _like(self, column: str) -> str:
        """A column whose values can be brought to one type with this one's; mostly the column itself."""
        if self._random.random() < 0.6:
            return column
        return next((self._any(*kin) for kin in (_NUMBERS, ("day", "ts", "ntz")) if column.lower() in kin), column)

    def _column(self) -> str:
        return self._any(*_NUMBERS, "s", "S", "st.`A b`", "day", "ts", "ts", "ntz", "b", "`bin col`", "`s`")

    def _test(self) -> str:
        column, word = self._column(), self._any("", "", "not ")
        plain = column.strip("`") if column == "`s`" else column
        kind = self._random.randrange(14)
        if kind == 0:
            return f"{column} is {word}null"
        if kind in (1, 10):
            items = (self._value(self._like(plain)) for _ in range(self._random.randint(1, 4)))
            return f"{column} {word}in ({', '.join(items)})"
        if kind == 2:
            return f"{column} {word}between {self._value(plain)} and {self._value(plain)}"
        if kind == 3:
            pattern = self._any("'a%'", "'ax1'", "'b\\\\%%'", "'%'", "'c!%%' escape '!'")
            return f"s {word}like {pattern}"
        if kind == 4:
            return self._any("isnan(d)", "isnull(i)", "isnotnull(st)", "b", "not b", "startswith(s, 'a')", "b is true")
        if kind == 5:
            return self._any("array_contains(a, 2)", "array_contains(a, 1)", "not array_contains(a, 3)")
        if kind == 6:
            return f"year({self._any('day', 'ts')}) {self._any(*_OPERATORS[:7])} {self._any('2023', '2024', '2025')}"
        if kind == 7:
            made = self._any("date(ts)", "to_date(ts)", "cast(ts as date)", "to_date(day)")
            return f"{made} {self._any(*_OPERATORS[:7])} {self._any(*_DAYS[:4])}"
        if kind == 8:
            name, value = self._any(("i", "0"), ("m", "1.5"), ("s", "'c'"), ("t", "7")), None
            value = self._any(name[1], self._value(name[0]))
            return f"coalesce({name[0]}, {name[1]}) {self._any(*_OPERATORS[:7])} {value}"
        if kind == 9:
            return f"{self._value(plain)} {self._any(*_OPERATORS)} {column}"
        return f"{column} {self._any(*_OPERATORS)} {self._value(plain)}"
