// What Python calls in this folder. bindings.cpp gives it names, types and docstrings.
#pragma once
#include "arrow/export.hpp"
#include "arrow/import.hpp"

namespace pyparq {

// Once, while the module is made.
void begin_export();
void begin_streams();

nb::object arrow_array(const nb::object& array);
nb::object arrow_arrays(const ArrowField& field, const nb::object& arrays);
nb::object arrow_schema_field(const RawIn& data, int64_t offset, int64_t index);
nb::object arrow_stream(nb::object producer);
nb::object lay_out_views(const RawIn& views, const Valid& valid, const nb::list& given);
nb::object string_views(const Offsets& offsets, const RawIn& data, const Valid& validity, int64_t first_bit,
                        int64_t most, const RawOut& out);

}  // namespace pyparq
