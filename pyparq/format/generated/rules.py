"""Made by thrift_idl/generate.py from parquet.thrift: edit those, not this."""

# One row per struct: (name, is a union, fields). One row per field: (id, name, compact protocol
# type, element type of a list or 0, index of the struct it holds or -1,
# 1 required + 2 UTF-8 text + 4 text that may be raw bytes).
RULES = (
    ('SizeStatistics', False, (
        (1, 'unencoded_byte_array_data_bytes', 6, 0, -1, 0),
        (2, 'repetition_level_histogram', 9, 6, -1, 0),
        (3, 'definition_level_histogram', 9, 6, -1, 0),
    )),
    ('BoundingBox', False, (
        (1, 'xmin', 7, 0, -1, 1),
        (2, 'xmax', 7, 0, -1, 1),
        (3, 'ymin', 7, 0, -1, 1),
        (4, 'ymax', 7, 0, -1, 1),
        (5, 'zmin', 7, 0, -1, 0),
        (6, 'zmax', 7, 0, -1, 0),
        (7, 'mmin', 7, 0, -1, 0),
        (8, 'mmax', 7, 0, -1, 0),
    )),
    ('GeospatialStatistics', False, (
        (1, 'bbox', 12, 0, 1, 0),
        (2, 'geospatial_types', 9, 5, -1, 0),
    )),
    ('Statistics', False, (
        (1, 'max', 8, 0, -1, 0),
        (2, 'min', 8, 0, -1, 0),
        (3, 'null_count', 6, 0, -1, 0),
        (4, 'distinct_count', 6, 0, -1, 0),
        (5, 'max_value', 8, 0, -1, 0),
        (6, 'min_value', 8, 0, -1, 0),
        (7, 'is_max_value_exact', 1, 0, -1, 0),
        (8, 'is_min_value_exact', 1, 0, -1, 0),
        (9, 'nan_count', 6, 0, -1, 0),
    )),
    ('StringType', False, (
    )),
    ('UUIDType', False, (
    )),
    ('MapType', False, (
    )),
    ('ListType', False, (
    )),
    ('EnumType', False, (
    )),
    ('DateType', False, (
    )),
    ('Float16Type', False, (
    )),
    ('NullType', False, (
    )),
    ('DecimalType', False, (
        (1, 'scale', 5, 0, -1, 1),
        (2, 'precision', 5, 0, -1, 1),
    )),
    ('MilliSeconds', False, (
    )),
    ('MicroSeconds', False, (
    )),
    ('NanoSeconds', False, (
    )),
    ('TimeUnit', True, (
        (1, 'MILLIS', 12, 0, 13, 0),
        (2, 'MICROS', 12, 0, 14, 0),
        (3, 'NANOS', 12, 0, 15, 0),
    )),
    ('TimestampType', False, (
        (1, 'isAdjustedToUTC', 1, 0, -1, 1),
        (2, 'unit', 12, 0, 16, 1),
    )),
    ('TimeType', False, (
        (1, 'isAdjustedToUTC', 1, 0, -1, 1),
        (2, 'unit', 12, 0, 16, 1),
    )),
    ('IntType', False, (
        (1, 'bitWidth', 3, 0, -1, 1),
        (2, 'isSigned', 1, 0, -1, 1),
    )),
    ('JsonType', False, (
    )),
    ('BsonType', False, (
    )),
    ('VariantType', False, (
        (1, 'specification_version', 3, 0, -1, 0),
    )),
    ('GeometryType', False, (
        (1, 'crs', 8, 0, -1, 2),
    )),
    ('GeographyType', False, (
        (1, 'crs', 8, 0, -1, 2),
        (2, 'algorithm', 5, 0, -1, 0),
    )),
    ('FileType', False, (
    )),
    ('LogicalType', True, (
        (1, 'STRING', 12, 0, 4, 0),
        (2, 'MAP', 12, 0, 6, 0),
        (3, 'LIST', 12, 0, 7, 0),
        (4, 'ENUM', 12, 0, 8, 0),
        (5, 'DECIMAL', 12, 0, 12, 0),
        (6, 'DATE', 12, 0, 9, 0),
        (7, 'TIME', 12, 0, 18, 0),
        (8, 'TIMESTAMP', 12, 0, 17, 0),
        (10, 'INTEGER', 12, 0, 19, 0),
        (11, 'UNKNOWN', 12, 0, 11, 0),
        (12, 'JSON', 12, 0, 20, 0),
        (13, 'BSON', 12, 0, 21, 0),
        (14, 'UUID', 12, 0, 5, 0),
        (15, 'FLOAT16', 12, 0, 10, 0),
        (16, 'VARIANT', 12, 0, 22, 0),
        (17, 'GEOMETRY', 12, 0, 23, 0),
        (18, 'GEOGRAPHY', 12, 0, 24, 0),
        (19, 'FILE', 12, 0, 25, 0),
    )),
    ('SchemaElement', False, (
        (1, 'type', 5, 0, -1, 0),
        (2, 'type_length', 5, 0, -1, 0),
        (3, 'repetition_type', 5, 0, -1, 0),
        (4, 'name', 8, 0, -1, 3),
        (5, 'num_children', 5, 0, -1, 0),
        (6, 'converted_type', 5, 0, -1, 0),
        (7, 'scale', 5, 0, -1, 0),
        (8, 'precision', 5, 0, -1, 0),
        (9, 'field_id', 5, 0, -1, 0),
        (10, 'logicalType', 12, 0, 26, 0),
    )),
    ('DataPageHeader', False, (
        (1, 'num_values', 5, 0, -1, 1),
        (2, 'encoding', 5, 0, -1, 1),
        (3, 'definition_level_encoding', 5, 0, -1, 1),
        (4, 'repetition_level_encoding', 5, 0, -1, 1),
        (5, 'statistics', 12, 0, 3, 0),
    )),
    ('IndexPageHeader', False, (
    )),
    ('DictionaryPageHeader', False, (
        (1, 'num_values', 5, 0, -1, 1),
        (2, 'encoding', 5, 0, -1, 1),
        (3, 'is_sorted', 1, 0, -1, 0),
    )),
    ('DataPageHeaderV2', False, (
        (1, 'num_values', 5, 0, -1, 1),
        (2, 'num_nulls', 5, 0, -1, 1),
        (3, 'num_rows', 5, 0, -1, 1),
        (4, 'encoding', 5, 0, -1, 1),
        (5, 'definition_levels_byte_length', 5, 0, -1, 1),
        (6, 'repetition_levels_byte_length', 5, 0, -1, 1),
        (7, 'is_compressed', 1, 0, -1, 0),
        (8, 'statistics', 12, 0, 3, 0),
    )),
    ('PageHeader', False, (
        (1, 'type', 5, 0, -1, 1),
        (2, 'uncompressed_page_size', 5, 0, -1, 1),
        (3, 'compressed_page_size', 5, 0, -1, 1),
        (4, 'crc', 5, 0, -1, 0),
        (5, 'data_page_header', 12, 0, 28, 0),
        (6, 'index_page_header', 12, 0, 29, 0),
        (7, 'dictionary_page_header', 12, 0, 30, 0),
        (8, 'data_page_header_v2', 12, 0, 31, 0),
    )),
    ('SplitBlockAlgorithm', False, (
    )),
    ('BloomFilterAlgorithm', True, (
        (1, 'BLOCK', 12, 0, 33, 0),
    )),
    ('XxHash', False, (
    )),
    ('BloomFilterHash', True, (
        (1, 'XXHASH', 12, 0, 35, 0),
    )),
    ('Uncompressed', False, (
    )),
    ('BloomFilterCompression', True, (
        (1, 'UNCOMPRESSED', 12, 0, 37, 0),
    )),
    ('BloomFilterHeader', False, (
        (1, 'numBytes', 5, 0, -1, 1),
        (2, 'algorithm', 12, 0, 34, 1),
        (3, 'hash', 12, 0, 36, 1),
        (4, 'compression', 12, 0, 38, 1),
    )),
    ('KeyValue', False, (
        (1, 'key', 8, 0, -1, 3),
        (2, 'value', 8, 0, -1, 4),
    )),
    ('SortingColumn', False, (
        (1, 'column_idx', 5, 0, -1, 1),
        (2, 'descending', 1, 0, -1, 1),
        (3, 'nulls_first', 1, 0, -1, 1),
    )),
    ('PageEncodingStats', False, (
        (1, 'page_type', 5, 0, -1, 1),
        (2, 'encoding', 5, 0, -1, 1),
        (3, 'count', 5, 0, -1, 1),
    )),
    ('ColumnMetaData', False, (
        (1, 'type', 5, 0, -1, 1),
        (2, 'encodings', 9, 5, -1, 1),
        (3, 'path_in_schema', 9, 8, -1, 3),
        (4, 'codec', 5, 0, -1, 1),
        (5, 'num_values', 6, 0, -1, 1),
        (6, 'total_uncompressed_size', 6, 0, -1, 1),
        (7, 'total_compressed_size', 6, 0, -1, 1),
        (8, 'key_value_metadata', 9, 12, 40, 0),
        (9, 'data_page_offset', 6, 0, -1, 1),
        (10, 'index_page_offset', 6, 0, -1, 0),
        (11, 'dictionary_page_offset', 6, 0, -1, 0),
        (12, 'statistics', 12, 0, 3, 0),
        (13, 'encoding_stats', 9, 12, 42, 0),
        (14, 'bloom_filter_offset', 6, 0, -1, 0),
        (15, 'bloom_filter_length', 5, 0, -1, 0),
        (16, 'size_statistics', 12, 0, 0, 0),
        (17, 'geospatial_statistics', 12, 0, 2, 0),
    )),
    ('EncryptionWithFooterKey', False, (
    )),
    ('EncryptionWithColumnKey', False, (
        (1, 'path_in_schema', 9, 8, -1, 3),
        (2, 'key_metadata', 8, 0, -1, 0),
    )),
    ('ColumnCryptoMetaData', True, (
        (1, 'ENCRYPTION_WITH_FOOTER_KEY', 12, 0, 44, 0),
        (2, 'ENCRYPTION_WITH_COLUMN_KEY', 12, 0, 45, 0),
    )),
    ('ColumnChunk', False, (
        (1, 'file_path', 8, 0, -1, 2),
        (2, 'file_offset', 6, 0, -1, 1),
        (3, 'meta_data', 12, 0, 43, 0),
        (4, 'offset_index_offset', 6, 0, -1, 0),
        (5, 'offset_index_length', 5, 0, -1, 0),
        (6, 'column_index_offset', 6, 0, -1, 0),
        (7, 'column_index_length', 5, 0, -1, 0),
        (8, 'crypto_metadata', 12, 0, 46, 0),
        (9, 'encrypted_column_metadata', 8, 0, -1, 0),
    )),
    ('RowGroup', False, (
        (1, 'columns', 9, 12, 47, 1),
        (2, 'total_byte_size', 6, 0, -1, 1),
        (3, 'num_rows', 6, 0, -1, 1),
        (4, 'sorting_columns', 9, 12, 41, 0),
        (5, 'file_offset', 6, 0, -1, 0),
        (6, 'total_compressed_size', 6, 0, -1, 0),
        (7, 'ordinal', 4, 0, -1, 0),
    )),
    ('TypeDefinedOrder', False, (
    )),
    ('IEEE754TotalOrder', False, (
    )),
    ('Int96TimestampOrder', False, (
    )),
    ('ColumnOrder', True, (
        (1, 'TYPE_ORDER', 12, 0, 49, 0),
        (2, 'IEEE_754_TOTAL_ORDER', 12, 0, 50, 0),
        (3, 'INT96_TIMESTAMP_ORDER', 12, 0, 51, 0),
    )),
    ('PageLocation', False, (
        (1, 'offset', 6, 0, -1, 1),
        (2, 'compressed_page_size', 5, 0, -1, 1),
        (3, 'first_row_index', 6, 0, -1, 1),
    )),
    ('OffsetIndex', False, (
        (1, 'page_locations', 9, 12, 53, 1),
        (2, 'unencoded_byte_array_data_bytes', 9, 6, -1, 0),
    )),
    ('ColumnIndex', False, (
        (1, 'null_pages', 9, 1, -1, 1),
        (2, 'min_values', 9, 8, -1, 1),
        (3, 'max_values', 9, 8, -1, 1),
        (4, 'boundary_order', 5, 0, -1, 1),
        (5, 'null_counts', 9, 6, -1, 0),
        (6, 'repetition_level_histograms', 9, 6, -1, 0),
        (7, 'definition_level_histograms', 9, 6, -1, 0),
        (8, 'nan_counts', 9, 6, -1, 0),
    )),
    ('AesGcmV1', False, (
        (1, 'aad_prefix', 8, 0, -1, 0),
        (2, 'aad_file_unique', 8, 0, -1, 0),
        (3, 'supply_aad_prefix', 1, 0, -1, 0),
    )),
    ('AesGcmCtrV1', False, (
        (1, 'aad_prefix', 8, 0, -1, 0),
        (2, 'aad_file_unique', 8, 0, -1, 0),
        (3, 'supply_aad_prefix', 1, 0, -1, 0),
    )),
    ('EncryptionAlgorithm', True, (
        (1, 'AES_GCM_V1', 12, 0, 56, 0),
        (2, 'AES_GCM_CTR_V1', 12, 0, 57, 0),
    )),
    ('FileMetaData', False, (
        (1, 'version', 5, 0, -1, 1),
        (2, 'schema', 9, 12, 27, 1),
        (3, 'num_rows', 6, 0, -1, 1),
        (4, 'row_groups', 9, 12, 48, 1),
        (5, 'key_value_metadata', 9, 12, 40, 0),
        (6, 'created_by', 8, 0, -1, 2),
        (7, 'column_orders', 9, 12, 52, 0),
        (8, 'encryption_algorithm', 12, 0, 58, 0),
        (9, 'footer_signing_key_metadata', 8, 0, -1, 0),
    )),
    ('FileCryptoMetaData', False, (
        (1, 'encryption_algorithm', 12, 0, 58, 1),
        (2, 'key_metadata', 8, 0, -1, 0),
    )),
)
