#include "variant/encoding.hpp"

#include <algorithm>

namespace pyparq::variant {

void Metadata::parse(Span bytes) {
    if (parsed_ && bytes.size == bytes_.size() && std::memcmp(bytes.data, bytes_.data(), bytes.size) == 0) return;
    parsed_ = false;
    names_.clear();
    ids_.clear();
    bytes_.assign(bytes.data, bytes.data + bytes.size);
    if (bytes.size == 0) fail("the metadata is empty");
    const uint8_t header = bytes_[0];
    if ((header & 0x0f) != 1) fail("the metadata has version " + str(uint64_t{header} & 0x0f) + ", and only 1 is known");
    const size_t width = (header >> 6) + size_t{1};
    if (bytes.size < 1 + width) fail("the metadata is cut short");
    const size_t count = read_number(&bytes_[1], width);
    if (count > (bytes.size - 1 - width) / width) fail("the metadata declares more names than it holds");
    const size_t text = 1 + width * (count + 2);
    if (text > bytes.size) fail("the metadata is cut short");
    const uint8_t* const offsets = &bytes_[1 + width];
    size_t begin = read_number(offsets, width);
    for (size_t k = 1; k <= count; ++k) {
        const size_t end = read_number(offsets + k * width, width);
        if (end < begin || end > bytes.size - text) fail("a name in the metadata lies outside of it");
        names_.emplace_back(reinterpret_cast<const char*>(bytes_.data()) + text + begin, end - begin);
        ids_.emplace(names_.back(), static_cast<uint32_t>(k - 1));
        begin = end;
    }
    parsed_ = true;
}

uint32_t Metadata::id_of(std::string_view name) const {
    const auto found = ids_.find(name);
    if (found == ids_.end()) fail("the metadata lacks the field name '" + std::string(name) + "'");
    return found->second;
}

std::string_view Metadata::name_of(uint32_t id) const {
    if (id >= names_.size()) fail("the field id " + str(uint64_t{id}) + " is not in the metadata");
    return names_[id];
}

Span Container::value(size_t k) const {
    const size_t begin = read_number(offsets + k * offset_width, offset_width);
    if (begin >= size) fail("an offset lies outside of its object or array");
    return {values + begin, size_of(values + begin, size - begin)};
}

Container container_of(Span value) {
    if (value.size < 2) fail("an object or array is cut short");
    const uint8_t header = value.data[0] >> 2;
    const bool is_object = (value.data[0] & 3) == kObject;
    const bool is_large = (is_object ? header >> 4 : header >> 2) & 1;
    Container found;
    found.offset_width = (header & 3) + size_t{1};
    found.id_width = is_object ? ((header >> 2) & 3) + size_t{1} : 0;
    const size_t count_width = is_large ? 4 : 1;
    if (value.size < 1 + count_width) fail("an object or array is cut short");
    found.count = read_number(value.data + 1, count_width);
    const size_t left = value.size - 1 - count_width, per_item = found.id_width + found.offset_width;
    if (found.count > left / per_item || found.count * per_item + found.offset_width > left)
        fail("an object or array declares more items than it holds");
    found.ids = value.data + 1 + count_width;
    found.offsets = found.ids + found.count * found.id_width;
    found.values = found.offsets + (found.count + 1) * found.offset_width;
    found.size = read_number(found.offsets + found.count * found.offset_width, found.offset_width);
    if (found.size > value.size - static_cast<size_t>(found.values - value.data))
        fail("the items of an object or array lie outside of it");
    return found;
}

size_t size_of(const uint8_t* at, size_t left) {
    if (left == 0) fail("a value is empty");
    const uint8_t basic = at[0] & 3, header = at[0] >> 2;
    size_t size = 1;
    if (basic == 1) {
        size += header;
    } else if (basic != 0) {
        const Container found = container_of({at, left});
        size = static_cast<size_t>(found.values - at) + found.size;
    } else {
        switch (header) {
            case kNull:
            case kTrue:
            case kFalse: break;
            case kInt8: size += 1; break;
            case kInt16: size += 2; break;
            case kInt32:
            case kDate:
            case kFloat: size += 4; break;
            case kInt64:
            case kDouble:
            case kTimestamp:
            case kTimestampNtz:
            case kTime:
            case kTimestampNanos:
            case kTimestampNtzNanos: size += 8; break;
            case kDecimal4: size += 5; break;
            case kDecimal8: size += 9; break;
            case kDecimal16: size += 17; break;
            case kUuid: size += 16; break;
            case kBinary:
            case kString:
                if (left < 5) fail("a value is cut short");
                size += 4 + size_t{read_number(at + 1, 4)};
                break;
            default: fail("the type " + str(uint64_t{header}) + " of a value is unknown");
        }
    }
    if (size > left) fail("a value is cut short");
    return size;
}

void write_object(Bytes& out, std::vector<ObjectField>& fields, const Bytes& values) {
    std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    uint32_t most_id = 0;
    size_t total = 0;
    for (size_t k = 0; k < fields.size(); ++k) {
        if (k > 0 && fields[k].name == fields[k - 1].name)
            fail("an object has the field '" + std::string(fields[k].name) + "' twice");
        most_id = std::max(most_id, fields[k].id);
        total += fields[k].size;
    }
    if (total > kMostBytes) fail("a value has more than 2 GiB");
    const bool is_large = fields.size() > 255;
    const size_t id_width = width_of(most_id), offset_width = width_of(total);
    const size_t header = (static_cast<size_t>(is_large) << 4) | ((id_width - 1) << 2) | (offset_width - 1);
    out.push_back(static_cast<uint8_t>(header << 2 | kObject));
    write_number(out, fields.size(), is_large ? 4 : 1);
    for (const ObjectField& field : fields) write_number(out, field.id, id_width);
    size_t at = 0;
    for (const ObjectField& field : fields) {
        write_number(out, at, offset_width);
        at += field.size;
    }
    write_number(out, at, offset_width);
    for (const ObjectField& field : fields) append(out, values.data() + field.begin, field.size);
}

void write_array(Bytes& out, const std::vector<size_t>& edges, const Bytes& values) {
    const size_t count = edges.size() - 1, begin = edges.front(), total = edges.back() - begin;
    if (total > kMostBytes) fail("a value has more than 2 GiB");
    const bool is_large = count > 255;
    const size_t offset_width = width_of(total);
    out.push_back(static_cast<uint8_t>(((static_cast<size_t>(is_large) << 2) | (offset_width - 1)) << 2 | kArray));
    write_number(out, count, is_large ? 4 : 1);
    for (const size_t edge : edges) write_number(out, edge - begin, offset_width);
    append(out, values.data() + begin, total);
}

void write_text(Bytes& out, Primitive kind, Span text) {
    if (kind == kString && text.size < kShortString) {
        out.push_back(static_cast<uint8_t>(text.size << 2 | 1));
    } else {
        if (text.size > kMostBytes) fail("a value has more than 2 GiB");
        out.push_back(static_cast<uint8_t>(kind << 2));
        write_number(out, text.size, 4);
    }
    append(out, text.data, text.size);
}

}  // namespace pyparq::variant
