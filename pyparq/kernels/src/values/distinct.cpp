// Values in order, each once.
#include "values/calls.hpp"
#include "values/checks.hpp"
#include "values/radix.hpp"

namespace pyparq {
namespace {

// A number of 64 bits that sorts as unsigned ones do, and back.
template <class T>
struct Sorting {
    static constexpr uint64_t kSign = 1ull << 63;
    static uint64_t key(T v) {
        const auto bits = std::bit_cast<uint64_t>(v);
        if constexpr (std::is_unsigned_v<T>) return bits;
        if constexpr (std::is_integral_v<T>) return bits ^ kSign;
        return bits & kSign ? ~bits : bits | kSign;
    }
    static uint64_t bits(uint64_t key) {
        if constexpr (std::is_unsigned_v<T>) return key;
        if constexpr (std::is_integral_v<T>) return key ^ kSign;
        return key & kSign ? key ^ kSign : ~key;
    }
};

// Keys that lie close together are marked in a bitmap, and read from it in order.
void sort_once(std::vector<uint64_t>& keys) {
    constexpr uint64_t kSparse = 16;  // bits of the bitmap for each key: with more of them, digits are quicker
    const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
    const uint64_t first = *low, span = *high - first;
    if (span / kSparse >= keys.size()) {
        radix_sort(keys, [](uint64_t key) { return key; });
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        return;
    }
    std::vector<uint64_t> there(span / 64 + 1);
    for (const uint64_t key : keys) there[(key - first) / 64] |= uint64_t{1} << (key - first) % 64;
    size_t count = 0;
    for (size_t w = 0; w < there.size(); ++w)
        for (uint64_t left = there[w]; left != 0; left &= left - 1)
            keys[count++] = first + w * 64 + static_cast<size_t>(std::countr_zero(left));
    keys.resize(count);
}

template <class T>
nb::object distinct_of(const AnyArray<false>& values) {
    std::vector<uint64_t> keys(values.size);
    {
        const NoGil nogil(values.size * 8);
        std::transform(static_cast<const T*>(values.data), static_cast<const T*>(values.data) + values.size, keys.begin(), Sorting<T>::key);
        if (!keys.empty()) sort_once(keys);
    }
    Fresh<uint64_t> out(keys.size());
    std::transform(keys.begin(), keys.end(), out.data, Sorting<T>::bits);
    return std::move(out.object);
}

}  // namespace

nb::object distinct_numbers(const AnyArray<false>& values) {
    if (values.itemsize == 8 && values.kind == Kind::SignedInt) return distinct_of<int64_t>(values);
    if (values.itemsize == 8 && values.kind == Kind::UnsignedInt) return distinct_of<uint64_t>(values);
    if (values.itemsize == 8 && values.kind == Kind::Float) return distinct_of<double>(values);
    fail("these are no numbers of 64 bits");
}

nb::object distinct_binary(const Offsets& offsets, const RawIn& data) {
    struct Key {
        uint64_t prefix;
        size_t row;
    };
    std::vector<Key> keys;
    size_t bytes = 0;
    return offsets.visit([&](const auto* o) -> nb::object {
        check_offsets(o, offsets.size, data.size);
        const size_t n = offsets.size - 1;
        const auto text = [&](size_t i) { return std::pair(data.data + o[i], static_cast<size_t>(o[i + 1] - o[i])); };
        {
            const NoGil nogil(n * 8);
            // What all values begin with tells none from another.
            size_t shared = n > 0 ? text(0).second : 0;
            for (size_t i = 1; i < n && shared > 0; ++i) {
                const auto [p, size] = text(i);
                if (size >= shared && equal_bytes(p, text(0).first, shared)) continue;
                shared = static_cast<size_t>(std::mismatch(p, p + std::min(size, shared), text(0).first).first - p);
            }
            const auto order = [&](const Key& a, const Key& b) {
                const auto [p, p_size] = text(a.row);
                const auto [q, q_size] = text(b.row);
                return a.prefix != b.prefix ? (a.prefix < b.prefix ? -1 : 1) : compare_bytes(p, p_size, q, q_size);
            };
            keys.reserve(n);
            for (size_t i = 0; i < n; ++i)
                keys.push_back({order_prefix(text(i).first + shared, text(i).second - shared, data.data + data.size), i});
            radix_sort(keys, [](const Key& key) { return key.prefix; });
            for (size_t i = 0, k = 0; i < n; i = k) {
                while (k < n && keys[k].prefix == keys[i].prefix) ++k;
                if (k - i < 2) continue;
                std::sort(keys.begin() + static_cast<ptrdiff_t>(i), keys.begin() + static_cast<ptrdiff_t>(k),
                          [&](const Key& a, const Key& b) { return order(a, b) < 0; });
            }
            keys.erase(std::unique(keys.begin(), keys.end(), [&](const Key& a, const Key& b) { return order(a, b) == 0; }), keys.end());
            for (const Key& key : keys) bytes += text(key.row).second;
        }
        Fresh<int64_t> places(keys.size() + 1);
        Fresh<uint8_t> out(bytes);
        uint8_t* w = out.data;
        places.data[0] = 0;
        for (size_t i = 0; i < keys.size(); ++i) {
            const auto [p, size] = text(keys[i].row);
            copy_short(w, out.data + bytes, p, data.data + data.size, size);
            w += size;
            places.data[i + 1] = w - out.data;
        }
        return nb::make_tuple(places.object, out.object);
    });
}

}  // namespace pyparq
