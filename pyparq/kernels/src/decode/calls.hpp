// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "decode/page.hpp"

namespace pyparq {

void set_libraries(nb::object crc_function, nb::object decoders);
nb::tuple decode_columns(const nb::list& given, const PageLimits& limits, size_t threads, int64_t room);
nb::tuple decode_chunks(const nb::list& leaves, const In<int64_t>& runs, const In<int64_t>& num_rows,
                        const In<int64_t>& codec, const In<int64_t>& num_values, const In<int64_t>& has_dictionary,
                        const In<int64_t>& start, const In<int64_t>& size, const nb::list& read, const PageLimits& limits,
                        size_t threads, int64_t room, const nb::list& wanted);

}  // namespace pyparq
