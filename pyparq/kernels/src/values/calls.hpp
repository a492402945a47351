// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

namespace pyparq {

size_t plain_binary_decode(const RawIn& data, int64_t count, const OffsetsOut& out_offsets, const RawOut& out_data,
                           int64_t base);
nb::object plain_binary_encode(const Offsets& offsets, const RawIn& data);
nb::object narrow_offsets(const In<int64_t>& offsets);
int64_t gather_binary_offsets(const Offsets& dict_offsets, const In<int32_t>& indices, const OffsetsOut& out_offsets,
                              int64_t base);
size_t gather_binary_bytes(const Offsets& dict_offsets, const RawIn& dict_data, const In<int32_t>& indices,
                           const RawOut& out_data);
nb::object take_binary(const Offsets& offsets, const RawIn& data, const In<int64_t>& rows);
nb::object distinct_binary(const Offsets& offsets, const RawIn& data);
nb::object distinct_numbers(const AnyArray<false>& values);
nb::list divide_fixed(const RawIn& values, int64_t width_, const In<int32_t>& groups, const In<int64_t>& counts);
nb::list divide_binary(const Offsets& offsets, const RawIn& data, const In<int32_t>& groups, const In<int64_t>& counts);
nb::object compact_binary(const Offsets& offsets, const RawIn& data, const Valid& valid);
int64_t utf8_validate(const Offsets& offsets, const RawIn& data);
void alp_decode_page(const RawIn& data, int64_t width, int64_t count, const RawOut& out);
nb::object alp_encode_page(const RawIn& values, int64_t width);
void byte_stream_split_decode(const RawIn& data, int64_t width_, const RawOut& out);
nb::object byte_stream_split_encode(const RawIn& values, int64_t width_);
size_t delta_decode_i32(const RawIn& data, const Out<int32_t>& out, int64_t count);
size_t delta_decode_i64(const RawIn& data, const Out<int64_t>& out, int64_t count);
nb::object delta_encode_i32(const In<int32_t>& values);
nb::object delta_encode_i64(const In<int64_t>& values);
size_t delta_length_decode(const RawIn& data, int64_t count_, const OffsetsOut& out_offsets, const RawOut& out_data,
                           int64_t base);
nb::object delta_length_encode(const Offsets& offsets, const RawIn& data);
nb::object delta_byte_array_decode(const RawIn& data, int64_t count_, int64_t max_bytes);
nb::object delta_byte_array_encode(const Offsets& offsets, const RawIn& data);
void draw_seed();  // of the hash tables
nb::object dict_encode_fixed(const RawIn& values, int64_t width_, int64_t max_entries);
nb::object dict_encode_binary(const Offsets& offsets, const RawIn& data, int64_t max_bytes);
size_t count_distinct_u64(const In<uint64_t>& hashes);
double estimate_distinct_u64(const In<uint64_t>& hashes);
void gather_fixed(const RawIn& dict, int64_t width_, const In<int32_t>& indices, const RawOut& out);
nb::object compact_fixed(const RawIn& values, int64_t width_, const Valid& valid);
// In place of the definition level of a slot that has a value further down.
constexpr uint8_t kLiveSlot = 255;
nb::object list_slots(const Valid& def_levels, const Valid& rep_levels, int64_t entries, int64_t slots_, int64_t rep,
                      int64_t item, int64_t item_rep, int64_t item_def, int64_t def_level);
nb::object slot_validity(const Valid& def_levels, const Valid& rep_levels, int64_t entries, int64_t slots_,
                         int64_t rep, int64_t item, int64_t def_level);
bool levels_agree(const Valid& def_a, const Valid& rep_a, int64_t entries_a, const Valid& def_b, const Valid& rep_b,
                  int64_t entries_b, int64_t rep_, int64_t def_level_);
nb::object expand_lists(int64_t slots_, const Valid& reps, const Valid& defs, const In<int64_t>& starts,
                        const In<int64_t>& lengths, int64_t num_items, int64_t item_rep, int64_t empty_def);
nb::object settle_slots(int64_t slots_, const Valid& defs, const Valid& present, int64_t absent_, int64_t there_);
nb::tuple number_texts(const AnyArray<false>& values);
size_t rle_decode_u8(const RawIn& data, int64_t bit_width, int64_t count, const Out<uint8_t>& out,
                     int64_t max_value);
size_t rle_decode_i32(const RawIn& data, int64_t bit_width, int64_t count, const Out<int32_t>& out,
                      int64_t limit);
size_t bit_packed_decode_u8(const RawIn& data, int64_t bit_width, int64_t count, const Out<uint8_t>& out);
nb::object rle_encode_u8(const In<uint8_t>& values, int64_t bit_width);
nb::object rle_encode_i32(const In<int32_t>& values, int64_t bit_width);

}  // namespace pyparq
