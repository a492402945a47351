// Rules of files and columns, made from what Python says.
#include "encode/calls.hpp"

#include <new>

namespace pyparq {
namespace {

int checked_level(int64_t v) {
    if (v < 0 || v > 255) fail("level out of range: " + str(v));
    return static_cast<int>(v);
}

}  // namespace

void init_file(FileRules* self, int64_t version, int64_t max_rows, int64_t page_size, int64_t dictionary_limit, int64_t statistics_truncate,
               int64_t index_truncate, int64_t longest_bound, bool page_index, bool size_statistics, int64_t min_values,
               double settles, double most_of_dictionary, const std::string& record_key, nb::object crc, int64_t threads) {
    if (version != 1 && version != 2) fail("there is no data page version " + str(version));
    if (max_rows < 1 || page_size < 1 || dictionary_limit < 0) fail("a limit is too small");
    FileRules rules;
    rules.version = version, rules.max_rows = max_rows, rules.page_size = page_size, rules.dictionary_limit = dictionary_limit;
    rules.statistics_truncate = statistics_truncate, rules.index_truncate = index_truncate, rules.longest_bound = longest_bound;
    rules.page_index = page_index, rules.size_statistics = size_statistics, rules.min_values = min_values;
    rules.settles = settles, rules.most_of_dictionary = most_of_dictionary, rules.record_key = record_key;
    if (!crc.is_none()) rules.crc = nb::cast<const Crc32*>(crc);
    rules.crc_object = std::move(crc), rules.threads = threads;
    new (self) FileRules(std::move(rules));
}

void init_column(ColumnRules* self, nb::object file, nb::object order, int64_t physical, int64_t width, int64_t max_def, int64_t max_rep,
                 int64_t codec, nb::object compress, int64_t level, bool dictionary, bool keep_dictionary, int64_t encoding,
                 const std::vector<std::pair<int, double>>& candidates, bool statistics, bool text,
                 int64_t precision, int64_t geo, std::vector<std::string> path, const nb::sequence& key_values) {
    ColumnRules rules;
    rules.file = nb::cast<const FileRules*>(file);
    rules.order = nb::cast<const LeafOrder*>(order);
    rules.file_object = std::move(file), rules.order_object = std::move(order);
    rules.physical = static_cast<int>(physical), rules.width = checked_count(width, "width");
    rules.max_def = checked_level(max_def), rules.max_rep = checked_level(max_rep), rules.codec = static_cast<int>(codec);
    rules.compress = std::move(compress), rules.level = static_cast<int>(level);
    rules.dictionary = dictionary, rules.keep_dictionary = keep_dictionary, rules.encoding = static_cast<int>(encoding);
    for (const auto& [candidate, most] : candidates) rules.candidates.push_back({candidate, most});
    rules.statistics = statistics, rules.text = text, rules.precision = precision, rules.geo = static_cast<int>(geo), rules.path = std::move(path);
    for (const nb::handle pair : key_values) {
        const auto bytes = nb::cast<nb::bytes>(pair);
        rules.key_values.emplace_back(bytes.c_str(), bytes.size());
    }
    new (self) ColumnRules(std::move(rules));
}

void init_dictionary(KnownDictionary* self, nb::object entries, int64_t count, nb::object indices, int64_t distinct) {
    new (self) KnownDictionary{std::move(entries), count, std::move(indices), distinct};
}

void init_values_chunk(ValuesChunk* self, nb::object rules, nb::object offsets, nb::object values, nb::object def_levels,
                       nb::object rep_levels, int64_t num_rows, int64_t num_slots, nb::object dictionary, nb::object choice, nb::object seal) {
    new (self) ValuesChunk{std::move(rules), std::move(offsets), std::move(values), std::move(def_levels), std::move(rep_levels),
                           num_rows, num_slots, std::move(dictionary), std::move(choice), std::move(seal)};
}

void init_arrays_chunk(ArraysChunk* self, nb::object rules, nb::list arrays, int64_t num_rows, nb::object codes, nb::object choice,
                       nb::object seal) {
    new (self) ArraysChunk{std::move(rules), std::move(arrays), num_rows, std::move(codes), std::move(choice), std::move(seal)};
}

}  // namespace pyparq
