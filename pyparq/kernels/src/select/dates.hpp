// Parts of points in time, in UTC.
#pragma once
#include "base/common.hpp"

namespace pyparq {

enum class DatePart : uint8_t { Year,
                                Quarter,
                                Month,
                                Day,
                                Hour,
                                Minute,
                                Second };

DatePart date_part_named(const std::string& name);
// Fails where a day of so many ticks has no such parts.
void check_date_part(int64_t per_day, DatePart part);
// Of ticks since 1970, of which a day has `per_day`.
void fill_date_parts(const int64_t* ticks, size_t n, int64_t per_day, DatePart part, int64_t* out);

}  // namespace pyparq
