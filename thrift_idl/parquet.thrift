// The Parquet file format's metadata, as pyparq reads and writes it.
//
// Names, field ids, types and requiredness are the standard's (public repository
// apache/parquet-format); tests/thrift_facts.json holds them as a table and
// tests/project/test_thrift_idl.py compares. The comments are this project's.
// After a change here: python thrift_idl/generate.py

namespace py pyparq.format.generated

// ---------------------------------------------------------------- enumerations

/** Physical types: how a value is laid out in the bytes of a page. */
enum Type {
  BOOLEAN = 0;
  INT32 = 1;
  INT64 = 2;
  INT96 = 3;                  // legacy timestamps only: not for new files
  FLOAT = 4;
  DOUBLE = 5;
  BYTE_ARRAY = 6;
  FIXED_LEN_BYTE_ARRAY = 7;   // width in SchemaElement.type_length
}

/** Superseded by LogicalType; still written beside it so that old readers understand. */
enum ConvertedType {
  UTF8 = 0;
  MAP = 1;
  MAP_KEY_VALUE = 2;
  LIST = 3;
  ENUM = 4;
  DECIMAL = 5;                // scale and precision stand in the SchemaElement
  DATE = 6;
  TIME_MILLIS = 7;
  TIME_MICROS = 8;
  TIMESTAMP_MILLIS = 9;
  TIMESTAMP_MICROS = 10;
  UINT_8 = 11;
  UINT_16 = 12;
  UINT_32 = 13;
  UINT_64 = 14;
  INT_8 = 15;
  INT_16 = 16;
  INT_32 = 17;
  INT_64 = 18;
  JSON = 19;
  BSON = 20;
  INTERVAL = 21;              // FIXED[12]: months, days, milliseconds, each unsigned little-endian
}

/** How often a field occurs in its parent. */
enum FieldRepetitionType {
  REQUIRED = 0;
  OPTIONAL = 1;
  REPEATED = 2;
}

/** How GEOGRAPHY edges run between vertices. */
enum EdgeInterpolationAlgorithm {
  SPHERICAL = 0;
  VINCENTY = 1;
  THOMAS = 2;
  ANDOYER = 3;
  KARNEY = 4;
}

/** Encodings of values and of levels. 1 was never used. */
enum Encoding {
  PLAIN = 0;
  PLAIN_DICTIONARY = 2;       // old name of both the dictionary page and its indices
  RLE = 3;
  BIT_PACKED = 4;             // deprecated, levels only, most significant bit first
  DELTA_BINARY_PACKED = 5;
  DELTA_LENGTH_BYTE_ARRAY = 6;
  DELTA_BYTE_ARRAY = 7;
  RLE_DICTIONARY = 8;
  BYTE_STREAM_SPLIT = 9;
  ALP = 10;                   // FLOAT and DOUBLE
}

/** Page body compression. */
enum CompressionCodec {
  UNCOMPRESSED = 0;
  SNAPPY = 1;
  GZIP = 2;
  LZO = 3;
  BROTLI = 4;
  LZ4 = 5;                    // deprecated: Hadoop framing, writers disagree
  ZSTD = 6;
  LZ4_RAW = 7;
}

enum PageType {
  DATA_PAGE = 0;
  INDEX_PAGE = 1;
  DICTIONARY_PAGE = 2;
  DATA_PAGE_V2 = 3;
}

/** Direction in which a ColumnIndex's bounds run, null pages aside. */
enum BoundaryOrder {
  UNORDERED = 0;
  ASCENDING = 1;
  DESCENDING = 2;
}

// ---------------------------------------------------------------- statistics

/** What is needed to foresee the decoded size, and how deep the nulls sit. */
struct SizeStatistics {
  /** BYTE_ARRAY only: value bytes without their length prefixes. */
  1: optional i64 unencoded_byte_array_data_bytes;
  /** Values at each repetition level; may be left out when the maximum is 0. */
  2: optional list<i64> repetition_level_histogram;
  /** Values at each definition level; may be left out when the maximum is 0 or 1. */
  3: optional list<i64> definition_level_histogram;
}

/** Extent of geospatial values; x may wrap around the antimeridian (xmin > xmax). */
struct BoundingBox {
  1: required double xmin;
  2: required double xmax;
  3: required double ymin;
  4: required double ymax;
  5: optional double zmin;
  6: optional double zmax;
  7: optional double mmin;
  8: optional double mmax;
}

struct GeospatialStatistics {
  1: optional BoundingBox bbox;
  /** WKB type codes that occur; an empty list says nothing. */
  2: optional list<i32> geospatial_types;
}

/** Statistics of a column chunk, or of a page. Absent counts are unknown, never zero. */
struct Statistics {
  /** Deprecated bounds in signed order: trusted only where that is the column's order. */
  1: optional binary max;
  2: optional binary min;
  3: optional i64 null_count;
  4: optional i64 distinct_count;
  /** Bounds in the column's ColumnOrder, PLAIN without a length prefix; may be rounded outwards. */
  5: optional binary max_value;
  6: optional binary min_value;
  /** True when the bound occurs in the data. */
  7: optional bool is_max_value_exact;
  8: optional bool is_min_value_exact;
  /** FLOAT, DOUBLE and FLOAT16 only. */
  9: optional i64 nan_count;
}

// ---------------------------------------------------------------- logical types

struct StringType {}
struct UUIDType {}
struct MapType {}
struct ListType {}
struct EnumType {}
struct DateType {}
struct Float16Type {}

/** A column of nothing but nulls. */
struct NullType {}

/** value = unscaled * 10^-scale, 0 <= scale <= precision. */
struct DecimalType {
  1: required i32 scale;
  2: required i32 precision;
}

struct MilliSeconds {}
struct MicroSeconds {}
struct NanoSeconds {}

union TimeUnit {
  1: MilliSeconds MILLIS;
  2: MicroSeconds MICROS;
  3: NanoSeconds NANOS;
}

/** INT64 since the epoch; not adjusted means local wall-clock time. */
struct TimestampType {
  1: required bool isAdjustedToUTC;
  2: required TimeUnit unit;
}

/** Since midnight: INT32 for milliseconds, INT64 for the finer units. */
struct TimeType {
  1: required bool isAdjustedToUTC;
  2: required TimeUnit unit;
}

/** bitWidth is 8, 16, 32 or 64. */
struct IntType {
  1: required i8 bitWidth;
  2: required bool isSigned;
}

struct JsonType {}
struct BsonType {}

struct VariantType {
  1: optional i8 specification_version;
}

/** WKB with straight edges; no crs means OGC:CRS84. */
struct GeometryType {
  1: optional string crs;
}

/** WKB with curved edges; no algorithm means SPHERICAL. */
struct GeographyType {
  1: optional string crs;
  2: optional EdgeInterpolationAlgorithm algorithm;
}

/** A group that refers to a file or to a range of one. */
struct FileType {}

/** 9 is kept for INTERVAL. An unknown member reads as a union with nothing set. */
union LogicalType {
  1: StringType STRING;
  2: MapType MAP;
  3: ListType LIST;
  4: EnumType ENUM;
  5: DecimalType DECIMAL;
  6: DateType DATE;
  7: TimeType TIME;
  8: TimestampType TIMESTAMP;
  10: IntType INTEGER;
  11: NullType UNKNOWN;
  12: JsonType JSON;
  13: BsonType BSON;
  14: UUIDType UUID;
  15: Float16Type FLOAT16;
  16: VariantType VARIANT;
  17: GeometryType GEOMETRY;
  18: GeographyType GEOGRAPHY;
  19: FileType FILE;
}

/** One node of the schema tree; the list is depth first, root first. */
struct SchemaElement {
  /** Set on leaves only. */
  1: optional Type type;
  /** Width of FIXED_LEN_BYTE_ARRAY values. */
  2: optional i32 type_length;
  /** Set on every node but the root. */
  3: optional FieldRepetitionType repetition_type;
  4: required string name;
  /** Set on groups only. */
  5: optional i32 num_children;
  6: optional ConvertedType converted_type;
  7: optional i32 scale;
  8: optional i32 precision;
  9: optional i32 field_id;
  10: optional LogicalType logicalType;
}

// ---------------------------------------------------------------- pages

struct DataPageHeader {
  /** Nulls included. */
  1: required i32 num_values;
  2: required Encoding encoding;
  3: required Encoding definition_level_encoding;
  4: required Encoding repetition_level_encoding;
  5: optional Statistics statistics;
}

struct IndexPageHeader {}

/** At most one per column chunk, in front of its data pages. */
struct DictionaryPageHeader {
  1: required i32 num_values;
  2: required Encoding encoding;
  3: optional bool is_sorted;
}

/** Levels come first, never compressed, RLE without a length prefix. */
struct DataPageHeaderV2 {
  /** Nulls included. */
  1: required i32 num_values;
  2: required i32 num_nulls;
  3: required i32 num_rows;
  4: required Encoding encoding;
  5: required i32 definition_levels_byte_length;
  6: required i32 repetition_levels_byte_length;
  /** Concerns the values behind the levels. */
  7: optional bool is_compressed = true;
  8: optional Statistics statistics;
}

/** Exactly one of the *_header fields is set, the one `type` names. */
struct PageHeader {
  1: required PageType type;
  /** Body sizes in bytes, this header not counted. */
  2: required i32 uncompressed_page_size;
  3: required i32 compressed_page_size;
  /** CRC-32 (as in gzip) over the body as stored. */
  4: optional i32 crc;
  5: optional DataPageHeader data_page_header;
  6: optional IndexPageHeader index_page_header;
  7: optional DictionaryPageHeader dictionary_page_header;
  8: optional DataPageHeaderV2 data_page_header_v2;
}

// ---------------------------------------------------------------- Bloom filters

struct SplitBlockAlgorithm {}

union BloomFilterAlgorithm {
  1: SplitBlockAlgorithm BLOCK;
}

struct XxHash {}

/** XXH64, seed 0, of the PLAIN bytes without a length prefix. */
union BloomFilterHash {
  1: XxHash XXHASH;
}

struct Uncompressed {}

union BloomFilterCompression {
  1: Uncompressed UNCOMPRESSED;
}

/** Stands right before the bitset. */
struct BloomFilterHeader {
  /** Size of the bitset in bytes. */
  1: required i32 numBytes;
  2: required BloomFilterAlgorithm algorithm;
  3: required BloomFilterHash hash;
  4: required BloomFilterCompression compression;
}

// ---------------------------------------------------------------- column chunks and row groups

struct KeyValue {
  1: required string key;
  2: optional string value;
}

/** A claim about row order inside a row group, which no reader has checked. */
struct SortingColumn {
  /** Ordinal of the leaf column. */
  1: required i32 column_idx;
  2: required bool descending;
  3: required bool nulls_first;
}

/** How many pages of a kind carry an encoding. */
struct PageEncodingStats {
  1: required PageType page_type;
  2: required Encoding encoding;
  3: required i32 count;
}

struct ColumnMetaData {
  1: required Type type;
  /** Every encoding in the chunk, levels and dictionary included. */
  2: required list<Encoding> encodings;
  3: required list<string> path_in_schema;
  4: required CompressionCodec codec;
  /** Nulls included. */
  5: required i64 num_values;
  /** Both totals count page headers. */
  6: required i64 total_uncompressed_size;
  7: required i64 total_compressed_size;
  8: optional list<KeyValue> key_value_metadata;
  9: required i64 data_page_offset;
  10: optional i64 index_page_offset;
  /** Some writers store 0 for "none". */
  11: optional i64 dictionary_page_offset;
  12: optional Statistics statistics;
  13: optional list<PageEncodingStats> encoding_stats;
  14: optional i64 bloom_filter_offset;
  /** Header and bitset together, in bytes. */
  15: optional i32 bloom_filter_length;
  16: optional SizeStatistics size_statistics;
  17: optional GeospatialStatistics geospatial_statistics;
}

struct EncryptionWithFooterKey {}

struct EncryptionWithColumnKey {
  1: required list<string> path_in_schema;
  2: optional binary key_metadata;
}

union ColumnCryptoMetaData {
  1: EncryptionWithFooterKey ENCRYPTION_WITH_FOOTER_KEY;
  2: EncryptionWithColumnKey ENCRYPTION_WITH_COLUMN_KEY;
}

struct ColumnChunk {
  /** Data in another file; followed only on request. */
  1: optional string file_path;
  /** Deprecated: written as 0, not read. */
  2: required i64 file_offset = 0;
  /** Absent only when the column is encrypted with its own key. */
  3: optional ColumnMetaData meta_data;
  4: optional i64 offset_index_offset;
  5: optional i32 offset_index_length;
  6: optional i64 column_index_offset;
  7: optional i32 column_index_length;
  8: optional ColumnCryptoMetaData crypto_metadata;
  /** ColumnMetaData as an encryption module. */
  9: optional binary encrypted_column_metadata;
}

struct RowGroup {
  /** In schema order, one per leaf. */
  1: required list<ColumnChunk> columns;
  2: required i64 total_byte_size;
  3: required i64 num_rows;
  4: optional list<SortingColumn> sorting_columns;
  5: optional i64 file_offset;
  6: optional i64 total_compressed_size;
  7: optional i16 ordinal;
}

struct TypeDefinedOrder {}
struct IEEE754TotalOrder {}
struct Int96TimestampOrder {}

/** The order behind a column's bounds. Nothing set means an order we do not know: ignore the bounds. */
union ColumnOrder {
  1: TypeDefinedOrder TYPE_ORDER;
  2: IEEE754TotalOrder IEEE_754_TOTAL_ORDER;
  3: Int96TimestampOrder INT96_TIMESTAMP_ORDER;
}

// ---------------------------------------------------------------- page index

struct PageLocation {
  1: required i64 offset;
  /** Header included. */
  2: required i32 compressed_page_size;
  /** Counted inside the row group; rises strictly from page to page. */
  3: required i64 first_row_index;
}

/** Where the data pages lie; the dictionary page is not listed. */
struct OffsetIndex {
  1: required list<PageLocation> page_locations;
  /** BYTE_ARRAY only, one entry per page. */
  2: optional list<i64> unencoded_byte_array_data_bytes;
}

/** Bounds of each data page, in the order of OffsetIndex.page_locations. */
struct ColumnIndex {
  /** True: only nulls in the page, whose bounds are then empty and meaningless. */
  1: required list<bool> null_pages;
  2: required list<binary> min_values;
  3: required list<binary> max_values;
  4: required BoundaryOrder boundary_order;
  5: optional list<i64> null_counts;
  /** Histograms of all pages, one behind the other. */
  6: optional list<i64> repetition_level_histograms;
  7: optional list<i64> definition_level_histograms;
  8: optional list<i64> nan_counts;
}

// ---------------------------------------------------------------- encryption and the footer

struct AesGcmV1 {
  1: optional binary aad_prefix;
  2: optional binary aad_file_unique;
  /** The prefix is not in the file: the reader must know it. */
  3: optional bool supply_aad_prefix;
}

struct AesGcmCtrV1 {
  1: optional binary aad_prefix;
  2: optional binary aad_file_unique;
  3: optional bool supply_aad_prefix;
}

union EncryptionAlgorithm {
  1: AesGcmV1 AES_GCM_V1;
  2: AesGcmCtrV1 AES_GCM_CTR_V1;
}

/** The footer. */
struct FileMetaData {
  /** Written as 1; 1 and 2 are read alike. */
  1: required i32 version;
  2: required list<SchemaElement> schema;
  3: required i64 num_rows;
  4: required list<RowGroup> row_groups;
  5: optional list<KeyValue> key_value_metadata;
  6: optional string created_by;
  /** One per leaf; without it min_value and max_value mean nothing. */
  7: optional list<ColumnOrder> column_orders;
  /** Only in encrypted files with a plaintext footer. */
  8: optional EncryptionAlgorithm encryption_algorithm;
  9: optional binary footer_signing_key_metadata;
}

/** In front of an encrypted footer. */
struct FileCryptoMetaData {
  1: required EncryptionAlgorithm encryption_algorithm;
  /** How to find the footer key. */
  2: optional binary key_metadata;
}
