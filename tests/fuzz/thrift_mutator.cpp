// Structs of Thrift's compact protocol, taken apart, changed in one place and put together again.
#include <algorithm>
#include <cstring>

#include "mutators.hpp"

namespace {

enum Type : uint8_t { kTrue = 1, kFalse, kByte, kI16, kI32, kI64, kDouble, kBinary, kList, kSet, kMap, kStruct };
constexpr int kDeepest = 24;
constexpr size_t kMostParts = 4096;

struct Reader {
    const Octets& from;
    size_t at;
    bool good = true;

    uint8_t byte() {
        if (at >= from.size()) return good = false, 0;
        return from[at++];
    }
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint8_t next = byte();
            value |= uint64_t{next & 127u} << shift;
            if (next < 128 || !good) break;
        }
        return value;
    }
    int64_t number() {
        const uint64_t value = varint();
        return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }
    Octets bytes(size_t size) {
        if (size > from.size() - at) return good = false, Octets{};
        at += size;
        return {from.begin() + static_cast<ptrdiff_t>(at - size), from.begin() + static_cast<ptrdiff_t>(at)};
    }
    void value(uint8_t type, ThriftValue& found, int depth);
    void structure(ThriftValue& found, int depth);
    void list(ThriftValue& found, int depth);
};

void Reader::value(uint8_t type, ThriftValue& found, int depth) {
    found.type = type;
    if (depth > kDeepest) good = false;
    if (!good) return;
    switch (type) {
        case kTrue:
        case kFalse: found.number = byte(); return;
        case kByte: found.number = byte(); return;
        case kI16:
        case kI32:
        case kI64: found.number = number(); return;
        case kDouble: found.bytes = bytes(8); return;
        case kBinary: found.bytes = bytes(varint()); return;
        case kList:
        case kSet: return list(found, depth);
        case kStruct: return structure(found, depth);
        default: good = false;
    }
}

void Reader::list(ThriftValue& found, int depth) {
    const uint8_t head = byte();
    found.element = head & 15;
    const size_t count = head >> 4 == 15 ? varint() : head >> 4;
    if (count > kMostParts) good = false;
    for (size_t k = 0; k < count && good; ++k) value(found.element, found.inside.emplace_back(), depth + 1);
}

void Reader::structure(ThriftValue& found, int depth) {
    found.type = kStruct;
    int64_t id = 0;
    while (good && found.inside.size() < kMostParts) {
        const uint8_t head = byte();
        if (head == 0 || !good) return;
        id = head >> 4 ? id + (head >> 4) : number();
        ThriftValue& field = found.inside.emplace_back();
        found.ids.push_back(static_cast<int16_t>(id));
        const uint8_t type = head & 15;
        if (type == kTrue || type == kFalse) field.type = type;
        else value(type, field, depth + 1);
    }
}

void put_varint(uint64_t value, Octets& out) {
    for (; value > 127; value >>= 7) out.push_back(static_cast<uint8_t>(value | 128));
    out.push_back(static_cast<uint8_t>(value));
}

void put_number(int64_t value, Octets& out) {
    put_varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63), out);
}

void put_inner(const ThriftValue& value, Octets& out) {
    switch (value.type) {
        case kTrue:
        case kFalse:
        case kByte: out.push_back(static_cast<uint8_t>(value.number)); return;
        case kI16:
        case kI32:
        case kI64: return put_number(value.number, out);
        case kBinary: put_varint(value.bytes.size(), out); [[fallthrough]];
        case kDouble: out.insert(out.end(), value.bytes.begin(), value.bytes.end()); return;
        case kStruct: return write_thrift(value, out);
        default: break;
    }
    const size_t count = value.inside.size();
    out.push_back(static_cast<uint8_t>(std::min<size_t>(count, 15) << 4 | value.element));
    if (count >= 15) put_varint(count, out);
    for (const ThriftValue& item : value.inside) put_inner(item, out);
}

int64_t other_number(int64_t was, Random& random) {
    static constexpr int64_t kKnown[] = {0, 1, -1, 2, 3, 4, 7, 8, 9, 16, 127, 128, 255, 256, 32767, 65535, 1 << 20,
                                         INT32_MAX, INT32_MIN, int64_t{1} << 32, INT64_MAX, INT64_MIN};
    switch (random() % 5) {
        case 0: return was + 1;
        case 1: return was - 1;
        case 2: return was ^ int64_t{1} << random() % 32;
        case 3: return static_cast<int64_t>(random() % 64);
        default: return kKnown[random() % std::size(kKnown)];
    }
}

void gather(ThriftValue& value, std::vector<ThriftValue*>& all) {
    all.push_back(&value);
    for (ThriftValue& part : value.inside) gather(part, all);
}

// One part more, less, twice or elsewhere.
void change_parts(ThriftValue& value, Random& random) {
    const size_t count = value.inside.size();
    if (count == 0) return;
    const auto place = static_cast<ptrdiff_t>(random() % count), other = static_cast<ptrdiff_t>(random() % count);
    const bool has_ids = value.type == kStruct;
    switch (random() % 4) {
        case 0:
            value.inside.erase(value.inside.begin() + place);
            if (has_ids) value.ids.erase(value.ids.begin() + place);
            return;
        case 1: {
            ThriftValue copy = value.inside[static_cast<size_t>(place)];
            value.inside.insert(value.inside.begin() + other, std::move(copy));
            if (has_ids) value.ids.insert(value.ids.begin() + other, value.ids[static_cast<size_t>(place)]);
            return;
        }
        case 2: std::swap(value.inside[static_cast<size_t>(place)], value.inside[static_cast<size_t>(other)]); return;
        default:
            if (has_ids) value.ids[static_cast<size_t>(place)] = static_cast<int16_t>(random() % 20);
            else value.inside.resize(count / 2);
    }
}

}  // namespace

bool read_thrift(const Octets& from, size_t& at, ThriftValue& found) {
    Reader reader{from, at};
    reader.structure(found, 0);
    if (reader.good) at = reader.at;
    return reader.good;
}

void write_thrift(const ThriftValue& value, Octets& out) {
    int16_t before = 0;
    for (size_t k = 0; k < value.inside.size(); ++k) {
        const ThriftValue& field = value.inside[k];
        const int step = value.ids[k] - before;
        if (step > 0 && step < 16) {
            out.push_back(static_cast<uint8_t>(step << 4 | field.type));
        } else {
            out.push_back(field.type);
            put_number(value.ids[k], out);
        }
        before = value.ids[k];
        if (field.type != kTrue && field.type != kFalse) put_inner(field, out);
    }
    out.push_back(0);
}

void change_thrift(ThriftValue& value, Random& random) {
    std::vector<ThriftValue*> all;
    gather(value, all);
    ThriftValue& chosen = *all[random() % all.size()];
    switch (chosen.type) {
        case kTrue: chosen.type = kFalse; return;
        case kFalse: chosen.type = kTrue; return;
        case kByte:
        case kI16:
        case kI32:
        case kI64: chosen.number = other_number(chosen.number, random); return;
        case kDouble: chosen.bytes[random() % 8] ^= static_cast<uint8_t>(1u << random() % 8); return;
        case kBinary: return change_bytes(chosen.bytes, chosen.bytes.size() + 16);
        default: return change_parts(chosen, random);
    }
}

void change_bytes(Octets& bytes, size_t room) {
    const size_t size = bytes.size();
    bytes.resize(std::max<size_t>(room, 1));
    bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
}

size_t given_back(const Octets& made, uint8_t* data, size_t most) {
    const size_t size = std::min(made.size(), most);
    if (size > 0) std::memcpy(data, made.data(), size);
    return size;
}

size_t mutate_thrift(uint8_t* data, size_t size, size_t most, unsigned seed) {
    Random random(seed);
    if (size < kHead || random() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
    if (random() % 8 == 0) {
        data[random() % kHead] = static_cast<uint8_t>(random());
        return size;
    }
    const Octets given(data, data + size);
    size_t at = kHead;
    ThriftValue value;
    if (!read_thrift(given, at, value)) return LLVMFuzzerMutate(data, size, most);
    for (auto changes = 1 + random() % 3; changes > 0; --changes) change_thrift(value, random);
    Octets made(given.begin(), given.begin() + kHead);
    write_thrift(value, made);
    made.insert(made.end(), given.begin() + static_cast<ptrdiff_t>(at), given.end());
    return given_back(made, data, most);
}
