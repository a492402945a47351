// A sort by 64-bit keys in linear time.
#pragma once
#include "base/common.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace pyparq {

// The least significant byte first. Bytes that all keys share are passed over. Items with one key keep their order.
template <class Item, class KeyOf>
void radix_sort(std::vector<Item>& items, const KeyOf& key_of) {
    constexpr size_t kFew = 1024;
    if (items.size() < kFew) {
        std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
        return;
    }
    uint64_t differing = 0;
    for (const Item& item : items) differing |= key_of(item) ^ key_of(items[0]);
    std::array<size_t, 8> shifts{};
    size_t passes = 0;
    for (size_t shift = 0; shift < 64; shift += 8)
        if ((differing >> shift & 0xff) != 0) shifts[passes++] = shift;
    std::array<std::array<size_t, 256>, 8> counts{};
    for (const Item& item : items)
        for (size_t k = 0; k < passes; ++k) ++counts[k][key_of(item) >> shifts[k] & 0xff];
    std::vector<Item> sorted(items.size());
    for (size_t k = 0; k < passes; ++k) {
        std::array<size_t, 256>& places = counts[k];
        size_t at = 0;
        for (size_t& place : places) at += std::exchange(place, at);
        for (const Item& item : items) sorted[places[key_of(item) >> shifts[k] & 0xff]++] = item;
        items.swap(sorted);
    }
}

}  // namespace pyparq
