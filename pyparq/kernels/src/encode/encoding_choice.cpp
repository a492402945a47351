// Dictionary or not, and which encoding otherwise; pyparq.write.encoding_choice says why, and has the thresholds.
#include "encode/column.hpp"

#include "values/checks.hpp"

namespace pyparq {
namespace {

void put_booleans(const Values& v, Room& out) {
    const size_t size = (v.count + 7) / 8;
    uint8_t* const bits = out.more(size);
    for (size_t byte = 0; byte < size; ++byte) {
        uint8_t packed = 0;
        for (size_t k = 8 * byte; k < std::min(v.count, 8 * byte + 8); ++k) packed |= static_cast<uint8_t>((v.data[k] != 0) << (k & 7));
        bits[byte] = packed;
    }
    out.add(size);
}

void put_plain(const ColumnRules& column, const Values& v, Room& out) {
    if (column.boolean()) return put_booleans(v, out);
    if (!v.binary()) return out.put(v.data, v.count * v.width);
    const size_t size = v.plain_size();
    plain_binary_into(v, out.more(size));
    out.add(size);
}

// The values that one page takes: up to max_rows of them, and about page_size bytes.
Values first_page(const Values& v, const FileRules& file) {
    size_t count = std::min(v.count, static_cast<size_t>(file.max_rows));
    if (v.binary()) {
        const size_t most = count;
        count = v.visit([&](const auto* o) {
            const auto end = std::upper_bound(o, o + most + 1, static_cast<int64_t>(o[0]) + file.page_size,
                                              [](int64_t a, auto b) { return a < static_cast<int64_t>(b); });
            return static_cast<size_t>(end - o) - 1;
        });
        count = std::max(count, std::min(most, size_t{1}));
    }
    return v.slice(0, count);
}

constexpr size_t kLeastOfSample = size_t{32} << 10, kSampleShare = 8;

// The middle of a page, which stands for the whole: an eighth of it, but not few bytes. Compressing a page of text takes much
// longer than all else, so it is done once, in the encoding that is chosen. Numbers are measured whole: a part of them says
// too little of how they compress.
Values sample_of(const ColumnRules& column, const Values& page) {
    const size_t size = page.plain_size();
    const size_t part = std::max(kLeastOfSample, size / kSampleShare);
    if (!page.binary() || part >= size) return page;
    const size_t count = std::clamp(page.count * part / size, std::min(page.count, static_cast<size_t>(column.file->min_values)), page.count);
    const size_t first = (page.count - count) / 2;
    return page.slice(first, first + count);
}

size_t stored_size(const Room& body, Compressor& compressor) {
    Room stored;
    return compressor.run(body.data(), body.size(), stored);
}

// Measures encodings; `made` gets what the first page holds in the chosen one, where the sample is what it would hold. `against`:
// the choice is compared with a dictionary, which is measured on a whole page.
Choice choose(const ColumnRules& column, const LeafValues& leaf, size_t start, bool against, Compressor& compressor, StoredBody& made) {
    Choice choice;
    const Values page = first_page(leaf.values.slice(start, leaf.values.count), *column.file);
    const Values sample = against ? page : sample_of(column, page);
    if (static_cast<int64_t>(sample.count) < column.file->min_values || column.candidates.empty()) return choice;
    // Levels stand before the values of a page of version 1, and are compressed with them: here only where there are no nulls.
    const bool with_levels = column.file->version == 1 && column.max_rep == 0 && leaf.defs == nullptr;
    const bool whole = start == 0 && sample.count == page.count && (column.file->version == 2 || with_levels);
    Room body;
    StoredBody tried;
    const auto measure = [&](int encoding) {
        body.clear();
        if (with_levels) put_sized_levels(nullptr, sample.count, column.max_def, body);
        put_values(column, encoding, sample, body);
        tried.encoding = encoding, tried.values = sample.count, tried.size = body.size();
        tried.stored.clear();
        const double size = static_cast<double>(compressor.run(body.data(), body.size(), tried.stored)) / static_cast<double>(sample.count);
        choice.sizes.emplace_back(encoding, size);
        return size;
    };
    const auto keep = [&] {
        choice.encoding = tried.encoding;
        if (whole) std::swap(made, tried);
    };
    double best = measure(kPlain);
    keep();
    for (const Candidate& candidate : column.candidates) {
        const double size = measure(candidate.encoding);
        if (size > candidate.most * best) continue;
        best = size;
        keep();
    }
    return choice;
}

// The fewest entries with which a dictionary over so many values takes no less than they do.
size_t entries_in_vain(size_t count, size_t width) {
    const size_t plain = count * width;
    for (size_t bits = 0; bits < 64; ++bits) {
        const size_t indices = (count * bits + 7) / 8;
        const size_t needed = plain > indices ? (plain - indices + width - 1) / width : 0;
        const size_t fewest = bits == 0 ? 1 : (size_t{1} << (bits - 1)) + 1;  // that take so many bits
        if (needed <= size_t{1} << bits) return std::max(needed, fewest);
    }
    return count;
}

// A dictionary over the first values; false where it does not pay.
bool try_dictionary(const ColumnRules& column, const Values& v, Decision& d) {
    const auto limit = static_cast<size_t>(column.file->dictionary_limit);
    if (v.count == 0 || (!column.keep_dictionary && !may_repeat(v, limit))) return false;
    d.own_indices.resize(v.count);
    size_t most = limit;
    if (!column.keep_dictionary && !v.binary() && v.plain_size() <= limit) most = std::min(most, (entries_in_vain(v.count, v.width) - 1) * v.width);
    d.covered = dictionary_of(v, most, d.own_indices.data(), d.first);
    if (d.covered == 0 || (d.covered < v.count && most < limit)) return false;
    d.num_entries = d.first.size();
    d.complete = d.covered == v.count;
    for (const int64_t f : d.first) {
        const auto k = static_cast<size_t>(f);
        if (v.binary()) {
            const auto length = static_cast<uint32_t>(v.bytes(k, k + 1));
            d.own_entries.put(&length, 4);
            d.own_entries.put(v.data + v.offset(k), length);
        } else {
            d.own_entries.put(v.data + k * v.width, v.width);
        }
        if (d.own_entries.size() > limit) return false;  // a single value wider than the limit
    }
    d.entries = d.own_entries.data(), d.entries_size = d.own_entries.size(), d.indices = d.own_indices.data();
    return true;
}

double share_of_plain(const Decision& d, const Values& v) {
    const size_t with_dictionary = d.entries_size + (d.covered * d.index_bits() + 7) / 8;
    return static_cast<double>(with_dictionary) / static_cast<double>(std::max(v.slice(0, d.covered).plain_size(), size_t{1}));
}

// The entries that fit one page: how many bytes they take.
size_t first_entries(const ColumnRules& column, const Decision& d) {
    const size_t most = std::min(d.num_entries, static_cast<size_t>(column.file->max_rows));
    if (column.width != 0) return most * column.width;
    size_t at = 0, content = 0;
    for (size_t k = 0; k < most; ++k) {
        const size_t length = load<uint32_t>(d.entries + at);
        if (k > 0 && content + length > static_cast<size_t>(column.file->page_size)) break;
        content += length, at += 4 + length;
    }
    return at;
}

// Does the chosen encoding take clearly less than the dictionary? PLAIN may, although it is larger before compression: in a
// sorted column equal values stand side by side.
bool beats_dictionary(const ColumnRules& column, const Choice& choice, const Decision& d, Compressor& compressor) {
    if (choice.sizes.empty()) return false;
    const double most = column.file->most_of_dictionary, size = choice.size();
    const size_t count = std::min(d.covered, static_cast<size_t>(column.file->max_rows));
    Room body;
    put_indices(d.indices, count, d.index_bits(), body);
    const double per_value = static_cast<double>(stored_size(body, compressor)) / static_cast<double>(count);
    const double covered = static_cast<double>(d.covered), whole = static_cast<double>(d.entries_size);
    if (size >= most * per_value + whole / covered) return false;
    const size_t part = first_entries(column, d);
    Room stored;
    const double stored_entries = static_cast<double>(compressor.run(d.entries, part, stored)) * whole / static_cast<double>(part);
    return size < most * (per_value + stored_entries / covered);
}

}  // namespace

void put_indices(const int32_t* indices, size_t count, unsigned bits, Room& out) {
    const auto width = static_cast<uint8_t>(bits);
    out.put(&width, 1);
    const size_t bound = hybrid_bound(count, bits);
    uint8_t* const at = out.more(bound);
    out.add(hybrid_into(indices, count, bits, at, bound));
}

void put_values(const ColumnRules& column, int encoding, const Values& v, Room& out) {
    switch (encoding) {
        case kPlain: return put_plain(column, v, out);
        case kRle: {
            const size_t bound = hybrid_bound(v.count, 1);
            uint8_t* const at = out.more(4 + bound);
            const size_t size = hybrid_into(v.data, v.count, 1, at + 4, bound);
            store(at, static_cast<uint32_t>(size));
            return out.add(4 + size);
        }
        case kDeltaBinaryPacked: return out.add(delta_into(v, out.more(delta_bound(v.count, v.width))));
        case kDeltaLength: return out.add(delta_length_into(v, out.more(delta_length_bound(v))));
        case kDeltaByteArray: {
            const size_t bound = delta_byte_array_bound(v);
            uint8_t* const at = out.more(bound);
            return out.add(delta_byte_array_into(v, at, bound));
        }
        case kByteStreamSplit:
            split_into(v.data, v.count, v.width, out.more(v.count * v.width));
            return out.add(v.count * v.width);
        case kAlp: return out.add(alp_into(v, out.more(alp_bound(v.count, v.width))));
        default: fail("nothing is written in encoding " + str(int64_t{encoding}));
    }
}

Decision decide(const ColumnRules& column, const LeafValues& leaf, Compressor& compressor) {
    Decision d;
    if (leaf.given) {
        d.dictionary = d.complete = true;
        d.indices = leaf.indices, d.covered = leaf.values.count, d.num_entries = leaf.num_entries;
        d.entries = leaf.entries, d.entries_size = leaf.entries_size, d.distinct = leaf.distinct;
        return d;
    }
    const Values& v = leaf.values;
    if (column.dictionary && try_dictionary(column, v, d)) d.dictionary = column.keep_dictionary || share_of_plain(d, v) < 1;
    d.complete = d.complete && d.dictionary;
    if (d.complete) d.distinct = static_cast<int64_t>(d.num_entries);
    if (column.encoding >= 0) {
        d.encoding = column.encoding;
        return d;
    }
    if (d.complete && share_of_plain(d, v) <= column.file->settles) return d;
    // The page that decides is the first one that this encoding would have to hold.
    const size_t start = d.dictionary && !d.complete ? d.covered : 0;
    d.chose = !leaf.chosen;
    d.choice = leaf.chosen ? leaf.choice : choose(column, leaf, start, d.dictionary, compressor, d.first_page);
    d.encoding = d.choice.encoding;
    if (d.dictionary && beats_dictionary(column, d.choice, d, compressor)) d.dictionary = false;
    return d;
}

}  // namespace pyparq
