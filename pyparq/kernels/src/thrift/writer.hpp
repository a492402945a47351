// Writing Thrift structs in the compact protocol: fields in ascending order, as the generated classes write them.
#pragma once

#include "base/common.hpp"

#include <string_view>
#include <vector>

namespace pyparq {

class ThriftOut {
  public:
    std::string bytes;

    static constexpr uint8_t kTrue = 1, kI32 = 5, kI64 = 6, kDouble = 7, kBinary = 8, kList = 9, kStruct = 12;

    // A struct that is no field: the outermost one, or an element of a list.
    void open() {
        outer_.push_back(last_);
        last_ = 0;
    }
    void open(int id) {
        field(id, kStruct);
        open();
    }
    void close() {
        put(0);
        last_ = outer_.back();
        outer_.pop_back();
    }
    void i32(int id, int32_t v) {
        field(id, kI32);
        number(v);
    }
    void i64(int id, int64_t v) {
        field(id, kI64);
        number(v);
    }
    void number64(int id, double v) {
        field(id, kDouble);
        char raw[8];
        store(raw, v);
        bytes.append(raw, 8);
    }
    void boolean(int id, bool v) { field(id, v ? kTrue : 2); }
    void binary(int id, std::string_view v) {
        field(id, kBinary);
        text(v);
    }
    void list(int id, uint8_t element, size_t count) {
        field(id, kList);
        if (count < 15) {
            put(static_cast<uint8_t>(count << 4 | element));
        } else {
            put(static_cast<uint8_t>(0xf0 | element));
            varint(count);
        }
    }
    void i64s(int id, const std::vector<int64_t>& all) {
        list(id, kI64, all.size());
        for (const int64_t v : all) number(v);
    }

    // Elements of lists.
    void flag(bool v) { put(v ? kTrue : 2); }
    void number(int64_t v) { varint(static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63)); }
    void text(std::string_view v) {
        varint(v.size());
        bytes.append(v);
    }
    // A field whose value follows as `raw`.
    void raw_struct(int id, std::string_view raw) {
        field(id, kStruct);
        bytes.append(raw);
    }

  private:
    void put(uint8_t b) { bytes.push_back(static_cast<char>(b)); }
    void varint(uint64_t v) {
        for (; v >= 0x80; v >>= 7) put(static_cast<uint8_t>(v | 0x80));
        put(static_cast<uint8_t>(v));
    }
    void field(int id, uint8_t type) {  // ids are below 16 apart everywhere in the format
        put(static_cast<uint8_t>((id - last_) << 4 | type));
        last_ = id;
    }

    int last_ = 0;
    std::vector<int> outer_;
};

}  // namespace pyparq
