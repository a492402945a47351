"""The modules of ``pytest -m quick``: something of every package, in a minute on two cores."""

from __future__ import annotations

QUICK = frozenset(
    [
        # arrow
        "test_arrow_import",
        "test_bad_text",
        "test_batch_types",
        "test_columns",
        "test_convert",
        "test_ingest",
        "test_ingest_edges",
        "test_schema_arrow",
        "test_schema_parse",
        "test_tables",
        "test_types_annotations",
        "test_types_arrow_schema",
        "test_types_polars",
        "test_types_storage",
        # cli
        "test_cli_datasets",
        "test_cli_inspect",
        "test_cli_verbs",
        "test_encryption_cli",
        # datasets
        "test_catalog_trips",
        "test_dataset_layouts",
        "test_dataset_plan",
        "test_dataset_summary",
        "test_datasets",
        "test_managed_tables",
        "test_partition_values",
        # encryption
        "test_encryption_aad",
        "test_encryption_corpus",
        "test_encryption_keys",
        # filters
        "test_computed_filters",
        "test_filter_bind",
        "test_foreign_filters",
        "test_filter_many",
        "test_geospatial",
        "test_nested_filters",
        "test_variant_paths",
        # format
        "test_footer",
        "test_int96_range",
        "test_legacy_values",
        "test_thrift_codec",
        "test_thrift_tree",
        # index
        "test_bad_indexes",
        "test_bloom",
        "test_order",
        "test_page_index",
        "test_sizing",
        "test_statistics",
        # interop
        "test_corpus_whole",
        "test_foreign",
        "test_foreign_types",
        # io
        "test_given_systems",
        "test_merged_ranges",
        "test_read_windows",
        "test_remote_versions",
        "test_urls",
        "test_write_sink",
        # kernels
        "test_fuzz_corpora",
        "test_kernels",
        "test_kernels_alp",
        "test_kernels_chunks",
        "test_kernels_codes",
        "test_kernels_counting",
        "test_kernels_delta",
        "test_kernels_masks",
        "test_kernels_order",
        "test_kernels_seal",
        "test_kernels_snappy_write",
        "test_kernels_write_arrays",
        "test_lzo",
        # maintenance
        "test_footer_lies",
        "test_rewrite_int96",
        "test_rewrite_row_metadata",
        "test_verify_hostile",
        # project
        "test_architecture",
        "test_docs_architecture",
        "test_docs_indexes",
        "test_docs_links",
        "test_docs_tables",
        "test_status",
        # pictures
        "test_file_map",
        # read
        "test_chunk_pages",
        "test_decoder",
        # runtime
        "test_printing",
        "test_threads",
        # spark
        "test_spark_arrivals",
        "test_spark_ordering",
        # write
        "test_write_bloom",
        "test_write_codes",
        "test_write_indexes",
        "test_write_options",
        "test_write_times",
    ]
)
"""Names of modules, whichever folder they are in: the quickest per test that were measured, and those of the house."""

SLOW = ("slow", "fuzz", "sanitize", "cluster")
"""Markers of tests that are not quick, whichever module they are in."""
