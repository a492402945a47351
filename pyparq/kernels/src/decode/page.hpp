// One page: its header, and its bytes once they are checked, decrypted and inflated (README.md, Data Pages).
#pragma once
#include "crypto/cipher.hpp"
#include "decode/memory.hpp"

#include <vector>

namespace pyparq {

constexpr int64_t kDictionaryPage = -2;  // stands for the ordinal of the dictionary page

// What the options allow (pyparq/limits.py).
struct PageLimits {
    int64_t max_page, max_expansion, expansion_floor, max_values_per_byte, max_column;
    bool check_crc;
    int64_t most_offset;  // of 32 bits
};

// Numbers of a page header; -1 where one is absent.
struct PageHead {
    enum Type : int64_t { kData = 0,
                          kIndex = 1,
                          kDictionary = 2,
                          kDataV2 = 3 };
    int64_t type = -1, size = -1, stored = -1, crc = 0;
    bool has_crc = false, has_v1 = false, has_v2 = false, has_dictionary = false;
    int64_t count = 0, encoding = 0;
    int64_t def = 0, rep = 0;     // levels: encodings in v1, byte lengths in v2
    int64_t nulls = 0, rows = 0;  // of v2 pages
    bool compressed = true, has_statistics = false, is_sorted = false;
    bool is_data() const { return type == kData || type == kDataV2; }
    bool is_v2() const { return type == kDataV2; }
};

struct Bytes {
    const uint8_t* data = nullptr;
    size_t size = 0;
};

struct PageScratch;

// Opens the modules of an encrypted chunk: by libcrypto, or by Python's ChunkDecryption, whose calls take the GIL. A module
// that libcrypto cannot open goes to ChunkDecryption too, which raises the error.
class PageCipher {
  public:
    // `key`: None where the library is not there; `aads`: of the modules 2 to 5, up to the page's number.
    PageCipher(nb::object crypto, nb::object key, const nb::handle& aads, bool ctr);
    // The header of a page at `at`, and where its stored bytes end.
    Bytes header(const Bytes& data, size_t at, int64_t ordinal, PageScratch& scratch, Budget& budget, size_t& end) const;
    // The body of a page; for v2 pages the levels before the values.
    Bytes body(const Bytes& stored, const PageHead& head, int64_t ordinal, PageScratch& scratch, Budget& budget) const;

  private:
    bool open(int module, const Bytes& stored, int64_t page, AesContext& context, uint8_t* out, size_t& size) const;
    bool open_body(const Bytes& stored, const PageHead& head, int64_t ordinal, AesContext& context, uint8_t* out,
                   size_t& size) const;

    nb::object crypto_, key_object_;
    const AesKey* key_;
    std::array<std::string, 4> aads_;
    bool ctr_;

  public:
    const bool authenticates;  // its tags prove more than a CRC does
};

// The header at data[at]; moves `at` behind it. Throws PageRefusal for one that is bad, whose body is not there or too large.
PageHead read_page_head(const Bytes& data, size_t& at, int codec, const PageLimits& limits);
PageHead parse_page_head(const uint8_t* data, size_t size, size_t& at);
void check_page_head(const PageHead& head, size_t room, int codec, const PageLimits& limits);

// Values that the header of a data page declares, nulls included.
int64_t declared_values(const PageHead& head);

// Memory of one worker, for the page that it is at.
struct PageScratch {
    Passing decrypted, inflated, def, rep, places, ranks, valid, indices, values, starts, spelled;
    std::vector<uint8_t, Unset<uint8_t>> entries;  // of the last dictionary that is not needed any more
    AesContext aes;
    uint8_t* into = nullptr;  // where to inflate the next data page; null: in `inflated`
};

// A data page split into levels and values, all still encoded.
struct OpenPage {
    int64_t count = 0;
    int encoding = 0;
    Bytes rep, def, values;
    int rep_encoding = 3, def_encoding = 3;
    bool partly = false;  // the values end before the page does
};

// The body of a data page, held against its CRC and inflated: the first `wanted` of its values are needed.
OpenPage open_data_page(const PageHead& head, Bytes body, int64_t ordinal, int codec, int max_def, int max_rep,
                        const PageCipher* cipher, int64_t wanted, const PageLimits& limits, PageScratch& scratch,
                        Budget& budget);

// Throws PageRefusal unless the stored body of a page matches its CRC. Does nothing without a CRC, or where limits say not to check.
void check_page_crc(const PageHead& head, const Bytes& body, const PageCipher* cipher, const PageLimits& limits);

// The PLAIN bytes of a dictionary page, the first `due` of them at least.
Bytes open_dictionary_page(const PageHead& head, Bytes body, int codec, const PageCipher* cipher, int64_t due,
                           const PageLimits& limits, PageScratch& scratch, Budget& budget);

// Levels spelled out into `out`; how many are the maximum. With `may_skip`, nothing is written where all are, and `out`
// becomes null.
size_t read_page_levels(const Bytes& stored, int encoding, size_t count, int maximum, bool may_skip, Passing& room,
                        Budget& budget, uint8_t*& out);

}  // namespace pyparq
