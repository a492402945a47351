// Many ranges of an open file in one call: between two reads nothing waits for the interpreter. What the system has in
// memory is copied, about as fast as a thread can: so two are quicker than one.
#include "io/calls.hpp"
#include "base/workers.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <vector>

#ifdef PYPARQ_PREAD
#include <unistd.h>
#endif

namespace pyparq {

#ifdef PYPARQ_PREAD

namespace {

constexpr size_t kPiece = size_t{1} << 20;   // bytes that a thread reads at a time
constexpr size_t kShared = size_t{2} << 20;  // and from which on it takes more than one

struct Piece {
    off_t from;
    size_t at, size;  // in the output
};

// Reads a piece; returns how many bytes came before the file's end, and sets `error` where the system reports one.
size_t read_piece(int fd, const Piece& piece, uint8_t* out, std::atomic<int>& error) {
    size_t done = 0;
    while (done < piece.size) {
        const ssize_t got = pread(fd, out + piece.at + done, piece.size - done, piece.from + static_cast<off_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) error = errno;
        if (got <= 0) break;
        done += static_cast<size_t>(got);
    }
    return done;
}

}  // namespace

// Reads the ranges, one behind the other in `out`, on several threads where they are large; returns how many bytes came.
size_t pread_ranges(int fd, const In<int64_t>& offsets, const In<int64_t>& lengths, const RawOut& out, size_t threads) {
    if (offsets.size != lengths.size) fail("offsets and lengths differ in number");
    std::vector<Piece> pieces;
    size_t total = 0;
    for (size_t k = 0; k < lengths.size; ++k) {
        const size_t length = checked_count(lengths.data[k], "length");
        if (length > out.size - total || offsets.data[k] < 0) fail("ranges that do not fit");
        if (length > static_cast<size_t>(std::numeric_limits<int64_t>::max() - offsets.data[k])) fail("a range ends too far off");
        for (size_t at = 0; at < length; at += kPiece)
            pieces.push_back({static_cast<off_t>(offsets.data[k]) + static_cast<off_t>(at), total + at, std::min(kPiece, length - at)});
        total += length;
    }
    std::atomic<size_t> done{0};
    std::atomic<int> error{0};
    const auto read = [&](size_t k) {
        if (error == 0) done += read_piece(fd, pieces[k], out.data, error);
    };
    if (threads > 1 && total >= kShared) {
        run_parallel(pieces.size(), threads, read);
    } else {
        NoGil nogil(total);
        for (size_t k = 0; k < pieces.size(); ++k) read(k);
    }
    if (error > 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
    return done;
}

#endif

}  // namespace pyparq
