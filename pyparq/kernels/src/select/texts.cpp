// Values computed from texts: which of two comes first, lengths, other cases.
#include "base/utf8.hpp"
#include "select/calls.hpp"
#include "select/like_pattern.hpp"
#include "values/checks.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace pyparq {
namespace {

// `next` is given the place and the bytes (0: no UTF-8) of each character above 127, until it says false.
template <class Next>
bool each_above_ascii(const uint8_t* p, size_t n, const Next& next) {
    for (size_t i = 0; i < n;) {
        if (p[i] < 0x80) {
            const uint64_t next_bytes = i + 8 <= n ? load<uint64_t>(p + i)
                                        : n >= 8   ? load<uint64_t>(p + n - 8) >> 8 * (8 - (n - i))
                                                   : 0x8000;
            const uint64_t above = next_bytes & 0x8080808080808080ull;
            i += above == 0 ? 8 : static_cast<size_t>(std::countr_zero(above)) / 8;
            continue;
        }
        const size_t size = utf8_sequence(p + i, n - i);
        if (!next(i, size)) return false;
        i += std::max<size_t>(size, 1);
    }
    return true;
}

size_t characters(const uint8_t* p, const uint8_t* end) {
    auto count = static_cast<size_t>(end - p);
    each_above_ascii(p, count, [&](size_t, size_t size) {
        count -= std::max<size_t>(size, 1) - 1;
        return true;
    });
    return count;
}

// The texts of one side, by row: one text for all rows, texts, or codes of them.
struct Side {
    const Offsets& offsets;
    const RawIn& data;
    const Array<int64_t, false, true>& codes;

    size_t entries() const { return offsets.size - 1; }
    bool is_one() const { return codes.none() && entries() == 1; }
    size_t rows() const { return codes.none() ? entries() : codes.size; }
    void check() const {
        offsets.visit([&](const auto* o) { check_offsets(o, offsets.size, data.size); });
        for (size_t i = 0; i < codes.size; ++i)
            if (static_cast<uint64_t>(codes.data[i]) >= entries()) fail("code " + str(codes.data[i]) + " is not below " + str(entries()));
    }
    std::pair<const uint8_t*, size_t> at(size_t row) const {
        const size_t k = is_one() ? 0 : codes.none() ? row
                                                     : static_cast<size_t>(codes.data[row]);
        return offsets.visit([&](const auto* o) {
            return std::pair<const uint8_t*, size_t>(data.data + o[k], static_cast<size_t>(o[k + 1] - o[k]));
        });
    }
};

[[gnu::always_inline]] inline void change_letters(uint8_t* out, const uint8_t* p, size_t n, uint8_t first) {
    for (size_t i = 0; i < n; ++i) {
        const uint8_t changes = static_cast<uint8_t>(static_cast<uint8_t>(p[i] - first) < 26);
        out[i] = static_cast<uint8_t>(p[i] ^ changes << 5);
    }
}

#if PYPARQ_AVX2
PYPARQ_TARGET_AVX2 void change_letters_avx2(uint8_t* out, const uint8_t* p, size_t n, uint8_t first) {
    change_letters(out, p, n, first);
}
#endif

void change_ascii(uint8_t* out, const uint8_t* p, size_t n, bool upper) {
    const uint8_t first = upper ? 'a' : 'A';
#if PYPARQ_AVX2
    if (have_avx2()) return change_letters_avx2(out, p, n, first);
#endif
    change_letters(out, p, n, first);
}

// What Python makes of texts that lie one behind the other, each with a NUL behind it. No rule for cases looks beyond a NUL,
// and no character becomes one.
std::string changed_by_python(const std::string& texts, bool upper) {
    const char* const mode = "surrogateescape";
    const nb::object text = nb::steal(PyUnicode_DecodeUTF8(texts.data(), static_cast<Py_ssize_t>(texts.size()), mode));
    if (!text.is_valid()) throw nb::python_error();
    const nb::object changed = text.attr(upper ? "upper" : "lower")();
    const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(changed.ptr(), "utf-8", mode));
    if (!bytes.is_valid()) throw nb::python_error();
    const auto found = nb::cast<nb::bytes>(bytes);
    return {found.c_str(), found.size()};
}

// What single characters become in another case: those of the first plane that become as many bytes, wherever they stand. Of
// all others Python is asked. Greek's capital sigma depends on its neighbours.
class OtherCase {
  public:
    // Made once; by the thread that has the GIL, and Python keeps it meanwhile.
    static const OtherCase& of(bool upper) {
        static std::atomic<const OtherCase*> made[2];
        const OtherCase* found = made[upper].load();
        if (found == nullptr) {
            auto fresh = std::unique_ptr<const OtherCase>(new OtherCase(upper));
            if (made[upper].compare_exchange_strong(found, fresh.get())) found = fresh.release();
        }
        return *found;
    }
    bool knows(const uint8_t* p, size_t n) const {
        return each_above_ascii(p, n, [&](size_t i, size_t size) {
            return size == 4 ? code_point(p + i, 4) >= kPictures : size > 0 && changed_[code_point(p + i, size)] != 0;
        });
    }
    // `p` holds nothing that is not known.
    void change(uint8_t* out, const uint8_t* p, size_t n) const {
        change_ascii(out, p, n, upper_);
        each_above_ascii(p, n, [&](size_t i, size_t size) {
            if (size != 4) std::memcpy(out + i, &changed_[code_point(p + i, size)], size);
            return true;
        });
    }

  private:
    static constexpr uint32_t kPlane = 0x10000, kPictures = 0x1f000, kCapitalSigma = 0x3a3;

    explicit OtherCase(bool upper) : upper_(upper), changed_(kPlane) {
        std::string all;
        for (uint32_t c = 0x80; c < kPlane; ++c) {
            if (c >= 0xd800 && c <= 0xdfff) continue;
            if (c < 0x800) all += static_cast<char>(0xc0 | c >> 6);
            else (all += static_cast<char>(0xe0 | c >> 12)) += static_cast<char>(0x80 | (c >> 6 & 0x3f));
            (all += static_cast<char>(0x80 | (c & 0x3f))) += '\0';
        }
        const std::string changed = changed_by_python(all, upper);
        size_t at = 0;
        for (uint32_t c = 0x80; c < kPlane; ++c) {
            if (c >= 0xd800 && c <= 0xdfff) continue;
            const size_t size = changed.find('\0', at) - at;
            if (size == (c < 0x800 ? 2 : 3) && (upper || c != kCapitalSigma)) std::memcpy(&changed_[c], changed.data() + at, size);
            at += size + 1;
        }
    }
    static uint32_t code_point(const uint8_t* p, size_t size) {
        uint32_t c = p[0] & (0x7fu >> size);
        for (size_t k = 1; k < size; ++k) c = c << 6 | (p[k] & 0x3fu);
        return c;
    }

    bool upper_;
    std::vector<uint32_t> changed_;  // the bytes, by code point; 0: Python has to be asked
};

// What Python makes of some texts: asked by the megabyte.
class AskedTexts {
  public:
    explicit AskedTexts(bool upper) : upper_(upper) {}
    void add(const uint8_t* p, size_t n) {
        waiting_.append(reinterpret_cast<const char*>(p), n).push_back('\0');
        nuls_.push_back(static_cast<size_t>(std::count(p, p + n, uint8_t{0})));
        if (waiting_.size() >= kAtOnce) ask();
    }
    void ask() {
        const std::string changed = changed_by_python(waiting_, upper_);
        size_t at = 0;
        for (const size_t inside : nuls_) {
            size_t end = changed.find('\0', at);
            for (size_t k = 0; k < inside && end != std::string::npos; ++k) end = changed.find('\0', end + 1);
            if (end == std::string::npos) fail("a NUL was lost with the case of a text");
            texts_.append(changed, at, end - at);
            ends_.push_back(texts_.size());
            at = end + 1;
        }
        waiting_.clear();
        nuls_.clear();
    }
    std::string_view operator[](size_t k) const {
        const size_t from = k == 0 ? 0 : ends_[k - 1];
        return std::string_view(texts_).substr(from, ends_[k] - from);
    }

  private:
    static constexpr size_t kAtOnce = size_t{1} << 20;
    bool upper_;
    std::string waiting_, texts_;
    std::vector<size_t> nuls_, ends_;
};

}  // namespace

nb::object change_case(const Offsets& offsets, const RawIn& data, bool upper) {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    const size_t n = offsets.size - 1;
    const OtherCase& other = OtherCase::of(upper);
    Fresh<int64_t> ends(n + 1);
    return offsets.visit([&](const auto* o) -> nb::object {
        check_offsets(o, offsets.size, data.size);
        const auto size = [&](size_t i) { return static_cast<size_t>(o[i + 1] - o[i]); };
        std::vector<size_t> asked;  // rows
        {
            const NoGil nogil(data.size);
            for (size_t i = 0; i < n; ++i)
                if (!other.knows(data.data + o[i], size(i))) asked.push_back(i);
        }
        AskedTexts answers(upper);
        for (const size_t i : asked) answers.add(data.data + o[i], size(i));
        answers.ask();
        ends.data[0] = 0;
        for (size_t i = 0, k = 0; i < n; ++i) {
            const bool is_asked = k < asked.size() && asked[k] == i;
            ends.data[i + 1] = ends.data[i] + static_cast<int64_t>(is_asked ? answers[k++].size() : size(i));
        }
        Fresh<uint8_t> out(static_cast<size_t>(ends.data[n]));
        {
            const NoGil nogil(out.size);
            size_t first = 0;  // of the rows that are not written yet
            for (size_t k = 0; k <= asked.size(); ++k) {
                const size_t last = k < asked.size() ? asked[k] : n;
                other.change(out.data + ends.data[first], data.data + o[first], static_cast<size_t>(o[last] - o[first]));
                if (last == n) break;
                std::ranges::copy(answers[k], out.data + ends.data[last]);
                first = last + 1;
            }
        }
        return nb::make_tuple(std::move(ends.object), std::move(out.object));
    });
}

nb::object compare_texts(const Offsets& offsets, const RawIn& data, const Array<int64_t, false, true>& codes,
                         const Offsets& other_offsets, const RawIn& other_data,
                         const Array<int64_t, false, true>& other_codes) {
    const Side a{offsets, data, codes}, b{other_offsets, other_data, other_codes};
    a.check();
    b.check();
    const size_t n = a.is_one() ? b.rows() : a.rows();
    if (!b.is_one() && b.rows() != n) fail(str(n) + " texts beside " + str(b.rows()));
    Fresh<int8_t> out(n);
    NoGil nogil(n * 8);
    const uint8_t *const a_end = data.data + data.size, *const b_end = other_data.data + other_data.size;
    for (size_t i = 0; i < n; ++i) {
        const auto [p, p_size] = a.at(i);
        const auto [q, q_size] = b.at(i);
        const uint64_t x = order_prefix(p, p_size, a_end), y = order_prefix(q, q_size, b_end);
        const int sign = x != y ? (x < y ? -1 : 1) : compare_bytes(p, p_size, q, q_size);
        out.data[i] = static_cast<int8_t>((sign > 0) - (sign < 0));
    }
    return std::move(out.object);
}

nb::object count_characters(const Offsets& offsets, const RawIn& data) {
    if (offsets.size == 0) fail("offsets are empty (n values need n + 1 offsets)");
    Fresh<int64_t> out(offsets.size - 1);
    NoGil nogil(data.size);
    offsets.visit([&](const auto* o) {
        check_offsets(o, offsets.size, data.size);
        for (size_t i = 0; i < out.size; ++i)
            out.data[i] = static_cast<int64_t>(characters(data.data + o[i], data.data + o[i + 1]));
    });
    return std::move(out.object);
}

}  // namespace pyparq
