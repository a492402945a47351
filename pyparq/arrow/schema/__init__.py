"""Schemas between Arrow and Parquet: types, the ``ARROW:schema`` metadata, schemas as text."""
