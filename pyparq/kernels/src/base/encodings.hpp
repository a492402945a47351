// The encodings of values, by their numbers in parquet.thrift (Encodings.md).
#pragma once

namespace pyparq {

enum Encoding : int {
    kPlain = 0,
    kPlainDictionary = 2,
    kRle = 3,
    kBitPacked = 4,  // of levels alone
    kDeltaBinaryPacked = 5,
    kDeltaLength = 6,
    kDeltaByteArray = 7,
    kRleDictionary = 8,
    kByteStreamSplit = 9,
    kAlp = 10,
    kLastEncoding = kAlp,
};

// Whether pages of values of some type may have it.
inline bool is_encoding(int encoding) {
    return encoding >= 0 && encoding <= kLastEncoding && encoding != 1 && encoding != kBitPacked;
}

inline bool is_dictionary(int encoding) { return encoding == kPlainDictionary || encoding == kRleDictionary; }

}  // namespace pyparq
