"""The catalog beside a dataset: which files and row groups have which keys (docs/catalog.md).

It lies in the folder ``_pyparq_catalog`` of the dataset. ``layout`` is what its files are called, state and where they
lie; ``file_table``, ``key_table`` and ``bounds_table`` what they hold; ``catalog`` the whole, and ``answers`` what it
says about a filter. :func:`pyparq.index_dataset` makes it: ``building`` takes the entries from files, and
``index_dataset`` keeps the whole up to date.
"""
