// Where the values of pages go: fixed-width slots, or offsets and bytes. What is wanted of a page, and which slots are null,
// is known before.
#pragma once
#include "decode/joint_bytes.hpp"
#include "decode/page.hpp"
#include "decode/short_entries.hpp"

#include <deque>
#include <mutex>

namespace pyparq {

enum class Physical : int { kBoolean,
                            kInt32,
                            kInt64,
                            kInt96,
                            kFloat,
                            kDouble,
                            kByteArray,
                            kFixed };

// What a leaf comes out as: slots of fixed width, byte arrays (offsets and bytes), views of byte arrays, or codes of a
// dictionary.
enum class OutputForm : int { kFixed,
                              kBinary,
                              kViews,
                              kCodes };

// How stored values of fixed width become those of the output.
enum class Convert : int {
    kNone,
    kInt8,
    kInt16,
    kUint8,
    kUint16,
    kDecimal16,
    kDecimal32,
    kBytesDecimal16,
    kBytesDecimal32,
};

constexpr int kMostDigits = 76;  // of a decimal of 32 bytes

struct LeafSpec {
    Physical physical;
    size_t width;  // of a stored value; 0 for BYTE_ARRAY, 1 for BOOLEAN in memory
    int max_def, max_rep, slot_level;
    bool keeps_levels, is_text;
    OutputForm form;
    Convert convert;
    bool large_offsets;    // byte arrays with offsets of 64 bits, however few bytes there are
    bool codes_or_values;  // codes only where all pages have them, values otherwise
    int digits;            // most that a decimal may have; 0: any

    bool is_binary() const { return form == OutputForm::kBinary; }
    bool is_views() const { return form == OutputForm::kViews; }
    bool is_codes() const { return form == OutputForm::kCodes; }
    bool is_values() const { return form == form_of_values(); }
    OutputForm form_of_values() const { return physical == Physical::kByteArray ? OutputForm::kBinary : OutputForm::kFixed; }
    size_t out_width() const;
};

// Bytes that the views of a column look at.
struct ViewBuffer {
    Block bytes;
    size_t used = 0;
};

class ViewBuffers {
  public:
    // One more, and its number.
    std::pair<ViewBuffer*, uint32_t> open() {
        const std::lock_guard lock(mutex_);
        all.emplace_back();
        return {&all.back(), static_cast<uint32_t>(all.size() - 1)};
    }
    std::deque<ViewBuffer> all;

  private:
    std::mutex mutex_;
};

// The entries of a chunk's dictionary, as the sink gathers them.
struct Dictionary {
    bool there = false;
    size_t count = 0;
    std::vector<uint8_t, Unset<uint8_t>> fixed;  // of the output's width
    std::vector<uint8_t> beyond;                 // 1 for those that do not fit the output's type; empty where all do
    Block bytes;                                 // of byte arrays, or of stored values of fixed width
    size_t bytes_used = 0;
    size_t held = 0;  // bytes that were taken for it
    std::vector<int64_t> offsets;
    ShortEntries entries;
    bool is_short = false;
    bool any_long = false;   // some entries are too long to be inline in a view
    bool is_copied = false;  // views of long entries point to copies
    uint32_t first = 0;      // the code of the first entry

    // The codes of its entries go on behind those of other dictionaries.
    void number_from(uint32_t code);

    // From the PLAIN bytes of a dictionary page; `uses` values will be looked up, none of them behind the first `known`
    // entries. Throws NeedsAll where these are not all of them, and the bytes do not hold so many.
    void load(const Bytes& plain, int64_t count, int64_t known, const LeafSpec& leaf, size_t uses, Budget& budget);
    // Hands the bytes over to the views of a column, which look at them there.
    void lend(ViewBuffers& buffers);
    Bytes entry(size_t k) const {
        return {bytes.data() + offsets[k], static_cast<size_t>(offsets[k + 1] - offsets[k])};
    }

  private:
    void hold(size_t size, Budget& budget);
    void load_fixed(const Bytes& plain, size_t known, const LeafSpec& leaf, Budget& budget);
    void load_bytes(const Bytes& plain, size_t known, const LeafSpec& leaf, Budget& budget);
    void make_views(uint32_t number);
};

// The values of a page that are present, still encoded, and those of them that are wanted.
struct PageValues {
    int encoding;
    Bytes data;
    size_t present;
    const uint32_t* picks = nullptr;  // ascending; null: all
    size_t picked = 0;
    bool partly = false;

    size_t wanted() const { return picks == nullptr ? present : picked; }
    size_t needed() const { return picks == nullptr ? present : picked == 0 ? 0
                                                                            : size_t{picks[picked - 1]} + 1; }
};

// Thrown where the bytes of a page that was inflated in part do not reach: all of it is needed.
struct NeedsAll {};

// Thrown where a column cannot come out in its form: its bytes need wider offsets, or a page of codes has none. It is made
// anew with wider offsets, or as values.
struct OtherForm {};

class Sink {
  public:
    virtual ~Sink() = default;
    // `valid` has a byte per slot; null: all `slots` are present.
    virtual void append(const PageValues& page, const uint8_t* valid, size_t slots, const Dictionary& dictionary,
                        PageScratch& scratch, Budget& budget) = 0;
    virtual size_t held() const = 0;  // bytes of memory that it owns
    // Where to inflate a page all of whose values are wanted; null: anywhere.
    virtual uint8_t* page_room(const PageHead&, Budget&) { return nullptr; }
    size_t slots = 0;  // so far
};

// Slots of fixed width: in their place, which is there, or in memory that grows.
class FixedSink : public Sink {
  public:
    FixedSink(const LeafSpec& leaf, uint8_t* place, size_t room, const PageLimits& limits);
    void append(const PageValues& page, const uint8_t* valid, size_t slots, const Dictionary& dictionary,
                PageScratch& scratch, Budget& budget) override;
    size_t held() const override { return own.size(); }
    Block own;

  protected:
    uint8_t* next(size_t slots, Budget& budget);
    void check_used(const Dictionary& from, const uint32_t* indices, size_t values) const;
    const LeafSpec& leaf_;

  private:
    void append_entries(const PageValues& page, const uint8_t* valid, size_t n, const Dictionary& from, uint8_t* out,
                        PageScratch& scratch, Budget& budget);
    void append_values(const PageValues& page, const uint8_t* valid, size_t n, uint8_t* out, PageScratch& scratch,
                       Budget& budget);
    const uint8_t* convert_wanted(PageValues& page, const uint8_t* values, PageScratch& scratch, Budget& budget) const;

    size_t width_;  // of the output
    uint8_t* place_;
    size_t room_;  // slots

  protected:
    const PageLimits& limits_;
};

// Byte arrays as views. Those that are not inline look at a dictionary, at the pages that they came in, or at copies.
class ViewSink final : public FixedSink {
  public:
    ViewSink(const LeafSpec& leaf, uint8_t* place, size_t room, size_t bytes_expected, ViewBuffers& buffers,
             const PageLimits& limits)
        : FixedSink(leaf, place, room, limits), buffers_(buffers), expected_(bytes_expected) {}
    uint8_t* page_room(const PageHead& head, Budget& budget) override;
    void append(const PageValues& page, const uint8_t* valid, size_t slots, const Dictionary& dictionary,
                PageScratch& scratch, Budget& budget) override;

  private:
    void reserve(size_t more, Budget& budget);
    bool holds(const Bytes& data) const;
    template <class Walk>
    void put(Walk&& walk, const Bytes& source, uint8_t* out);
    void plain(const PageValues& page, uint8_t* out, Budget& budget);
    void delta_length(const PageValues& page, uint8_t* out, Budget& budget);
    void shared_prefixes(const PageValues& page, uint8_t* out, PageScratch& scratch, Budget& budget);
    void copies(const PageValues& page, const uint8_t* valid, size_t slots, const Dictionary& dictionary, uint8_t* out,
                PageScratch& scratch, Budget& budget);

    ViewBuffers& buffers_;
    ViewBuffer* buffer_ = nullptr;  // the one that is filled
    uint32_t number_ = 0;
    size_t expected_;
};

// Byte arrays. Offsets count from the start of this sink's bytes: its part of what all segments share, as long as they fit in
// there, or its own.
template <class O>
class BinarySink final : public Sink {
  public:
    // `place` is for the offset behind the first slot.
    BinarySink(const LeafSpec& leaf, O* place, size_t room, size_t bytes_expected, Budget& budget, const PageLimits& limits);
    // `joint`: the bytes of all segments. This sink is for one of them.
    void share(JointBytes& joint, size_t segment) { joint_ = &joint, segment_ = segment; }
    bool shares() const { return used == 0 || data_ != bytes.data(); }
    const uint8_t* data() const { return data_; }
    void append(const PageValues& page, const uint8_t* valid, size_t slots, const Dictionary& dictionary,
                PageScratch& scratch, Budget& budget) override;
    size_t held() const override { return own.size() + bytes.size(); }
    Block own;  // offsets that grow
    Block bytes;
    size_t used = 0;

  private:
    O* next(size_t slots, Budget& budget);
    void foresee(const PageValues& page, size_t slots, Budget& budget);
    void reserve(size_t more, Budget& budget);
    O base() const { return static_cast<O>(used); }
    void plain_all(const PageValues& page, O* offsets, Budget& budget);
    template <class Walk>
    void some(const Bytes& source, const PageValues& page, const uint8_t* valid, size_t slots, O* offsets,
              PageScratch& scratch, Budget& budget, Walk&& walk);
    void plain(const PageValues& page, const uint8_t* valid, size_t slots, O* offsets, PageScratch& scratch, Budget& budget);
    void delta_length(const PageValues& page, const uint8_t* valid, size_t slots, O* offsets, PageScratch& scratch,
                      Budget& budget);
    void shared_prefixes(const PageValues& page, const uint8_t* valid, size_t slots, O* offsets, PageScratch& scratch,
                         Budget& budget);
    void indices(const PageValues& page, const uint8_t* valid, size_t slots, O* offsets, const Dictionary& dictionary,
                 PageScratch& scratch, Budget& budget);
    void short_entries(const PageValues& page, const uint8_t* valid, size_t slots, O* offsets, const Dictionary& dictionary,
                       PageScratch& scratch, Budget& budget);
    void check_all_text(const PageValues& page, const uint8_t* valid, const O* offsets, size_t slots, size_t from) const;

    const LeafSpec& leaf_;
    O* place_;
    size_t room_;
    const PageLimits& limits_;
    size_t expected_;  // bytes for which there is no room yet
    JointBytes* joint_ = nullptr;
    size_t segment_ = 0;
    uint8_t* data_ = nullptr;  // in `bytes`, or in what is shared
    size_t data_room_ = 0;
};

}  // namespace pyparq
