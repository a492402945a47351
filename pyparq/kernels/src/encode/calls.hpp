// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "encode/given_chunk.hpp"

namespace pyparq {

void init_file(FileRules* self, int64_t version, int64_t max_rows, int64_t page_size, int64_t dictionary_limit, int64_t statistics_truncate,
               int64_t index_truncate, int64_t longest_bound, bool page_index, bool size_statistics, int64_t min_values,
               double settles, double most_of_dictionary, const std::string& record_key, nb::object crc, int64_t threads);
void init_column(ColumnRules* self, nb::object file, nb::object order, int64_t physical, int64_t width, int64_t max_def, int64_t max_rep,
                 int64_t codec, nb::object compress, int64_t level, bool dictionary, bool keep_dictionary, int64_t encoding,
                 const std::vector<std::pair<int, double>>& candidates, bool statistics, bool text,
                 int64_t precision, int64_t geo, std::vector<std::string> path, const nb::sequence& key_values);
void init_dictionary(KnownDictionary* self, nb::object entries, int64_t count, nb::object indices, int64_t distinct);
void init_values_chunk(ValuesChunk* self, nb::object rules, nb::object offsets, nb::object values, nb::object def_levels,
                       nb::object rep_levels, int64_t num_rows, int64_t num_slots, nb::object dictionary, nb::object choice, nb::object seal);
void init_arrays_chunk(ArraysChunk* self, nb::object rules, nb::list arrays, int64_t num_rows, nb::object codes, nb::object choice,
                       nb::object seal);

}  // namespace pyparq
