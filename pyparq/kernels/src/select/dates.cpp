// See dates.hpp.
#include "select/dates.hpp"

#include "select/calls.hpp"

namespace pyparq {
namespace {

constexpr size_t kDatesAtOnce = 512;
constexpr int64_t kSecondsOfDay = 86'400;
constexpr uint32_t kNearEras = 82, kNearDays = 719'468 + 146'097 * kNearEras;  // days before 1970 where the near ones begin
constexpr int kNearBits = 30;

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

// The same for days from the first near one on, in 32 bits and without branches, so that eight are computed at once: Neri and
// Schneider, "Euclidean affine functions and their application to calendar algorithms".
[[gnu::always_inline]] inline Date near_date_of(uint32_t days) {
    const uint32_t n = 4 * days + 3;
    const uint32_t century = n / 146'097, of_century = 4 * (n % 146'097 / 4) + 3;
    const uint64_t product = uint64_t{2'939'745} * of_century;
    const uint32_t in_year = static_cast<uint32_t>(product) / 2'939'745 / 4;
    const uint32_t at = 2'141 * in_year + 197'913, month = at / 65'536;
    const bool next = in_year >= 306;
    const auto year = static_cast<int32_t>(100 * century + static_cast<uint32_t>(product >> 32)) - static_cast<int32_t>(400 * kNearEras);
    return {int64_t{year} + next, next ? month - 12 : month, at % 65'536 / 2'141 + 1};
}

[[gnu::always_inline]] inline int64_t part_of_date(const Date& date, DatePart part) {
    switch (part) {
        case DatePart::Year: return date.year;
        case DatePart::Quarter: return int64_t{(date.month - 1) / 3 + 1};
        case DatePart::Month: return int64_t{date.month};
        default: return int64_t{date.day};
    }
}

template <DatePart kPart>
void fill_parts_of(const int64_t* days, size_t n, int64_t* out) {
    uint32_t near[kDatesAtOnce];
    const uint64_t all = any_bits(n, [days, near = near](size_t i) {
        const uint64_t from_first = static_cast<uint64_t>(days[i]) + kNearDays;
        near[i] = static_cast<uint32_t>(from_first);
        return from_first;
    });
    if (all >> kNearBits == 0) each_row(n, [near = near, out](size_t i) { out[i] = part_of_date(near_date_of(near[i]), kPart); });
    else each_row(n, [=](size_t i) { out[i] = part_of_date(date_of(days[i]), kPart); });
}

// Calls f with the ticks of a day: as a constant where they are usual ones, by which a processor divides sooner.
template <class F>
void with_ticks_of_day(int64_t per_day, const F& f) {
    switch (per_day) {
        case 1: return f(std::integral_constant<int64_t, 1>{});
        case kSecondsOfDay: return f(std::integral_constant<int64_t, kSecondsOfDay>{});
        case kSecondsOfDay * 1'000: return f(std::integral_constant<int64_t, kSecondsOfDay * 1'000>{});
        case kSecondsOfDay * 1'000'000: return f(std::integral_constant<int64_t, kSecondsOfDay * 1'000'000>{});
        case kSecondsOfDay * 1'000'000'000: return f(std::integral_constant<int64_t, kSecondsOfDay * 1'000'000'000>{});
        default: return f(per_day);
    }
}

int64_t parts_of_day(DatePart part) {
    return part == DatePart::Hour ? 24 : part == DatePart::Minute ? 24 * 60
                                                                  : kSecondsOfDay;
}

template <int64_t kInDay, int64_t kAround>
void fill_clock(const int64_t* ticks, size_t n, int64_t per_day, int64_t* out) {
    with_ticks_of_day(per_day, [&](auto day) {
        const auto within = [&](size_t i) { return ticks[i] - floored(ticks[i], day) * day; };
        if (day % kInDay == 0) {
            for (size_t i = 0; i < n; ++i) out[i] = within(i) / (day / kInDay) % kAround;
        } else {
            for (size_t i = 0; i < n; ++i) out[i] = within(i) * kInDay / day % kAround;
        }
    });
}

void fill_calendar(const int64_t* ticks, size_t n, int64_t per_day, DatePart part, int64_t* out) {
    int64_t days[kDatesAtOnce];
    with_ticks_of_day(per_day, [&](auto day) {
        for (size_t i = 0; i < n; ++i) days[i] = floored(ticks[i], day);
    });
    switch (part) {
        case DatePart::Year: return fill_parts_of<DatePart::Year>(days, n, out);
        case DatePart::Quarter: return fill_parts_of<DatePart::Quarter>(days, n, out);
        case DatePart::Month: return fill_parts_of<DatePart::Month>(days, n, out);
        default: return fill_parts_of<DatePart::Day>(days, n, out);
    }
}

}  // namespace

DatePart date_part_named(const std::string& name) {
    constexpr std::pair<const char*, DatePart> kParts[] = {
        {"year", DatePart::Year}, {"quarter", DatePart::Quarter}, {"month", DatePart::Month}, {"day", DatePart::Day}, {"hour", DatePart::Hour}, {"minute", DatePart::Minute}, {"second", DatePart::Second}};
    for (const auto& [known, part] : kParts)
        if (name == known) return part;
    fail("points in time have no " + name);
}

void check_date_part(int64_t per_day, DatePart part) {
    if (per_day < 1) fail("a day of " + str(per_day) + " ticks");
    if (part >= DatePart::Hour && per_day % parts_of_day(part) != 0 && per_day > int64_t{1} << 46)
        fail("a day of " + str(per_day) + " ticks has no whole hours, minutes or seconds");
}

void fill_date_parts(const int64_t* ticks, size_t n, int64_t per_day, DatePart part, int64_t* out) {
    for (size_t from = 0; from < n; from += kDatesAtOnce) {
        const size_t count = std::min(kDatesAtOnce, n - from);
        switch (part) {
            case DatePart::Hour: fill_clock<24, 24>(ticks + from, count, per_day, out + from); break;
            case DatePart::Minute: fill_clock<24 * 60, 60>(ticks + from, count, per_day, out + from); break;
            case DatePart::Second: fill_clock<kSecondsOfDay, 60>(ticks + from, count, per_day, out + from); break;
            default: fill_calendar(ticks + from, count, per_day, part, out + from);
        }
    }
}

nb::object part_of_dates(const In<int64_t>& ticks, int64_t per_day, const std::string& name) {
    const DatePart part = date_part_named(name);
    check_date_part(per_day, part);
    Fresh<int64_t> out(ticks.size);
    const NoGil nogil(ticks.size * 8);
    fill_date_parts(ticks.data, ticks.size, per_day, part, out.data);
    return std::move(out.object);
}

}  // namespace pyparq
