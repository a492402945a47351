#include "encode/chunk_pages.hpp"

#include "base/workers.hpp"
#include "codecs/codecs.hpp"

#include <mutex>

namespace pyparq {
namespace {

constexpr size_t kShared = size_t{1} << 20;   // from so many bytes on, the pages of a chunk are shared out to threads
constexpr size_t kShare = size_t{256} << 10;  // bytes of values that a thread takes at a time, about

// Some pages of a chunk that a thread has made.
struct Share {
    ChunkBytes bytes;
    ChunkFacts facts;
    bool made = false;
};

void add_share(Share& share, ChunkBytes& out, ChunkFacts& facts) {
    const int64_t base = static_cast<int64_t>(out.size()) - facts.start;
    for (const PagePlace& page : share.facts.pages) facts.pages.push_back({base + page.offset, page.size, page.first_row});
    facts.uncompressed += share.facts.uncompressed;
    out.append(share.bytes.room);
    share.facts = {};
}

// Can threads that have no way to call Python make the pages?
bool needs_no_python(const ColumnRules& column, const PageSeal& seal) {
    if (seal.encrypts() && !seal.native()) return false;
    if (column.codec != kUncompressed && (column.level == kNotNative || !codec_writes_native(column.codec))) return false;
    return column.file->crc == nullptr || column.file->crc->native();
}

}  // namespace

size_t share_pages(const ColumnRules& column, const LeafValues& leaf, const Decision& d, PageSeal& seal, const Pages& pages,
                   const std::vector<Section>& sections, ChunkBytes& out, ChunkFacts& facts) {
    const FileRules& file = *column.file;
    const size_t size = leaf.coded ? leaf.slots : leaf.values.plain_size() + leaf.slots / 8;
    if (file.threads < 2 || size < kShared || pages.size() < 2 || !needs_no_python(column, seal)) return 0;
    const size_t each = std::max<size_t>(pages.size() * kShare / size, 1);
    std::vector<Share> shares((pages.size() + each - 1) / each);
    std::mutex adding;
    size_t added = 0;
    try {
        run_parallel(shares.size(), static_cast<size_t>(file.threads), [&](size_t k) {
            Share& share = shares[k];
            const size_t first = k * each;
            PageWriter(column, leaf, d, seal, nullptr, share.bytes, share.facts)
                .add_pages(pages, sections, first, std::min(first + each, pages.size()));
            if (stop_requested()) return;  // the last pages may be missing
            const std::lock_guard lock(adding);
            share.made = true;
            for (; added < shares.size() && shares[added].made; ++added) add_share(shares[added], out, facts);
        });
    } catch (const NeedsPython&) {
    }
    return std::min(added * each, pages.size());
}

std::vector<Section> paginate(const ColumnRules& column, const LeafValues& leaf, Decision& d, Cutter& cutter) {
    std::vector<Section> sections;
    if (d.dictionary) {
        const size_t last = d.complete ? leaf.rows : cutter.row_before_value(d.covered);
        if (last > 0) {
            cutter.cut(last, Cost{d.index_bits(), nullptr});
            sections.push_back({true, kRleDictionary, cutter.pages.size()});
        } else {
            d.dictionary = false;  // no page has it
        }
    }
    if (!d.dictionary || !d.complete) {
        const Values& v = leaf.values;
        cutter.cut(leaf.rows, column.boolean() ? Cost{1, nullptr} : v.binary() ? Cost{32, &v}
                                                                               : Cost{8 * v.width, nullptr});
        sections.push_back({false, d.encoding, cutter.pages.size()});
    }
    return sections;
}

}  // namespace pyparq
