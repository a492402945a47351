// Sequences of pages: each a header, a Thrift struct, and a body. A change of one leaves the others readable.
#include <algorithm>
#include <array>

#include "mutators.hpp"

namespace {

constexpr int16_t kSize = 2, kStored = 3, kCrc = 4;  // ids of fields of a PageHeader
constexpr size_t kMostPages = 64;
constexpr uint8_t kI32 = 5;

struct Page {
    ThriftValue header;
    Octets body;
};

ThriftValue* field_of(ThriftValue& header, int16_t id) {
    const auto found = std::find(header.ids.begin(), header.ids.end(), id);
    return found == header.ids.end() ? nullptr : &header.inside[static_cast<size_t>(found - header.ids.begin())];
}

uint32_t crc_of(const Octets& bytes) {
    static const std::array<uint32_t, 256> table = [] {
        std::array<uint32_t, 256> made{};
        for (uint32_t k = 0; k < 256; ++k) {
            uint32_t value = k;
            for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
            made[k] = value;
        }
        return made;
    }();
    uint32_t crc = ~0u;
    for (const uint8_t byte : bytes) crc = table[(crc ^ byte) & 255] ^ crc >> 8;
    return ~crc;
}

// The pages, and in `at` where what is no page begins.
std::vector<Page> pages_of(const Octets& given, size_t& at) {
    std::vector<Page> pages;
    while (at < given.size() && pages.size() < kMostPages) {
        size_t next = at;
        Page page;
        if (!read_thrift(given, next, page.header)) break;
        const ThriftValue* const stored = field_of(page.header, kStored);
        if (stored == nullptr || stored->number < 0) break;
        const size_t size = std::min<size_t>(static_cast<size_t>(stored->number), given.size() - next);
        page.body.assign(given.begin() + static_cast<ptrdiff_t>(next), given.begin() + static_cast<ptrdiff_t>(next + size));
        at = next + size;
        pages.push_back(std::move(page));
    }
    return pages;
}

// The sizes and the checksum that the body has. A body that is not compressed has one size.
void settle(Page& page, bool was_equal) {
    const auto size = static_cast<int64_t>(page.body.size());
    if (ThriftValue* const stored = field_of(page.header, kStored); stored != nullptr && stored->type == kI32)
        stored->number = size;
    if (ThriftValue* const whole = field_of(page.header, kSize); was_equal && whole != nullptr) whole->number = size;
    if (ThriftValue* const crc = field_of(page.header, kCrc); crc != nullptr && crc->type == kI32)
        crc->number = static_cast<int32_t>(crc_of(page.body));
}

void change_page(Page& page, Random& random) {
    const ThriftValue* const whole = field_of(page.header, kSize);
    const bool was_equal = whole != nullptr && whole->number == static_cast<int64_t>(page.body.size());
    if (random() % 3 == 0) change_thrift(page.header, random);
    else change_bytes(page.body, page.body.size() + random() % 24);
    if (random() % 16 != 0) settle(page, was_equal);
}

void change_pages(std::vector<Page>& pages, Random& random) {
    const size_t place = random() % pages.size(), other = random() % pages.size();
    switch (random() % 12) {
        case 0: std::swap(pages[place], pages[other]); return;
        case 1: {
            Page copy = pages[place];
            pages.insert(pages.begin() + static_cast<ptrdiff_t>(other), std::move(copy));
            return;
        }
        case 2: pages.erase(pages.begin() + static_cast<ptrdiff_t>(place)); return;
        case 3:
            pages[place].body = pages[other].body;
            return settle(pages[place], true);
        default: return change_page(pages[place], random);
    }
}

}  // namespace

size_t mutate_pages(uint8_t* data, size_t size, size_t most, unsigned seed) {
    Random random(seed);
    if (size < kHead || random() % 32 == 0) return LLVMFuzzerMutate(data, size, most);
    if (random() % 6 == 0) {
        data[random() % kHead] = static_cast<uint8_t>(random());
        return size;
    }
    const Octets given(data, data + size);
    size_t at = kHead;
    std::vector<Page> pages = pages_of(given, at);
    if (pages.empty()) return LLVMFuzzerMutate(data, size, most);
    for (auto changes = 1 + random() % 3; changes > 0 && !pages.empty(); --changes) change_pages(pages, random);
    Octets made(given.begin(), given.begin() + kHead);
    for (const Page& page : pages) {
        write_thrift(page.header, made);
        made.insert(made.end(), page.body.begin(), page.body.end());
    }
    made.insert(made.end(), given.begin() + static_cast<ptrdiff_t>(at), given.end());
    return given_back(made, data, most);
}
