// Parts of points in time, in UTC.
#include "select/calls.hpp"

namespace pyparq {
namespace {

int64_t floored(int64_t a, int64_t b) {
    const int64_t q = a / b;
    return q - static_cast<int64_t>(a % b < 0);
}

struct Date {
    int64_t year;
    uint32_t month, day;
};

// In the proleptic Gregorian calendar. Years begin in March here, so that the leap day is their last, and 400 of them, an
// era, have 146,097 days.
Date date_of(int64_t days) {
    int64_t era = floored(days, 146'097);
    auto day = static_cast<uint32_t>(days - era * 146'097 + 719'468 % 146'097);  // 719,468 days before 1970 an era began
    era += 719'468 / 146'097 + (day >= 146'097);
    day -= day >= 146'097 ? 146'097 : 0;
    const uint32_t year = (day - day / 1460 + day / 36'524 - day / 146'096) / 365;
    const uint32_t in_year = day - (365 * year + year / 4 - year / 100);
    const uint32_t month = (5 * in_year + 2) / 153;  // from March on
    return {era * 400 + year + (month >= 10), month < 10 ? month + 3 : month - 9, in_year - (153 * month + 2) / 5 + 1};
}

template <class F>
void fill_dates(const In<int64_t>& ticks, int64_t per_day, int64_t* out, const F& part) {
    for (size_t i = 0; i < ticks.size; ++i) out[i] = part(date_of(floored(ticks.data[i], per_day)));
}

}  // namespace

nb::object part_of_dates(const In<int64_t>& ticks, int64_t per_day, const std::string& name) {
    if (per_day < 1) fail("a day of " + str(per_day) + " ticks");
    Fresh<int64_t> out(ticks.size);
    const NoGil nogil(ticks.size * 8);
    const int64_t in_day = name == "hour" ? 24 : name == "minute" ? 24 * 60
                                             : name == "second"   ? 24 * 3600
                                                                  : 0;
    if (in_day != 0) {
        const bool whole = per_day % in_day == 0;
        if (!whole && per_day > int64_t{1} << 46) fail("a day of " + str(per_day) + " ticks has no whole ones in a " + name);
        const int64_t each = per_day / in_day, around = name == "hour" ? 24 : 60;
        for (size_t i = 0; i < ticks.size; ++i) {
            const int64_t t = ticks.data[i];
            const int64_t within = t - floored(t, per_day) * per_day;
            out.data[i] = (whole ? within / each : within * in_day / per_day) % around;
        }
    } else if (name == "year") {
        fill_dates(ticks, per_day, out.data, [](const Date& d) { return d.year; });
    } else if (name == "quarter") {
        fill_dates(ticks, per_day, out.data, [](const Date& d) { return int64_t{(d.month - 1) / 3 + 1}; });
    } else if (name == "month") {
        fill_dates(ticks, per_day, out.data, [](const Date& d) { return int64_t{d.month}; });
    } else if (name == "day") {
        fill_dates(ticks, per_day, out.data, [](const Date& d) { return int64_t{d.day}; });
    } else {
        fail("points in time have no " + name);
    }
    return std::move(out.object);
}

}  // namespace pyparq
