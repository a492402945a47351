"""Made by thrift_idl/generate.py from parquet.thrift: edit those, not this."""

from typing import Any, Final

class Type:
    BOOLEAN: Final = 0
    INT32: Final = 1
    INT64: Final = 2
    INT96: Final = 3
    FLOAT: Final = 4
    DOUBLE: Final = 5
    BYTE_ARRAY: Final = 6
    FIXED_LEN_BYTE_ARRAY: Final = 7
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class ConvertedType:
    UTF8: Final = 0
    MAP: Final = 1
    MAP_KEY_VALUE: Final = 2
    LIST: Final = 3
    ENUM: Final = 4
    DECIMAL: Final = 5
    DATE: Final = 6
    TIME_MILLIS: Final = 7
    TIME_MICROS: Final = 8
    TIMESTAMP_MILLIS: Final = 9
    TIMESTAMP_MICROS: Final = 10
    UINT_8: Final = 11
    UINT_16: Final = 12
    UINT_32: Final = 13
    UINT_64: Final = 14
    INT_8: Final = 15
    INT_16: Final = 16
    INT_32: Final = 17
    INT_64: Final = 18
    JSON: Final = 19
    BSON: Final = 20
    INTERVAL: Final = 21
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class FieldRepetitionType:
    REQUIRED: Final = 0
    OPTIONAL: Final = 1
    REPEATED: Final = 2
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class EdgeInterpolationAlgorithm:
    SPHERICAL: Final = 0
    VINCENTY: Final = 1
    THOMAS: Final = 2
    ANDOYER: Final = 3
    KARNEY: Final = 4
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class Encoding:
    PLAIN: Final = 0
    PLAIN_DICTIONARY: Final = 2
    RLE: Final = 3
    BIT_PACKED: Final = 4
    DELTA_BINARY_PACKED: Final = 5
    DELTA_LENGTH_BYTE_ARRAY: Final = 6
    DELTA_BYTE_ARRAY: Final = 7
    RLE_DICTIONARY: Final = 8
    BYTE_STREAM_SPLIT: Final = 9
    ALP: Final = 10
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class CompressionCodec:
    UNCOMPRESSED: Final = 0
    SNAPPY: Final = 1
    GZIP: Final = 2
    LZO: Final = 3
    BROTLI: Final = 4
    LZ4: Final = 5
    ZSTD: Final = 6
    LZ4_RAW: Final = 7
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class PageType:
    DATA_PAGE: Final = 0
    INDEX_PAGE: Final = 1
    DICTIONARY_PAGE: Final = 2
    DATA_PAGE_V2: Final = 3
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class BoundaryOrder:
    UNORDERED: Final = 0
    ASCENDING: Final = 1
    DESCENDING: Final = 2
    _VALUES_TO_NAMES: dict[int, str]
    _NAMES_TO_VALUES: dict[str, int]

class SizeStatistics:
    thrift_spec: tuple[Any, ...]
    unencoded_byte_array_data_bytes: int | None
    repetition_level_histogram: list[int] | None
    definition_level_histogram: list[int] | None
    def __init__(self, unencoded_byte_array_data_bytes: int | None = ..., repetition_level_histogram: list[int] | None = ..., definition_level_histogram: list[int] | None = ...) -> None: ...

class BoundingBox:
    thrift_spec: tuple[Any, ...]
    xmin: float
    xmax: float
    ymin: float
    ymax: float
    zmin: float | None
    zmax: float | None
    mmin: float | None
    mmax: float | None
    def __init__(self, xmin: float = ..., xmax: float = ..., ymin: float = ..., ymax: float = ..., zmin: float | None = ..., zmax: float | None = ..., mmin: float | None = ..., mmax: float | None = ...) -> None: ...

class GeospatialStatistics:
    thrift_spec: tuple[Any, ...]
    bbox: BoundingBox | None
    geospatial_types: list[int] | None
    def __init__(self, bbox: BoundingBox | None = ..., geospatial_types: list[int] | None = ...) -> None: ...

class Statistics:
    thrift_spec: tuple[Any, ...]
    max: bytes | None
    min: bytes | None
    null_count: int | None
    distinct_count: int | None
    max_value: bytes | None
    min_value: bytes | None
    is_max_value_exact: bool | None
    is_min_value_exact: bool | None
    nan_count: int | None
    def __init__(self, max: bytes | None = ..., min: bytes | None = ..., null_count: int | None = ..., distinct_count: int | None = ..., max_value: bytes | None = ..., min_value: bytes | None = ..., is_max_value_exact: bool | None = ..., is_min_value_exact: bool | None = ..., nan_count: int | None = ...) -> None: ...

class StringType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class UUIDType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class MapType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class ListType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class EnumType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class DateType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class Float16Type:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class NullType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class DecimalType:
    thrift_spec: tuple[Any, ...]
    scale: int
    precision: int
    def __init__(self, scale: int = ..., precision: int = ...) -> None: ...

class MilliSeconds:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class MicroSeconds:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class NanoSeconds:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class TimeUnit:
    thrift_spec: tuple[Any, ...]
    MILLIS: MilliSeconds | None
    MICROS: MicroSeconds | None
    NANOS: NanoSeconds | None
    def __init__(self, MILLIS: MilliSeconds | None = ..., MICROS: MicroSeconds | None = ..., NANOS: NanoSeconds | None = ...) -> None: ...

class TimestampType:
    thrift_spec: tuple[Any, ...]
    isAdjustedToUTC: bool
    unit: TimeUnit
    def __init__(self, isAdjustedToUTC: bool = ..., unit: TimeUnit = ...) -> None: ...

class TimeType:
    thrift_spec: tuple[Any, ...]
    isAdjustedToUTC: bool
    unit: TimeUnit
    def __init__(self, isAdjustedToUTC: bool = ..., unit: TimeUnit = ...) -> None: ...

class IntType:
    thrift_spec: tuple[Any, ...]
    bitWidth: int
    isSigned: bool
    def __init__(self, bitWidth: int = ..., isSigned: bool = ...) -> None: ...

class JsonType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class BsonType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class VariantType:
    thrift_spec: tuple[Any, ...]
    specification_version: int | None
    def __init__(self, specification_version: int | None = ...) -> None: ...

class GeometryType:
    thrift_spec: tuple[Any, ...]
    crs: str | None
    def __init__(self, crs: str | None = ...) -> None: ...

class GeographyType:
    thrift_spec: tuple[Any, ...]
    crs: str | None
    algorithm: int | None
    def __init__(self, crs: str | None = ..., algorithm: int | None = ...) -> None: ...

class FileType:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class LogicalType:
    thrift_spec: tuple[Any, ...]
    STRING: StringType | None
    MAP: MapType | None
    LIST: ListType | None
    ENUM: EnumType | None
    DECIMAL: DecimalType | None
    DATE: DateType | None
    TIME: TimeType | None
    TIMESTAMP: TimestampType | None
    INTEGER: IntType | None
    UNKNOWN: NullType | None
    JSON: JsonType | None
    BSON: BsonType | None
    UUID: UUIDType | None
    FLOAT16: Float16Type | None
    VARIANT: VariantType | None
    GEOMETRY: GeometryType | None
    GEOGRAPHY: GeographyType | None
    FILE: FileType | None
    def __init__(self, STRING: StringType | None = ..., MAP: MapType | None = ..., LIST: ListType | None = ..., ENUM: EnumType | None = ..., DECIMAL: DecimalType | None = ..., DATE: DateType | None = ..., TIME: TimeType | None = ..., TIMESTAMP: TimestampType | None = ..., INTEGER: IntType | None = ..., UNKNOWN: NullType | None = ..., JSON: JsonType | None = ..., BSON: BsonType | None = ..., UUID: UUIDType | None = ..., FLOAT16: Float16Type | None = ..., VARIANT: VariantType | None = ..., GEOMETRY: GeometryType | None = ..., GEOGRAPHY: GeographyType | None = ..., FILE: FileType | None = ...) -> None: ...

class SchemaElement:
    thrift_spec: tuple[Any, ...]
    type: int | None
    type_length: int | None
    repetition_type: int | None
    name: str
    num_children: int | None
    converted_type: int | None
    scale: int | None
    precision: int | None
    field_id: int | None
    logicalType: LogicalType | None
    def __init__(self, type: int | None = ..., type_length: int | None = ..., repetition_type: int | None = ..., name: str = ..., num_children: int | None = ..., converted_type: int | None = ..., scale: int | None = ..., precision: int | None = ..., field_id: int | None = ..., logicalType: LogicalType | None = ...) -> None: ...

class DataPageHeader:
    thrift_spec: tuple[Any, ...]
    num_values: int
    encoding: int
    definition_level_encoding: int
    repetition_level_encoding: int
    statistics: Statistics | None
    def __init__(self, num_values: int = ..., encoding: int = ..., definition_level_encoding: int = ..., repetition_level_encoding: int = ..., statistics: Statistics | None = ...) -> None: ...

class IndexPageHeader:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class DictionaryPageHeader:
    thrift_spec: tuple[Any, ...]
    num_values: int
    encoding: int
    is_sorted: bool | None
    def __init__(self, num_values: int = ..., encoding: int = ..., is_sorted: bool | None = ...) -> None: ...

class DataPageHeaderV2:
    thrift_spec: tuple[Any, ...]
    num_values: int
    num_nulls: int
    num_rows: int
    encoding: int
    definition_levels_byte_length: int
    repetition_levels_byte_length: int
    is_compressed: bool | None
    statistics: Statistics | None
    def __init__(self, num_values: int = ..., num_nulls: int = ..., num_rows: int = ..., encoding: int = ..., definition_levels_byte_length: int = ..., repetition_levels_byte_length: int = ..., is_compressed: bool | None = ..., statistics: Statistics | None = ...) -> None: ...

class PageHeader:
    thrift_spec: tuple[Any, ...]
    type: int
    uncompressed_page_size: int
    compressed_page_size: int
    crc: int | None
    data_page_header: DataPageHeader | None
    index_page_header: IndexPageHeader | None
    dictionary_page_header: DictionaryPageHeader | None
    data_page_header_v2: DataPageHeaderV2 | None
    def __init__(self, type: int = ..., uncompressed_page_size: int = ..., compressed_page_size: int = ..., crc: int | None = ..., data_page_header: DataPageHeader | None = ..., index_page_header: IndexPageHeader | None = ..., dictionary_page_header: DictionaryPageHeader | None = ..., data_page_header_v2: DataPageHeaderV2 | None = ...) -> None: ...

class SplitBlockAlgorithm:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class BloomFilterAlgorithm:
    thrift_spec: tuple[Any, ...]
    BLOCK: SplitBlockAlgorithm | None
    def __init__(self, BLOCK: SplitBlockAlgorithm | None = ...) -> None: ...

class XxHash:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class BloomFilterHash:
    thrift_spec: tuple[Any, ...]
    XXHASH: XxHash | None
    def __init__(self, XXHASH: XxHash | None = ...) -> None: ...

class Uncompressed:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class BloomFilterCompression:
    thrift_spec: tuple[Any, ...]
    UNCOMPRESSED: Uncompressed | None
    def __init__(self, UNCOMPRESSED: Uncompressed | None = ...) -> None: ...

class BloomFilterHeader:
    thrift_spec: tuple[Any, ...]
    numBytes: int
    algorithm: BloomFilterAlgorithm
    hash: BloomFilterHash
    compression: BloomFilterCompression
    def __init__(self, numBytes: int = ..., algorithm: BloomFilterAlgorithm = ..., hash: BloomFilterHash = ..., compression: BloomFilterCompression = ...) -> None: ...

class KeyValue:
    thrift_spec: tuple[Any, ...]
    key: str
    value: str | bytes | None
    def __init__(self, key: str = ..., value: str | bytes | None = ...) -> None: ...

class SortingColumn:
    thrift_spec: tuple[Any, ...]
    column_idx: int
    descending: bool
    nulls_first: bool
    def __init__(self, column_idx: int = ..., descending: bool = ..., nulls_first: bool = ...) -> None: ...

class PageEncodingStats:
    thrift_spec: tuple[Any, ...]
    page_type: int
    encoding: int
    count: int
    def __init__(self, page_type: int = ..., encoding: int = ..., count: int = ...) -> None: ...

class ColumnMetaData:
    thrift_spec: tuple[Any, ...]
    type: int
    encodings: list[int]
    path_in_schema: list[str]
    codec: int
    num_values: int
    total_uncompressed_size: int
    total_compressed_size: int
    key_value_metadata: list[KeyValue] | None
    data_page_offset: int
    index_page_offset: int | None
    dictionary_page_offset: int | None
    statistics: Statistics | None
    encoding_stats: list[PageEncodingStats] | None
    bloom_filter_offset: int | None
    bloom_filter_length: int | None
    size_statistics: SizeStatistics | None
    geospatial_statistics: GeospatialStatistics | None
    def __init__(self, type: int = ..., encodings: list[int] = ..., path_in_schema: list[str] = ..., codec: int = ..., num_values: int = ..., total_uncompressed_size: int = ..., total_compressed_size: int = ..., key_value_metadata: list[KeyValue] | None = ..., data_page_offset: int = ..., index_page_offset: int | None = ..., dictionary_page_offset: int | None = ..., statistics: Statistics | None = ..., encoding_stats: list[PageEncodingStats] | None = ..., bloom_filter_offset: int | None = ..., bloom_filter_length: int | None = ..., size_statistics: SizeStatistics | None = ..., geospatial_statistics: GeospatialStatistics | None = ...) -> None: ...

class EncryptionWithFooterKey:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class EncryptionWithColumnKey:
    thrift_spec: tuple[Any, ...]
    path_in_schema: list[str]
    key_metadata: bytes | None
    def __init__(self, path_in_schema: list[str] = ..., key_metadata: bytes | None = ...) -> None: ...

class ColumnCryptoMetaData:
    thrift_spec: tuple[Any, ...]
    ENCRYPTION_WITH_FOOTER_KEY: EncryptionWithFooterKey | None
    ENCRYPTION_WITH_COLUMN_KEY: EncryptionWithColumnKey | None
    def __init__(self, ENCRYPTION_WITH_FOOTER_KEY: EncryptionWithFooterKey | None = ..., ENCRYPTION_WITH_COLUMN_KEY: EncryptionWithColumnKey | None = ...) -> None: ...

class ColumnChunk:
    thrift_spec: tuple[Any, ...]
    file_path: str | None
    file_offset: int
    meta_data: ColumnMetaData | None
    offset_index_offset: int | None
    offset_index_length: int | None
    column_index_offset: int | None
    column_index_length: int | None
    crypto_metadata: ColumnCryptoMetaData | None
    encrypted_column_metadata: bytes | None
    def __init__(self, file_path: str | None = ..., file_offset: int = ..., meta_data: ColumnMetaData | None = ..., offset_index_offset: int | None = ..., offset_index_length: int | None = ..., column_index_offset: int | None = ..., column_index_length: int | None = ..., crypto_metadata: ColumnCryptoMetaData | None = ..., encrypted_column_metadata: bytes | None = ...) -> None: ...

class RowGroup:
    thrift_spec: tuple[Any, ...]
    columns: list[ColumnChunk]
    total_byte_size: int
    num_rows: int
    sorting_columns: list[SortingColumn] | None
    file_offset: int | None
    total_compressed_size: int | None
    ordinal: int | None
    def __init__(self, columns: list[ColumnChunk] = ..., total_byte_size: int = ..., num_rows: int = ..., sorting_columns: list[SortingColumn] | None = ..., file_offset: int | None = ..., total_compressed_size: int | None = ..., ordinal: int | None = ...) -> None: ...

class TypeDefinedOrder:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class IEEE754TotalOrder:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class Int96TimestampOrder:
    thrift_spec: tuple[Any, ...]
    def __init__(self) -> None: ...

class ColumnOrder:
    thrift_spec: tuple[Any, ...]
    TYPE_ORDER: TypeDefinedOrder | None
    IEEE_754_TOTAL_ORDER: IEEE754TotalOrder | None
    INT96_TIMESTAMP_ORDER: Int96TimestampOrder | None
    def __init__(self, TYPE_ORDER: TypeDefinedOrder | None = ..., IEEE_754_TOTAL_ORDER: IEEE754TotalOrder | None = ..., INT96_TIMESTAMP_ORDER: Int96TimestampOrder | None = ...) -> None: ...

class PageLocation:
    thrift_spec: tuple[Any, ...]
    offset: int
    compressed_page_size: int
    first_row_index: int
    def __init__(self, offset: int = ..., compressed_page_size: int = ..., first_row_index: int = ...) -> None: ...

class OffsetIndex:
    thrift_spec: tuple[Any, ...]
    page_locations: list[PageLocation]
    unencoded_byte_array_data_bytes: list[int] | None
    def __init__(self, page_locations: list[PageLocation] = ..., unencoded_byte_array_data_bytes: list[int] | None = ...) -> None: ...

class ColumnIndex:
    thrift_spec: tuple[Any, ...]
    null_pages: list[bool]
    min_values: list[bytes]
    max_values: list[bytes]
    boundary_order: int
    null_counts: list[int] | None
    repetition_level_histograms: list[int] | None
    definition_level_histograms: list[int] | None
    nan_counts: list[int] | None
    def __init__(self, null_pages: list[bool] = ..., min_values: list[bytes] = ..., max_values: list[bytes] = ..., boundary_order: int = ..., null_counts: list[int] | None = ..., repetition_level_histograms: list[int] | None = ..., definition_level_histograms: list[int] | None = ..., nan_counts: list[int] | None = ...) -> None: ...

class AesGcmV1:
    thrift_spec: tuple[Any, ...]
    aad_prefix: bytes | None
    aad_file_unique: bytes | None
    supply_aad_prefix: bool | None
    def __init__(self, aad_prefix: bytes | None = ..., aad_file_unique: bytes | None = ..., supply_aad_prefix: bool | None = ...) -> None: ...

class AesGcmCtrV1:
    thrift_spec: tuple[Any, ...]
    aad_prefix: bytes | None
    aad_file_unique: bytes | None
    supply_aad_prefix: bool | None
    def __init__(self, aad_prefix: bytes | None = ..., aad_file_unique: bytes | None = ..., supply_aad_prefix: bool | None = ...) -> None: ...

class EncryptionAlgorithm:
    thrift_spec: tuple[Any, ...]
    AES_GCM_V1: AesGcmV1 | None
    AES_GCM_CTR_V1: AesGcmCtrV1 | None
    def __init__(self, AES_GCM_V1: AesGcmV1 | None = ..., AES_GCM_CTR_V1: AesGcmCtrV1 | None = ...) -> None: ...

class FileMetaData:
    thrift_spec: tuple[Any, ...]
    version: int
    schema: list[SchemaElement]
    num_rows: int
    row_groups: list[RowGroup]
    key_value_metadata: list[KeyValue] | None
    created_by: str | None
    column_orders: list[ColumnOrder] | None
    encryption_algorithm: EncryptionAlgorithm | None
    footer_signing_key_metadata: bytes | None
    def __init__(self, version: int = ..., schema: list[SchemaElement] = ..., num_rows: int = ..., row_groups: list[RowGroup] = ..., key_value_metadata: list[KeyValue] | None = ..., created_by: str | None = ..., column_orders: list[ColumnOrder] | None = ..., encryption_algorithm: EncryptionAlgorithm | None = ..., footer_signing_key_metadata: bytes | None = ...) -> None: ...

class FileCryptoMetaData:
    thrift_spec: tuple[Any, ...]
    encryption_algorithm: EncryptionAlgorithm
    key_metadata: bytes | None
    def __init__(self, encryption_algorithm: EncryptionAlgorithm = ..., key_metadata: bytes | None = ...) -> None: ...
