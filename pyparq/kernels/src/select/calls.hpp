// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "select/match.hpp"

namespace pyparq {

nb::tuple tally_codes(const In<int32_t>& codes, const In<int64_t>& edges, int64_t num_entries,
                      const Array<int32_t, false, true>& weights);
size_t mask_count(const In<uint64_t>& words);
nb::object mask_ranks(const In<uint64_t>& words, const In<int64_t>& places);
size_t mask_runs(const In<uint64_t>& words);
nb::object mask_to_ranges(const In<uint64_t>& words, int64_t num_rows, int64_t join_);
nb::object mask_from_ranges(const In<int64_t>& starts, const In<int64_t>& ends, int64_t num_rows);
nb::object mask_rows(const In<uint64_t>& words);
nb::object mask_head(const In<uint64_t>& words, int64_t count);
nb::object mask_within(const In<uint64_t>& words, int64_t num_rows, const In<int64_t>& starts,
                       const In<int64_t>& ends);
nb::object mask_spread(const In<uint64_t>& words, const In<int64_t>& starts, const In<int64_t>& ends,
                       int64_t num_rows);
nb::object mask_of_bits(const RawIn& bitmap, int64_t offset, int64_t length);
void keep_fixed(const In<uint64_t>& words, const RawIn& values, int64_t width_, const RawOut& out);
nb::object keep_bits(const In<uint64_t>& words, const RawIn& bitmap, int64_t offset, int64_t length);
int64_t kept_bytes(const In<uint64_t>& words, const Offsets& offsets);
void keep_binary(const In<uint64_t>& words, const Offsets& offsets, const RawIn& data, const OffsetsOut& out_offsets,
                 const RawOut& out_data);
nb::object mask_entries(const In<uint64_t>& words, int64_t num_rows, const In<uint8_t>& rep_levels);
nb::object mask_slots(const In<uint64_t>& words, const In<uint8_t>& def_levels, int64_t level);
nb::object match_numbers(const AnyArray<false>& values, const std::string& name, const RawIn& literal,
                         const Within& within);
nb::object match_limbs(const RawIn& data, int64_t width_, const std::string& name, const RawIn& literal,
                       const Within& within);
nb::object match_binary(const Offsets& offsets, const RawIn& data, const std::string& name, const RawIn& literal,
                        const Within& within);
nb::object match_boxes(const Offsets& offsets, const RawIn& data, const In<double>& box, bool round, bool wanted,
                       const Within& within);
nb::object match_fixed(const RawIn& data, int64_t width_, const std::string& name, const RawIn& literal,
                       const Within& within);
nb::object match_codes(const AnyArray<false>& codes, const In<uint64_t>& table, int64_t entries_,
                       const Within& within);
nb::object compare_texts(const Offsets& offsets, const RawIn& data, const Array<int64_t, false, true>& codes,
                         const Offsets& other_offsets, const RawIn& other_data,
                         const Array<int64_t, false, true>& other_codes);
nb::object count_characters(const Offsets& offsets, const RawIn& data);
nb::object change_case(const Offsets& offsets, const RawIn& data, bool upper);
nb::object compare_computed(const nb::list& steps, const std::string& name, int64_t count_, const Within& within);
nb::object part_of_dates(const In<int64_t>& ticks, int64_t per_day, const std::string& name);

}  // namespace pyparq
