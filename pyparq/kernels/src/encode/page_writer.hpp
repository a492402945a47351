// The pages of one column chunk, one after another (README.md of the format, "Data Pages").
#pragma once

#include "encode/column.hpp"

namespace pyparq {

enum PageType : int { kDataPage = 0,
                      kDictionaryPage = 2,
                      kDataPageV2 = 3 };

// Consecutive pages in one encoding: up to page `end`.
struct Section {
    bool dictionary;
    int encoding;
    size_t end;
};

class PageWriter {
  public:
    // Without `unlocked`, on a thread that cannot call Python.
    PageWriter(const ColumnRules& column, const LeafValues& leaf, const Decision& decision, PageSeal& seal, Unlocked* unlocked,
               ChunkBytes& bytes, ChunkFacts& facts)
        : column_(column), leaf_(leaf), decision_(decision), seal_(seal), compressor_(column, unlocked), unlocked_(unlocked), bytes_(bytes), out_(bytes.room), facts_(facts) {}

    void add_dictionary();
    // Adds the pages from `page` on, none behind the one before `end`.
    void add_pages(const Pages& pages, const std::vector<Section>& sections, size_t page, size_t end);

  private:
    // The slots and values of a data page.
    struct Extent {
        size_t page, slot, slots, value, values;
        int64_t rows;
    };
    // What a data page holds: levels in front that are not compressed, and the values as they are stored.
    struct Body {
        TextPart levels, stored;
        size_t uncompressed;  // bytes of both before compression
    };

    void add_data(const Pages& pages, size_t page, const Section& section);
    void version_1(const Extent& extent, const Section& section, const StoredBody* made);
    void version_2(const Extent& extent, const Section& section, const StoredBody* made);
    TextPart put_page_values(const Extent& extent, const Section& section);
    const StoredBody* made_before(const Extent& extent, const Section& section) const;
    const uint8_t* reps_at(size_t slot) const { return leaf_.reps == nullptr ? nullptr : leaf_.reps + slot; }
    const uint8_t* defs_at(size_t slot) const { return leaf_.defs == nullptr ? nullptr : leaf_.defs + slot; }

    bool compresses() const { return column_.codec != kUncompressed; }
    TextPart compressed(const TextPart& part);
    void begin_header(int type, size_t uncompressed);
    template <class Finish>
    void finish_header(size_t uncompressed, size_t size, const TextPart* parts, size_t count, int64_t page, Finish&& finish);
    template <class Finish>
    void store(size_t uncompressed, const TextPart* parts, size_t count, int64_t page, Finish&& finish);
    template <class Finish>
    size_t store_sealed(size_t uncompressed, const TextPart* parts, size_t count, int64_t page, Finish&& finish);
    uint32_t crc(const TextPart* parts, size_t count);

    const ColumnRules& column_;
    const LeafValues& leaf_;
    const Decision& decision_;
    PageSeal& seal_;
    Compressor compressor_;
    Unlocked* unlocked_;
    ChunkBytes& bytes_;
    Room& out_;  // of `bytes_`
    ChunkFacts& facts_;
    Room body_, stored_;
    Room sealed_;  // the last header
    AesContext aes_;
    ThriftOut header_;
};

}  // namespace pyparq
