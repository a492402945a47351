"""The catalog beside a dataset: which files and row groups have which keys (docs/catalog.md).

It lies in the folder ``_pyparq_catalog`` of the dataset. :func:`pyparq.index_dataset` writes it; scans of the dataset
ask it. ``layout`` is what its files are called and state, ``place`` where they lie, ``checked_source`` how their bytes
are proven, ``file_table``, ``key_table`` and ``bounds_table`` what they hold, ``catalog`` the whole, and ``answers``
what it says about a filter.
"""
