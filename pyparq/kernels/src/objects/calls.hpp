// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "base/common.hpp"

namespace pyparq {

nb::object column_of_objects(const nb::list& values, int64_t precision, int64_t scale);
nb::object first_other(const nb::list& values, const nb::object& type);
nb::object split_dicts(const nb::list& rows);
nb::tuple gather_rows(const nb::object& source, const nb::list& rows, int64_t size, int64_t most_rows, int64_t most_bytes,
                      const nb::tuple& plain);
nb::object join_lists(const nb::list& values);

nb::list objects_of_numbers(const AnyArray<false>& values, bool flags, const Valid& valid);
nb::object objects_of_bytes(const Offsets& offsets, const RawIn& data, const Valid& valid, bool text);
nb::list objects_at(const nb::list& entries, const In<int64_t>& places, const Valid& valid);
nb::list cut_list(const nb::list& items, const Offsets& offsets, const Valid& valid);
nb::list dicts_of_lists(const nb::list& names, const nb::list& lists, size_t count, const Valid& valid);

}  // namespace pyparq
