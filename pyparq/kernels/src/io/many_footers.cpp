// Footers of many files in one call: read from local files, each opened, looked at and closed again without the
// interpreter, and compared without decoding each.
#include "io/calls.hpp"
#include "io/files.hpp"
#include "thrift/wire.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace pyparq {
namespace {

#ifdef PYPARQ_PREAD

constexpr uint32_t kPlain = 0x31524150, kEncrypted = 0x45524150;  // PAR1, PARE
constexpr size_t kTrailer = 8;

struct End {
    FileStatus status;
    int64_t requests = 0, bytes = 0;
    bool encrypted = false, good = false;
    std::string_view footer;  // in the room that it was read into
};

// `room` has `tail` bytes, or more after a longer footer.
void read_end(std::string_view path, size_t tail, size_t most, std::string& room, End& out) {
    const Descriptor file(path);
    if (file.number < 0 || !look(file.number, out.status)) return;
    const auto size = static_cast<size_t>(out.status.size);
    if (size < 12) return;
    size_t have = std::min(tail, size);
    if (!read_exactly(file.number, room.data(), have, out.status.size - static_cast<int64_t>(have))) return;
    out.requests = 1, out.bytes = static_cast<int64_t>(have);
    const auto magic = load<uint32_t>(room.data() + have - 4);
    const size_t footer = load<uint32_t>(room.data() + have - 8);
    if ((magic != kPlain && magic != kEncrypted) || footer == 0 || footer > size - 12 || footer > most) return;
    out.encrypted = magic == kEncrypted;
    if (footer + kTrailer <= have) {
        out.footer = std::string_view(room).substr(have - kTrailer - footer, footer);
    } else {
        if (room.size() < footer) room.resize(footer);
        const int64_t start = out.status.size - static_cast<int64_t>(footer + kTrailer);
        if (!read_exactly(file.number, room.data(), footer, start)) return;
        out.footer = std::string_view(room).substr(0, footer);
        out.requests = 2, out.bytes += static_cast<int64_t>(footer + kTrailer);
    }
    out.good = true;
}

nb::tuple stored_end(const End& end, const std::string& footer) {
    return nb::make_tuple(end.status.size, end.status.mtime_ns, end.status.inode, end.status.ctime_ns, end.encrypted,
                          nb::bytes(footer.data(), footer.size()), end.requests, end.bytes);
}

#endif

// ---- what footers have in common ------------------------------------------------------------------------

constexpr int32_t kNumRows = 3, kRowGroups = 4, kEncryption = 8, kGroupRows = 3, kGroupColumns = 1;

// A FileMetaData without what differs from file to file of a dataset: its rows and its row groups.
struct Frame {
    size_t cut[2][2] = {{0, 0}, {0, 0}};  // [start, end) of num_rows and of the list of row groups, in order
    size_t end = 0;
    int64_t stated = 0, rows = 0;  // in all, and summed over the row groups
    bool good = false;
};

// The rows of a row group; -1 where there is more to say than a number.
int64_t group_rows(Cursor& c) {
    int64_t rows = -1;
    int counted = 0, columns = 0;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        if (id == kGroupRows && type == kI64) {
            ++counted, rows = c.number(64);
        } else if (id == kGroupColumns && type == kList) {
            uint8_t element;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) return -1;
            ++columns;
            for (size_t n = count; n > 0; --n) skip_struct(c, 3);
        } else {
            skip_field(c, type, 2);
        }
    }
    return counted == 1 && columns == 1 && rows > 0 ? rows : -1;
}

Frame frame_of(std::string_view footer) {
    const auto* data = reinterpret_cast<const uint8_t*>(footer.data());
    Cursor c{data, data, data + footer.size()};
    Frame out;
    int found = 0, lists = 0;
    bool usual = true;
    int32_t id = 0;
    uint8_t type;
    while (c.field(type, id)) {
        const auto start = static_cast<size_t>(c.at());
        if (id == kNumRows && type == kI64) {
            out.stated = c.number(64);
        } else if (id == kRowGroups && type == kList) {
            uint8_t element;
            ++lists;
            const size_t count = c.list(element);
            if (count > 0 && element != kStruct) return out;
            for (size_t n = count; n > 0; --n) {
                const int64_t rows = group_rows(c);
                if (rows < 0 || rows > std::numeric_limits<int64_t>::max() - out.rows) return out;
                out.rows += rows;
            }
        } else {
            usual &= id != kEncryption;
            skip_field(c, type, 1);
            continue;
        }
        if (found == 2) return out;
        out.cut[found][0] = start, out.cut[found][1] = static_cast<size_t>(c.at()), ++found;
    }
    out.end = static_cast<size_t>(c.at());
    out.good = usual && found == 2 && lists == 1 && out.stated == out.rows;
    return out;
}

std::string kept(std::string_view footer, const Frame& frame) {
    const size_t sizes[2] = {frame.cut[0][0], frame.cut[1][0] - frame.cut[0][1]};
    std::string text(reinterpret_cast<const char*>(sizes), sizeof sizes);
    text += footer.substr(0, sizes[0]);
    text += footer.substr(frame.cut[0][1], sizes[1]);
    text += footer.substr(frame.cut[1][1], frame.end - frame.cut[1][1]);
    return text;
}

// Whether two footers are equal except for rows and row groups. Compares without copies.
bool alike(std::string_view a, const Frame& x, std::string_view b, const Frame& y) {
    if (x.cut[0][0] != y.cut[0][0] || x.cut[1][0] - x.cut[0][1] != y.cut[1][0] - y.cut[0][1] ||
        x.end - x.cut[1][1] != y.end - y.cut[1][1])
        return false;
    const auto same = [&](size_t p, size_t q, size_t n) { return std::memcmp(a.data() + p, b.data() + q, n) == 0; };
    return same(0, 0, x.cut[0][0]) && same(x.cut[0][1], y.cut[0][1], x.cut[1][0] - x.cut[0][1]) &&
           same(x.cut[1][1], y.cut[1][1], x.end - x.cut[1][1]);
}

// Not good if the footer is damaged: decoding it raises the error.
Frame frame_or_none(std::string_view footer) {
    try {
        return frame_of(footer);
    } catch (const KernelError&) {
        return {};
    }
}

#ifdef PYPARQ_PREAD

// The first file of each kind among files that are alike but for rows and row groups.
class Kinds {
  public:
    // Whether the footer is of a new kind. False, with `told` false, if its kind is not known.
    bool is_new(const End& end, bool& told) {
        const Frame frame = end.encrypted ? Frame{} : frame_or_none(end.footer);
        told = frame.good;
        if (!told) return false;
        if (have_last_ && alike(last_, last_frame_, end.footer, frame)) return false;
        const bool fresh = known_.insert(kept(end.footer, frame)).second;
        last_.assign(end.footer), last_frame_ = frame, have_last_ = true;
        return fresh;
    }

  private:
    std::unordered_set<std::string> known_;
    std::string last_;  // the footer before this one: the next is most often like it
    Frame last_frame_;
    bool have_last_ = false;
};

#endif

}  // namespace

#ifdef PYPARQ_PREAD

nb::list read_footers(const nb::list& paths, size_t tail, size_t most) {
    if (tail < kTrailer || tail > size_t{1} << 30) fail("a tail of " + str(uint64_t{tail}) + " bytes");
    const BytesList given(paths);
    std::vector<End> ends(given.items.size());
    std::vector<std::string> footers(ends.size());
    {
        NoGil nogil(size_t{1} << 20);
        std::string room(tail, '\0');
        for (size_t k = 0; k < ends.size(); ++k) {
            read_end(given.items[k], tail, most, room, ends[k]);
            footers[k].assign(ends[k].footer);
        }
    }
    nb::list found;
    for (size_t k = 0; k < ends.size(); ++k) {
        if (ends[k].good)
            found.append(stored_end(ends[k], footers[k]));
        else
            found.append(nb::none());
    }
    return found;
}

nb::tuple footer_kinds(const nb::list& paths, const In<int64_t>& statuses, size_t tail, size_t most) {
    if (tail < kTrailer || tail > size_t{1} << 30) fail("a tail of " + str(uint64_t{tail}) + " bytes");
    const BytesList given(paths);
    const size_t n = given.items.size();
    if (statuses.size != kStatusNumbers * n) fail("arrays that do not fit");
    std::vector<int64_t> firsts, odd;
    std::vector<std::pair<End, std::string>> found;
    {
        NoGil nogil(size_t{1} << 20);
        std::string room(tail, '\0');
        Kinds kinds;
        for (size_t k = 0; k < n; ++k) {
            End end;
            read_end(given.items[k], tail, most, room, end);
            bool told = false;
            const bool same = end.good && end.status.is(statuses.data + kStatusNumbers * k);
            if (same && kinds.is_new(end, told)) {
                firsts.push_back(static_cast<int64_t>(k));
                found.emplace_back(end, std::string(end.footer));
            } else if (!told) {
                odd.push_back(static_cast<int64_t>(k));
            }
        }
    }
    nb::list footers;
    for (const auto& [end, footer] : found) footers.append(stored_end(end, footer));
    return nb::make_tuple(int64_array(firsts), footers, int64_array(odd));
}

#endif

nb::tuple footer_frames(const nb::list& footers) {
    const BytesList given(footers);
    const size_t n = given.items.size();
    Fresh<int64_t> frames(n), rows(n);
    {
        NoGil nogil(n << 10);
        std::vector<Frame> found(n);
        std::unordered_map<std::string, size_t> known;
        size_t last = n;
        for (size_t k = 0; k < n; ++k) {
            frames.data[k] = rows.data[k] = -1;
            found[k] = frame_or_none(given.items[k]);
            if (!found[k].good) continue;
            rows.data[k] = found[k].rows;
            if (last == n || !alike(given.items[last], found[last], given.items[k], found[k]))
                last = known.try_emplace(kept(given.items[k], found[k]), k).first->second;
            frames.data[k] = static_cast<int64_t>(last);
        }
    }
    return nb::make_tuple(frames.object, rows.object);
}

}  // namespace pyparq
