// Dates, datetimes, times of day and durations as columns. They are read where Python keeps their parts.
//
// Python's stable interface does not say where that is. So it is looked for once, in objects of known parts. Where it is
// not found, these objects are left to Python.
#include "objects/each_value.hpp"

#include <algorithm>
#include <array>

namespace pyparq {
namespace {

constexpr int64_t kSecond = 1'000'000, kDay = 86'400 * kSecond;  // in microseconds

const uint8_t* bytes_of(PyObject* object) { return reinterpret_cast<const uint8_t*>(object); }

PyObject* pointer_at(const uint8_t* at) {
    PyObject* found = nullptr;
    std::memcpy(static_cast<void*>(&found), at, sizeof(PyObject*));
    return found;
}

// A class of the module `datetime`: where the parts of its objects begin.
struct Parts {
    nb::object type;
    size_t at = 0;  // 0: not known
    size_t zone = 0;

    bool are_of(PyObject* value) const { return at != 0 && reinterpret_cast<PyObject*>(Py_TYPE(value)) == type.ptr(); }
    const uint8_t* of(PyObject* value) const { return bytes_of(value) + at; }
    // A byte before the parts says whether there is a zone.
    bool zoned(PyObject* value) const { return bytes_of(value)[at - 1] != 0; }
    PyObject* zone_of(PyObject* value) const { return pointer_at(bytes_of(value) + zone); }
};

// Where `parts` stand in an object of the full size of its class; 0 where they do not stand in one place.
template <size_t N>
size_t place_of(const nb::object& sample, const std::array<uint8_t, N>& parts) {
    const auto size = nb::cast<size_t>(sample.type().attr("__basicsize__"));
    const uint8_t *const first = bytes_of(sample.ptr()) + sizeof(PyObject), *const last = bytes_of(sample.ptr()) + size;
    const uint8_t* const found = std::search(first, last, parts.begin(), parts.end());
    if (found == last || std::search(found + 1, last, parts.begin(), parts.end()) != last) return 0;
    return static_cast<size_t>(found - bytes_of(sample.ptr()));
}

// Where the pointer to the zone stands, behind the parts.
size_t place_of_zone(const nb::object& sample, size_t parts, const nb::object& zone) {
    const auto size = nb::cast<size_t>(sample.type().attr("__basicsize__"));
    constexpr size_t kStep = sizeof(PyObject*);
    for (size_t at = (parts / kStep + 1) * kStep; at + kStep <= size; at += kStep)
        if (pointer_at(bytes_of(sample.ptr()) + at) == zone.ptr()) return at;
    return 0;
}

struct Times {
    Parts date, datetime, time, delta;
    nb::object utc, offset_name;
};

// A sample with a zone has the full size; one without must have the same parts, and say that it has none.
template <size_t N>
void look_for_zoned(Parts& found, const std::array<uint8_t, N>& parts, const nb::object& zoned, const nb::object& naive, const nb::object& utc) {
    found.type = nb::borrow(zoned.type());
    found.at = place_of(zoned, parts);
    if (found.at == 0) return;
    found.zone = place_of_zone(zoned, found.at, utc);
    const bool same = std::equal(parts.begin(), parts.end(), found.of(naive.ptr()));
    if (found.zone == 0 || !same || found.zoned(naive.ptr()) || !found.zoned(zoned.ptr())) found.at = 0;
}

Times* looked_for() {
    const nb::module_ module = nb::module_::import_("datetime");
    auto* const t = new Times;  // never freed: the interpreter may be gone before static destructors run
    t->utc = module.attr("timezone").attr("utc");
    t->offset_name = nb::str("utcoffset");
    const nb::object date = module.attr("date")(0x1234, 11, 29);
    t->date.type = module.attr("date");
    t->date.at = place_of(date, std::array<uint8_t, 4>{0x12, 0x34, 11, 29});
    const auto datetime = module.attr("datetime");
    constexpr int kMicros = 0x0a1b2c;
    look_for_zoned(t->datetime, std::array<uint8_t, 10>{0x12, 0x34, 11, 29, 13, 47, 58, 0x0a, 0x1b, 0x2c},
                   datetime(0x1234, 11, 29, 13, 47, 58, kMicros, t->utc), datetime(0x1234, 11, 29, 13, 47, 58, kMicros), t->utc);
    const auto time = module.attr("time");
    look_for_zoned(t->time, std::array<uint8_t, 6>{13, 47, 58, 0x0a, 0x1b, 0x2c}, time(13, 47, 58, kMicros, t->utc),
                   time(13, 47, 58, kMicros), t->utc);
    std::array<uint8_t, 12> delta{};
    store(delta.data(), int32_t{-123456}), store(delta.data() + 4, int32_t{78901}), store(delta.data() + 8, int32_t{234567});
    t->delta.type = module.attr("timedelta");
    t->delta.at = place_of(t->delta.type(-123456, 78901, 234567), delta);
    return t;
}

const Times& times() {
    static const Times* found = nullptr;  // set without a lock: the import may let other threads run
    if (found == nullptr) found = looked_for();
    return *found;
}

// Days from 1970-01-01 on, of a date in the Gregorian calendar as Python has it for all years.
int32_t days(const uint8_t* parts) {
    const int32_t month = parts[2], day = parts[3];
    const int32_t year = parts[0] * 256 + parts[1] - static_cast<int32_t>(month <= 2);  // that begins in March
    const int32_t century = year / 100;
    const int32_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return 365 * year + year / 4 - century + century / 4 + of_year - 719'468;
}

int64_t of_day(const uint8_t* parts) {
    const int64_t micros = parts[3] << 16 | parts[4] << 8 | parts[5];
    return ((int64_t{parts[0]} * 60 + parts[1]) * 60 + parts[2]) * kSecond + micros;
}

struct Delta {
    int64_t days, rest;
};

Delta delta_of(const Parts& parts, PyObject* value) {
    const uint8_t* const at = parts.of(value);
    return {load<int32_t>(at), load<int32_t>(at + 4) * kSecond + load<int32_t>(at + 8)};
}

template <class T, class F>
nb::object column(const char* format, const nb::list& values, size_t size, const Parts& parts, F&& value_of) {
    ValidBits valid(size);
    Fresh<T> found(size);
    const bool all = each_value(values, size, valid, [&](size_t k, PyObject* value) {
        return parts.are_of(value) && value_of(value, found.data[k]);
    });
    if (!all) return nb::none();
    for (size_t k = 0; valid.nulls != 0 && k < size; ++k)
        if (!valid.has(k)) found.data[k] = 0;
    return made_column(format, size, valid, nb::make_tuple(found.object));
}

// How far local time is ahead of UTC. The last zone's is kept where it is the same at all times.
class Offsets {
  public:
    // Nothing where Python has to look: no offset, one that is no timedelta of Python's, or an error.
    std::optional<int64_t> of(PyObject* value, PyObject* zone) {
        if (zone == times().utc.ptr()) return 0;
        if (zone == last_.ptr()) return offset_;
        const nb::object held = nb::borrow(value), held_zone = nb::borrow(zone);  // a zone may run Python's code
        const nb::object offset = nb::steal(PyObject_CallMethodObjArgs(value, times().offset_name.ptr(), nullptr));
        if (!offset.is_valid()) {
            clear_exception();
            return std::nullopt;
        }
        if (!times().delta.are_of(offset.ptr())) return std::nullopt;
        const Delta found = delta_of(times().delta, offset.ptr());
        const int64_t made = found.days * kDay + found.rest;
        if (reinterpret_cast<PyObject*>(Py_TYPE(zone)) == times().utc.type().ptr()) last_ = held_zone, offset_ = made;
        return made;
    }

  private:
    nb::object last_;
    int64_t offset_ = 0;
};

nb::object datetimes(const nb::list& values, size_t size, PyObject* first) {
    const Parts& parts = times().datetime;
    const bool zoned = parts.zoned(first);
    static const uint8_t kFirst[] = {0, 1, 1, 1}, kEnd[] = {0x27, 0x10, 1, 1};  // years 1 and 10000
    const int64_t least = days(kFirst) * kDay, end = days(kEnd) * kDay;
    Offsets offsets;
    return column<int64_t>(zoned ? "tsu:UTC" : "tsu:", values, size, parts, [&](PyObject* value, int64_t& found) {
        if (parts.zoned(value) != zoned) return false;
        const uint8_t* const at = parts.of(value);
        int64_t local = days(at) * kDay + of_day(at + 4);
        if (zoned) {
            const auto offset = offsets.of(value, parts.zone_of(value));
            if (!offset) return false;
            local -= *offset;
        }
        found = local;
        return local >= least && local < end;
    });
}

}  // namespace

std::optional<nb::object> column_of_times(const nb::list& values, size_t size, PyObject* first) {
    const Times& t = times();
    if (t.datetime.are_of(first)) return t.delta.at == 0 ? nb::none() : datetimes(values, size, first);
    if (t.date.are_of(first))
        return column<int32_t>("tdD", values, size, t.date, [&](PyObject* value, int32_t& found) {
            found = days(t.date.of(value));
            return true;
        });
    if (t.time.are_of(first))
        return column<int64_t>("ttu", values, size, t.time, [&](PyObject* value, int64_t& found) {
            found = of_day(t.time.of(value));
            return !t.time.zoned(value);
        });
    if (t.delta.are_of(first))
        return column<int64_t>("tDu", values, size, t.delta, [&](PyObject* value, int64_t& found) {
            constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / kDay - 1;
            const Delta delta = delta_of(t.delta, value);
            if (delta.days > kMost || delta.days < -kMost) return false;
            found = delta.days * kDay + delta.rest;
            return true;
        });
    return std::nullopt;
}

}  // namespace pyparq
