// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

namespace pyparq {

nb::tuple index_footer_py(const RawIn& data);
int check_page_locations(const In<int64_t>& pages, int64_t num_rows, int64_t start, int64_t end);
nb::tuple split_struct_py(const RawIn& data, int64_t offset);
nb::tuple split_list_py(const RawIn& data, int64_t offset);
nb::bytes moved_offset_index_py(const RawIn& data, const nb::callable& moved);

}  // namespace pyparq
