// Values computed from texts: which of two comes first, lengths, other cases.
#include "base/utf8.hpp"
#include "select/calls.hpp"
#include "select/like_pattern.hpp"
#include "values/checks.hpp"

#include <algorithm>
#include <vector>

namespace pyparq {
namespace {

size_t characters(const uint8_t* p, const uint8_t* end) {
    size_t count = 0;
    while (p < end) {
        if (end - p >= 8 && (load<uint64_t>(p) & 0x8080808080808080ull) == 0) {
            p += 8;
            count += 8;
            continue;
        }
        p += character_at(p, end);
        ++count;
    }
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

void change_ascii(uint8_t* out, const uint8_t* p, size_t n, bool upper) {
    const uint8_t first = upper ? 'a' : 'A';
    for (size_t i = 0; i < n; ++i) {
        const uint8_t changes = static_cast<uint8_t>(static_cast<uint8_t>(p[i] - first) < 26);
        out[i] = static_cast<uint8_t>(p[i] ^ changes << 5);
    }
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

// Texts with other letters than ASCII's, in another case: asked of Python by the megabyte.
class OtherLetters {
  public:
    explicit OtherLetters(bool upper) : upper_(upper) {}
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
    Fresh<int64_t> ends(n + 1);
    return offsets.visit([&](const auto* o) -> nb::object {
        check_offsets(o, offsets.size, data.size);
        OtherLetters others(upper);
        const auto of_ascii = [&](size_t i) { return is_ascii(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i])); };
        const bool all_ascii = is_ascii(data.data + o[0], static_cast<size_t>(o[n] - o[0]));
        if (!all_ascii) {
            for (size_t i = 0; i < n; ++i)
                if (!of_ascii(i)) others.add(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i]));
            others.ask();
        }
        ends.data[0] = 0;
        for (size_t i = 0, k = 0; i < n; ++i) {
            const bool plain = all_ascii || of_ascii(i);
            ends.data[i + 1] = ends.data[i] + (plain ? static_cast<int64_t>(o[i + 1] - o[i]) : static_cast<int64_t>(others[k++].size()));
        }
        Fresh<uint8_t> out(static_cast<size_t>(ends.data[n]));
        {
            const NoGil nogil(out.size);
            if (all_ascii) {
                change_ascii(out.data, data.data + o[0], out.size, upper);
            } else {
                for (size_t i = 0, k = 0; i < n; ++i) {
                    uint8_t* const to = out.data + ends.data[i];
                    if (of_ascii(i)) change_ascii(to, data.data + o[i], static_cast<size_t>(o[i + 1] - o[i]), upper);
                    else std::ranges::copy(others[k++], to);
                }
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
