// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "index/bounds.hpp"

namespace pyparq {

nb::object segments_fixed(const LeafOrder& order, const RawIn& data, const In<int64_t>& edges);
nb::object segments_binary(const LeafOrder& order, const Offsets& offsets, const RawIn& data, const In<int64_t>& edges);
nb::bytes shorter_min_python(const LeafOrder& order, const nb::bytes& value, int64_t length);
nb::bytes shorter_max_python(const LeafOrder& order, const nb::bytes& value, int64_t length);
nb::bytes statistics(const LeafOrder& order, const nb::sequence& mins, const nb::sequence& maxs, int64_t null_count,
                     int64_t nan_count, int64_t distinct_count, int64_t truncate);
nb::object index_of_pages(const LeafOrder& order, const nb::sequence& mins, const nb::sequence& maxs, const nb::sequence& null_counts,
                          const nb::sequence& value_counts, const nb::sequence& nan_counts, const nb::sequence& definition,
                          const nb::sequence& repetition, int64_t truncate, int64_t longest);
nb::tuple check_chunks(const In<int64_t>& stack, const In<int64_t>& types, const In<uint8_t>& repeated,
                       const In<int64_t>& num_rows, const In<int64_t>& file_sizes);
nb::tuple number_bounds(const nb::list& buffers, const In<int64_t>& of, int shift, const In<int64_t>& stack, bool modern,
                        bool old, size_t width, int kind);
nb::tuple chunk_counts(const In<int64_t>& stack, bool has_nan);
nb::object xxh64_fixed(const RawIn& values, int64_t width_);
nb::object xxh64_binary(const Offsets& offsets, const RawIn& data);
void sbbf_insert(const RawOut& bitset, const In<uint64_t>& hashes);
nb::object sbbf_check(const RawIn& bitset, const In<uint64_t>& hashes);
nb::tuple probe_filters(const nb::list& paths, const In<int64_t>& statuses, const In<int64_t>& files,
                        const In<int64_t>& offsets, const In<int64_t>& lengths, const In<uint64_t>& hashes, int64_t most);
nb::tuple probe_open_filters(int fd, int64_t file_size, const RawIn& tail, const In<int64_t>& offsets,
                             const In<int64_t>& lengths, const In<uint64_t>& hashes, int64_t most);
nb::object compare_binary(const Offsets& offsets, const RawIn& data, const RawIn& literal);
nb::object compare_binary_decimal(const Offsets& offsets, const RawIn& data, const RawIn& literal);
nb::object compare_flba(const RawIn& data, int64_t width_, bool signed_be, const RawIn& literal);

}  // namespace pyparq
