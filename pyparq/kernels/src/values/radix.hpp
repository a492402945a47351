// A sort by 64-bit keys in linear time.
#pragma once
#include "base/common.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace pyparq {

// The least significant digit first. Bits that all keys share are passed over. Items with one key keep their order.
template <class Item, class KeyOf>
void radix_sort(std::vector<Item>& items, const KeyOf& key_of) {
    constexpr size_t kFew = 1024;
    if (items.size() < kFew) {
        std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
        return;
    }
    constexpr size_t kDigit = 11;  // bits: the counts of all digits fit the first cache
    uint64_t differing = 0;
    for (const Item& item : items) differing |= key_of(item) ^ key_of(items[0]);
    std::vector<Item> sorted(items.size());
    while (differing != 0) {
        const auto shift = static_cast<size_t>(std::countr_zero(differing));
        const auto digit = [&](const Item& item) { return key_of(item) >> shift & ((1u << kDigit) - 1); };
        std::array<size_t, 1u << kDigit> places{};
        for (const Item& item : items) ++places[digit(item)];
        size_t at = 0;
        for (size_t& place : places) at += std::exchange(place, at);
        for (const Item& item : items) sorted[places[digit(item)]++] = item;
        items.swap(sorted);
        differing &= ~(uint64_t{(1u << kDigit) - 1} << shift);
    }
}

}  // namespace pyparq
