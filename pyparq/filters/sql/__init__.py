"""Conditions in SQL text (the part behind ``WHERE``) as filter expressions. Needs sqlglot (the extra ``cli``)."""
