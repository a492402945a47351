// Comparisons of numbers that are computed from columns, some hundred rows at a time, so that what lies between the steps
// stays near. Whole numbers never wrap: rows that 64 bits do not hold are computed in 128, and Python does what those do not.
#include "select/calls.hpp"
#include "select/dates.hpp"
#include "select/numbers.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace pyparq {
namespace {

using Wide = __int128;

constexpr size_t kComputedRows = 512, kComputedWords = kComputedRows / 64;
constexpr int64_t kWholeInDoubles = int64_t{1} << 53;  // up to here every integer is a double

struct BeyondKernel {};  // Python computes it

// ---- the steps, as Python makes them

// The numbers of a column, or the entries or codes of one with a dictionary.
struct NumberColumn {
    AnyArray<false> values;
    RawIn validity;
    size_t length, offset, words;  // words of 64 bits for each value: several for wide decimals
    bool has_nulls;

    explicit NumberColumn(const nb::handle& given) {
        const auto parts = nb::cast<nb::tuple>(given);
        if (parts.size() != 4 || !values.load(nb::object(parts[0]).ptr())) fail("a column has values, a length, a validity and an offset");
        length = nb::cast<size_t>(parts[1]);
        const nb::object bits = parts[2];
        has_nulls = !bits.is_none();
        if (has_nulls && !validity.load(bits.ptr())) fail("the validity is no buffer");
        offset = nb::cast<size_t>(parts[3]);
        words = length == 0 ? 1 : values.size / length;
        if (length > std::numeric_limits<int32_t>::max()) fail("a column of " + str(length) + " values is too long");
        if (values.size != checked_mul(length, words) || (words != 1 && values.itemsize != 8) || (length > 0 && words == 0))
            fail(str(values.size) + " numbers in a column of " + str(length));
        if (has_nulls && validity.size < (offset + length + 7) / 8) fail("a validity of " + str(validity.size) + " bytes is too short");
    }
    template <class T>
    bool is_of() const { return words == 1 && values.kind == kind_of<T>() && values.itemsize == sizeof(T); }
    uint64_t valid_bits(size_t row) const { return has_nulls ? load_bits(validity.data, validity.size, offset + row) : ~uint64_t{0}; }
    bool is_valid(size_t row) const { return !has_nulls || (validity.data[(offset + row) / 8] >> (offset + row) % 8 & 1) != 0; }
};

enum class ComputedStep : uint8_t { Column,
                                    Literal,
                                    Add,
                                    Subtract,
                                    Multiply,
                                    Divide,
                                    Modulo,     // with the divisor's sign
                                    Remainder,  // with the dividend's sign
                                    Part };

struct Computation {
    ComputedStep step;
    bool floats = false;  // in doubles
    // Whole numbers of 1 / den. What is divided has a denominator in each row.
    Wide den = 1;
    bool varies = false;
    size_t left = 0, right = 0;              // the computations of its operands
    Wide left_factor = 1, right_factor = 1;  // to a common denominator
    Wide number = 0;                         // of a literal
    double real = 0;
    DatePart part = DatePart::Year;
    std::unique_ptr<NumberColumn> column{}, codes{};
};

Wide checked_product(Wide a, Wide b) {
    Wide product;
    if (__builtin_mul_overflow(a, b, &product)) throw BeyondKernel{};
    return product;
}

Wide greatest_divisor(Wide a, Wide b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
}

Wide whole_number(const nb::handle& given) {
    const nb::object high = nb::steal(PyNumber_Rshift(given.ptr(), nb::int_(64).ptr()));
    if (!high.is_valid()) throw nb::python_error();
    int overflow = 0;
    const long long upper = PyLong_AsLongLongAndOverflow(high.ptr(), &overflow);
    if (overflow != 0) throw BeyondKernel{};
    const unsigned long long lower = PyLong_AsUnsignedLongLongMask(given.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return static_cast<Wide>(upper) * (static_cast<Wide>(1) << 64) + static_cast<Wide>(lower);
}

class ComputedSteps {
  public:
    explicit ComputedSteps(const nb::list& given) {
        std::vector<size_t> open;
        for (const nb::handle each : given) {
            const auto parts = nb::cast<nb::tuple>(each);
            if (parts.empty()) fail("an empty step");
            add(nb::cast<std::string>(parts[0]), parts, open);
            open.push_back(all.size() - 1);
        }
        if (open.size() != 2) fail(str(open.size()) + " values are compared, not two");
        left = open[0], right = open[1];
        align(all[left], all[right], left_factor, right_factor);
        for (const size_t side : open)
            if (all[left].floats != all[right].floats && !all[side].floats && (all[side].varies || all[side].den != 1)) throw BeyondKernel{};
    }
    std::vector<Computation> all;
    size_t left, right;
    Wide left_factor = 1, right_factor = 1;

  private:
    static void check(const nb::tuple& parts, size_t size) {
        if (parts.size() != size) fail("a step of " + str(parts.size()) + " parts");
    }
    static size_t take(std::vector<size_t>& open) {
        if (open.empty()) fail("a step has no value to work on");
        const size_t last = open.back();
        open.pop_back();
        return last;
    }
    static Wide denominator(const nb::handle& given) {
        const Wide den = whole_number(given);
        if (den < 1) fail("a denominator below 1");
        return den;
    }

    void add(const std::string& name, const nb::tuple& parts, std::vector<size_t>& open) {
        Computation made{ComputedStep::Column};
        if (name == "column") {
            check(parts, 5);
            made.den = denominator(parts[1]);
            made.floats = nb::cast<bool>(parts[2]);
            made.column = std::make_unique<NumberColumn>(parts[3]);
            const nb::object codes = parts[4];
            if (!codes.is_none()) made.codes = std::make_unique<NumberColumn>(codes);
            if (made.codes != nullptr && (made.codes->words != 1 || made.codes->values.kind == Kind::Float)) fail("codes are no integers");
            if (made.floats && made.column->words != 1) fail("floats of several words");
            if (!made.floats && made.column->values.kind == Kind::Float) fail("floats are no whole numbers");
        } else if (name == "literal") {
            check(parts, 3);
            made.step = ComputedStep::Literal;
            const nb::object value = parts[1];
            made.floats = PyFloat_Check(value.ptr());
            if (made.floats) made.real = nb::cast<double>(value);
            else made.number = whole_number(value), made.den = denominator(parts[2]);
        } else if (name == "part") {
            check(parts, 2);
            made.step = ComputedStep::Part;
            made.left = take(open);
            made.part = date_part_named(nb::cast<std::string>(parts[1]));
            const Computation& of = all[made.left];
            if (of.floats) fail("points in time are whole numbers");
            if (of.varies || of.den > std::numeric_limits<int64_t>::max()) throw BeyondKernel{};
            check_date_part(static_cast<int64_t>(of.den), made.part);
        } else {
            check(parts, 2);
            made.step = operation_named(name);
            made.floats = nb::cast<bool>(parts[1]);
            made.right = take(open);
            made.left = take(open);
            join(made, all[made.left], all[made.right]);
        }
        all.push_back(std::move(made));
    }
    static ComputedStep operation_named(const std::string& name) {
        constexpr std::pair<const char*, ComputedStep> kOperations[] = {
            {"+", ComputedStep::Add}, {"-", ComputedStep::Subtract}, {"*", ComputedStep::Multiply}, {"/", ComputedStep::Divide}, {"%", ComputedStep::Modulo}, {"rem", ComputedStep::Remainder}};
        for (const auto& [known, step] : kOperations)
            if (name == known) return step;
        fail("there is no operation " + name);
    }
    static void align(const Computation& a, const Computation& b, Wide& of_a, Wide& of_b) {
        if (a.floats || b.floats || a.varies || b.varies || a.den == b.den) return;
        const Wide divisor = greatest_divisor(a.den, b.den);
        of_a = b.den / divisor, of_b = a.den / divisor;
    }
    static void join(Computation& made, const Computation& a, const Computation& b) {
        if (!made.floats && (a.floats || b.floats)) fail("floats are joined in doubles");
        if (made.floats) return;
        made.varies = a.varies || b.varies || made.step == ComputedStep::Divide;
        if (made.varies) return;
        if (made.step == ComputedStep::Multiply) {
            made.den = checked_product(a.den, b.den);
        } else {
            align(a, b, made.left_factor, made.right_factor);
            made.den = checked_product(a.den, made.left_factor);
        }
    }
};

// ---- rows

// Sums, differences and products of whole numbers. False where one does not fit.
template <class I>
bool add_rows(const I* a, const I* b, size_t n, I* out) {
    if constexpr (sizeof(I) == 8) {
        const uint64_t wraps = any_bits(n, [=](size_t i) {
            const uint64_t x = static_cast<uint64_t>(a[i]), y = static_cast<uint64_t>(b[i]), sum = x + y;
            out[i] = static_cast<I>(sum);
            return (x ^ sum) & (y ^ sum);
        });
        return wraps >> 63 == 0;
    }
    bool wraps = false;
    for (size_t i = 0; i < n; ++i) wraps |= __builtin_add_overflow(a[i], b[i], &out[i]);
    return !wraps;
}

template <class I>
bool subtract_rows(const I* a, const I* b, size_t n, I* out) {
    if constexpr (sizeof(I) == 8) {
        const uint64_t wraps = any_bits(n, [=](size_t i) {
            const uint64_t x = static_cast<uint64_t>(a[i]), y = static_cast<uint64_t>(b[i]), rest = x - y;
            out[i] = static_cast<I>(rest);
            return (x ^ y) & (x ^ rest);
        });
        return wraps >> 63 == 0;
    }
    bool wraps = false;
    for (size_t i = 0; i < n; ++i) wraps |= __builtin_sub_overflow(a[i], b[i], &out[i]);
    return !wraps;
}

// Bits of the largest number, without its sign.
inline int magnitude_bits(const int64_t* a, size_t n) {
    const uint64_t all = any_bits(n, [=](size_t i) { return static_cast<uint64_t>(a[i] ^ a[i] >> 63); });
    return static_cast<int>(std::bit_width(all));
}

template <class I>
bool multiply_rows(const I* a, const I* b, size_t n, I* out) {
    if constexpr (sizeof(I) == 8) {
        if (magnitude_bits(a, n) + magnitude_bits(b, n) <= 62) {
            each_row(n, [=](size_t i) { out[i] = a[i] * b[i]; });
            return true;
        }
    }
    bool wraps = false;
    for (size_t i = 0; i < n; ++i) wraps |= __builtin_mul_overflow(a[i], b[i], &out[i]);
    return !wraps;
}

inline double modulo(double a, double b) {
    const double rest = std::fmod(a, b);
    if (b == 0) return rest;
    if (rest == 0) return std::copysign(0.0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}

// -1, 0 or 1: a whole number beside a double, neither of which is rounded. NaN is above every number.
template <class I>
int order_beside(I a, double b) {
    constexpr int kBits = 8 * sizeof(I) - 1;
    const double limit = std::ldexp(1.0, kBits);
    if (!(b < limit)) return -1;
    if (b < -limit) return 1;
    const I whole = static_cast<I>(b);
    if (a != whole) return a < whole ? -1 : 1;
    const double rest = b - static_cast<double>(whole);
    return rest > 0 ? -1 : rest < 0;
}

inline double double_of_half(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 0x1f) return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

// ---- some rows of a comparison, in whole numbers of type I

template <class I>
class ComputedRows {
  public:
    explicit ComputedRows(const ComputedSteps& steps) : steps_(steps), lanes_(steps.all.size()) {
        for (size_t k = 0; k < lanes_.size(); ++k) {
            const Computation& c = steps.all[k];
            Lane& lane = lanes_[k];
            if (c.floats) lane.reals.assign(kComputedRows, c.real);
            else lane.numbers.assign(kComputedRows, narrowed(c.number));
            if (!c.floats && !c.varies) lane.dens.assign(kComputedRows, narrowed(c.den));
            else if (c.varies) lane.dens.resize(kComputedRows);
            lane.at = lane.numbers.data(), lane.reals_at = lane.reals.data();
        }
    }
    // The answers to `op` for `count` rows from `first` on. False where a number does not fit.
    bool compare(size_t first, size_t count, Op op, uint64_t* out) {
        first_ = first, count_ = count;
        std::fill_n(valid_, kComputedWords, ~uint64_t{0});
        if (!fits_) return false;
        for (size_t k = 0; k < lanes_.size(); ++k)
            if (!compute(steps_.all[k], lanes_[k])) return false;
        if (!answer(op, out)) return false;
        for (size_t w = 0; w < words_for(count); ++w) out[w] &= valid_[w];
        return true;
    }

  private:
    struct Lane {
        std::vector<I> numbers, dens;
        std::vector<double> reals;
        // Where the values of these rows are: there, or in a column.
        const I* at = nullptr;
        const double* reals_at = nullptr;
    };

    I narrowed(Wide number) {
        fits_ &= static_cast<Wide>(static_cast<I>(number)) == number;
        return static_cast<I>(number);
    }
    bool is_valid(size_t i) const { return (valid_[i / 64] >> i % 64 & 1) != 0; }
    void drop(size_t i) { valid_[i / 64] &= ~(uint64_t{1} << i % 64); }

    bool compute(const Computation& c, Lane& lane) {
        switch (c.step) {
            case ComputedStep::Column: return load(c, lane);
            case ComputedStep::Literal: return true;
            case ComputedStep::Part: return take_part(c, lane);
            default: break;
        }
        const Computation &a = steps_.all[c.left], &b = steps_.all[c.right];
        if (c.floats) return join_reals(c.step, reals_of(a, lanes_[c.left], 0), reals_of(b, lanes_[c.right], 1), lane.reals.data());
        return c.varies ? join_fractions(c.step, lanes_[c.left], lanes_[c.right], lane) : join_numbers(c, lane.numbers.data());
    }

    // ---- columns

    bool load(const Computation& c, Lane& lane) {
        const NumberColumn& column = *c.column;
        const NumberColumn& rows = c.codes == nullptr ? column : *c.codes;
        if (rows.length < first_ + count_) fail("a column of " + str(rows.length) + " values is too short");
        for (size_t w = 0; w < words_for(count_); ++w) valid_[w] &= rows.valid_bits(first_ + 64 * w);
        if (c.codes == nullptr) {
            if (column.is_of<double>() && c.floats) lane.reals_at = static_cast<const double*>(column.values.data) + first_;
            else if (column.is_of<I>() && !c.floats) lane.at = static_cast<const I*>(column.values.data) + first_;
            else return load_at(c, lane, rows.has_nulls, [from = first_](size_t i) { return from + i; });
            return true;
        }
        if (column.length == 0) {  // nothing but nulls
            std::fill_n(valid_, kComputedWords, uint64_t{0});
            return true;
        }
        visit_numbers(rows.values, [&](const auto* v) {
            if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*v)>>)
                // What stands for a null may be any number.
                each_row(count_, [places = places_, codes = v + first_, last = static_cast<uint32_t>(column.length - 1)](size_t i) {
                    places[i] = std::min(static_cast<uint32_t>(codes[i]), last);
                });
        });
        for (size_t i = 0; column.has_nulls && i < count_; ++i)
            if (!column.is_valid(places_[i])) drop(i);
        return load_at(c, lane, rows.has_nulls || column.has_nulls, [places = places_](size_t i) { return places[i]; });
    }

    template <class At>
    bool load_at(const Computation& c, Lane& lane, bool has_nulls, const At& at) {
        bool fits = true;
        visit_numbers(c.column->values, [&](const auto* v) {
            using T = std::remove_cvref_t<decltype(*v)>;
            if constexpr (std::is_same_v<T, Half>) {
                for (size_t i = 0; i < count_; ++i) lane.reals[i] = double_of_half(v[at(i)].bits);
            } else if (c.floats) {
                double* const out = lane.reals.data();
                each_row(count_, [=](size_t i) { out[i] = static_cast<double>(v[at(i)]); });
            } else if constexpr (std::is_integral_v<T>) {
                fits = c.column->words == 1 ? load_numbers(v, at, lane.numbers.data()) : load_words(c.column->words, v, at, lane.numbers.data());
            }
        });
        if (sizeof(I) > 8 && has_nulls && !c.floats)  // what stands for a null must not look like a large number
            for (size_t i = 0; i < count_; ++i)
                if (!is_valid(i)) lane.numbers[i] = 0;
        return fits;
    }

    template <class T, class At>
    bool load_numbers(const T* v, const At& at, I* out) const {
        if constexpr (!std::is_same_v<T, uint64_t> || sizeof(I) > 8) {
            // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8 is a number here
            each_row(count_, [=](size_t i) { out[i] = static_cast<I>(v[at(i)]); });
            return true;
        } else {
            const uint64_t all = any_bits(count_, [=](size_t i) { return static_cast<uint64_t>(out[i] = static_cast<I>(v[at(i)])); });
            return all >> 63 == 0;
        }
    }

    // Little-endian numbers of several words.
    template <class T, class At>
    bool load_words(size_t words, const T* v, const At& at, I* out) const {
        bool fits = true;
        for (size_t i = 0; i < count_; ++i) {
            const T* const number = v + at(i) * words;
            out[i] = 0;
            if (!is_valid(i)) continue;
            Wide found = static_cast<int64_t>(number[0]);
            if (sizeof(I) > 8) found = static_cast<Wide>(static_cast<int64_t>(number[1])) * (static_cast<Wide>(1) << 64) + static_cast<uint64_t>(number[0]);
            const int64_t beyond = found < 0 ? -1 : 0;
            for (size_t k = sizeof(I) / 8; k < words; ++k) fits &= static_cast<int64_t>(number[k]) == beyond;
            out[i] = static_cast<I>(found);
        }
        return fits;
    }

    bool take_part(const Computation& c, Lane& lane) {
        const Computation& of = steps_.all[c.left];
        const I* const ticks = lanes_[c.left].at;
        const auto per_day = static_cast<int64_t>(of.den);
        if constexpr (sizeof(I) == 8) {
            fill_date_parts(ticks, count_, per_day, c.part, lane.numbers.data());
        } else {
            int64_t narrow[kComputedRows], parts[kComputedRows];
            for (size_t i = 0; i < count_; ++i) {
                narrow[i] = static_cast<int64_t>(ticks[i]);
                if (narrow[i] != ticks[i]) return false;
            }
            fill_date_parts(narrow, count_, per_day, c.part, parts);
            for (size_t i = 0; i < count_; ++i) lane.numbers[i] = static_cast<I>(parts[i]);
        }
        return true;
    }

    // ---- arithmetic

    // The nearest doubles.
    const double* reals_of(const Computation& c, const Lane& lane, size_t spare) {
        if (c.floats) return lane.reals_at;
        double* const out = spare_reals_[spare];
        const I* const numbers = lane.at;
        const bool whole = !c.varies && c.den == 1;
        each_row(count_, [=](size_t i) { out[i] = static_cast<double>(numbers[i]); });
        for (size_t i = 0; !whole && i < count_; ++i) {
            const I den = lane.dens[i];
            if (!is_whole_in_doubles(numbers[i]) || !is_whole_in_doubles(den)) throw BeyondKernel{};
            out[i] /= static_cast<double>(den);
        }
        return out;
    }
    static bool is_whole_in_doubles(I number) { return number <= kWholeInDoubles && number >= -kWholeInDoubles; }

    bool join_reals(ComputedStep step, const double* a, const double* b, double* out) {
        switch (step) {
            case ComputedStep::Add: each_row(count_, [=](size_t i) { out[i] = a[i] + b[i]; }); return true;
            case ComputedStep::Subtract: each_row(count_, [=](size_t i) { out[i] = a[i] - b[i]; }); return true;
            case ComputedStep::Multiply: each_row(count_, [=](size_t i) { out[i] = a[i] * b[i]; }); return true;
            case ComputedStep::Divide: each_row(count_, [=](size_t i) { out[i] = a[i] / b[i]; }); break;
            case ComputedStep::Modulo:
                for (size_t i = 0; i < count_; ++i) out[i] = modulo(a[i], b[i]);
                break;
            default:
                for (size_t i = 0; i < count_; ++i) out[i] = std::fmod(a[i], b[i]);
        }
        for (size_t i = 0; i < count_; ++i)
            if (b[i] == 0) drop(i);
        return true;
    }

    // The numbers times a factor. nullptr where one does not fit.
    const I* scaled(const I* numbers, Wide factor, size_t spare) {
        if (factor == 1) return numbers;
        if (static_cast<Wide>(static_cast<I>(factor)) != factor) return nullptr;
        std::fill_n(spare_[spare], count_, static_cast<I>(factor));
        return multiply_rows(numbers, spare_[spare], count_, spare_[spare]) ? spare_[spare] : nullptr;
    }

    bool join_numbers(const Computation& c, I* out) {
        const I* const a = scaled(lanes_[c.left].at, c.left_factor, 0);
        const I* const b = scaled(lanes_[c.right].at, c.right_factor, 1);
        if (a == nullptr || b == nullptr) return false;
        switch (c.step) {
            case ComputedStep::Add: return add_rows(a, b, count_, out);
            case ComputedStep::Subtract: return subtract_rows(a, b, count_, out);
            case ComputedStep::Multiply: return multiply_rows(a, b, count_, out);
            default: break;
        }
        for (size_t i = 0; i < count_; ++i) out[i] = remainder(i, a[i], b[i], c.step == ComputedStep::Modulo);
        return true;
    }
    // None for a divisor of zero.
    I remainder(size_t i, I a, I b, bool floors) {
        if (b == 0) drop(i);
        if (b == 0 || b == -1) return 0;
        const I rest = a % b;
        return floors && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }

    bool join_fractions(ComputedStep step, const Lane& a, const Lane& b, Lane& out) {
        bool wraps = false;
        const auto product = [&](I x, I y) {
            I found;
            wraps |= __builtin_mul_overflow(x, y, &found);
            return found;
        };
        for (size_t i = 0; i < count_; ++i) {
            const I num_a = a.at[i], den_a = a.dens[i], num_b = b.at[i], den_b = b.dens[i];
            I& number = out.numbers[i];
            out.dens[i] = product(den_a, step == ComputedStep::Divide ? 1 : den_b);
            if (step == ComputedStep::Multiply) {
                number = product(num_a, num_b);
            } else if (step == ComputedStep::Divide) {
                if (num_b == 0) drop(i);
                const I sign = num_b < 0 ? -1 : 1;
                number = product(product(num_a, den_b), sign);
                out.dens[i] = product(den_a, num_b == 0 ? 1 : product(num_b, sign));
            } else {
                const I x = product(num_a, den_b), y = product(num_b, den_a);
                if (step == ComputedStep::Add) wraps |= __builtin_add_overflow(x, y, &number);
                else if (step == ComputedStep::Subtract) wraps |= __builtin_sub_overflow(x, y, &number);
                else number = remainder(i, x, y, step == ComputedStep::Modulo);
            }
        }
        return !wraps;
    }

    // ---- answers

    bool answer(Op op, uint64_t* out) {
        const Computation &a = steps_.all[steps_.left], &b = steps_.all[steps_.right];
        const Lane &left = lanes_[steps_.left], &right = lanes_[steps_.right];
        if (a.floats || b.floats) {
            const bool near = all_near(a, left) && all_near(b, right);
            if (near) answer_reals(reals_of(a, left, 0), reals_of(b, right, 1), op, out);
            else answer_beside(a.floats ? right : left, a.floats ? left : right, a.floats ? -1 : 1, op, out);
            return true;
        }
        const I *x, *y;
        if (a.varies || b.varies) {
            if (!multiply_rows(left.at, right.dens.data(), count_, spare_[0])) return false;
            if (!multiply_rows(right.at, left.dens.data(), count_, spare_[1])) return false;
            x = spare_[0], y = spare_[1];
        } else {
            x = scaled(left.at, steps_.left_factor, 0), y = scaled(right.at, steps_.right_factor, 1);
        }
        if (x == nullptr || y == nullptr) return false;
        answer_numbers(x, y, op, out);
        return true;
    }
    bool all_near(const Computation& c, const Lane& lane) const {
        if (c.floats) return true;
        const I* const numbers = lane.at;
        return any_bits(count_, [=](size_t i) { return static_cast<uint64_t>(!is_whole_in_doubles(numbers[i])); }) == 0;
    }
    template <class T>
    void answer_numbers(const T* a, const T* b, Op op, uint64_t* out) const {
        const uint64_t* const all = nullptr;
        switch (op) {
            case Op::Equal: return fill(count_, all, out, [=](size_t i) { return a[i] == b[i]; });
            case Op::NotEqual: return fill(count_, all, out, [=](size_t i) { return a[i] != b[i]; });
            case Op::Less: return fill(count_, all, out, [=](size_t i) { return a[i] < b[i]; });
            case Op::LessEqual: return fill(count_, all, out, [=](size_t i) { return a[i] <= b[i]; });
            case Op::Greater: return fill(count_, all, out, [=](size_t i) { return a[i] > b[i]; });
            case Op::GreaterEqual: return fill(count_, all, out, [=](size_t i) { return a[i] >= b[i]; });
            default: fail("this test is not one of two values");
        }
    }
    // NaN equals itself and is above every number.
    void answer_reals(const double* a, const double* b, Op op, uint64_t* out) const {
        const uint64_t* const all = nullptr;
        const auto less = [](double x, double y) { return (x < y) | ((x == x) & (y != y)); };
        const auto same = [](double x, double y) { return (x == y) | ((x != x) & (y != y)); };
        switch (op) {
            case Op::Equal: return fill(count_, all, out, [=](size_t i) { return same(a[i], b[i]); });
            case Op::NotEqual: return fill(count_, all, out, [=](size_t i) { return !same(a[i], b[i]); });
            case Op::Less: return fill(count_, all, out, [=](size_t i) { return less(a[i], b[i]); });
            case Op::LessEqual: return fill(count_, all, out, [=](size_t i) { return !less(b[i], a[i]); });
            case Op::Greater: return fill(count_, all, out, [=](size_t i) { return less(b[i], a[i]); });
            case Op::GreaterEqual: return fill(count_, all, out, [=](size_t i) { return !less(a[i], b[i]); });
            default: fail("this test is not one of two values");
        }
    }
    void answer_beside(const Lane& numbers, const Lane& reals, int sign, Op op, uint64_t* out) const {
        int8_t orders[kComputedRows];
        const int8_t zeros[kComputedRows] = {};
        for (size_t i = 0; i < count_; ++i) orders[i] = static_cast<int8_t>(sign * order_beside(numbers.at[i], reals.reals_at[i]));
        answer_numbers<int8_t>(orders, zeros, op, out);
    }

    const ComputedSteps& steps_;
    std::vector<Lane> lanes_;
    bool fits_ = true;  // the literals and factors
    size_t first_ = 0, count_ = 0;
    uint64_t valid_[kComputedWords];
    uint32_t places_[kComputedRows];
    I spare_[2][kComputedRows];
    double spare_reals_[2][kComputedRows];
};

}  // namespace

nb::object compare_computed(const nb::list& steps, const std::string& name, int64_t count_, const Within& within) {
    const size_t count = checked_count(count_, "count");
    const Op op = op_named(name);
    check_within(within, count);
    Fresh<uint64_t> out(words_for(count));
    try {
        const ComputedSteps known(steps);
        const NoGil nogil(count * 8);
        const auto narrow = std::make_unique<ComputedRows<int64_t>>(known);
        std::unique_ptr<ComputedRows<Wide>> wide;
        for (size_t first = 0; first < count; first += kComputedRows) {
            const size_t rows = std::min(kComputedRows, count - first), word = first / 64, words = words_for(rows);
            uint64_t* const answers = out.data + word;
            uint64_t wanted = 0;
            for (size_t w = 0; w < words; ++w) wanted |= within.none() ? 1 : within.data[word + w];
            if (wanted == 0) {
                std::fill_n(answers, words, uint64_t{0});
                continue;
            }
            if (!narrow->compare(first, rows, op, answers)) {
                if (wide == nullptr) wide = std::make_unique<ComputedRows<Wide>>(known);
                if (!wide->compare(first, rows, op, answers)) throw BeyondKernel{};
            }
            for (size_t w = 0; w < words && !within.none(); ++w) answers[w] &= within.data[word + w];
        }
    } catch (const BeyondKernel&) {
        return nb::none();
    }
    return std::move(out.object);
}

}  // namespace pyparq
