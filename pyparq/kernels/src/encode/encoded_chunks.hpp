// The chunks of some columns of one row group, as Python has them.
#pragma once
#include "encode/given_chunk.hpp"

#include <nanobind/ndarray.h>

namespace pyparq {

// Chunks of one row group, one after another.
class EncodedChunks {
  public:
    // Encodes one more chunk for each job, without the GIL; `check()` raises where the work is not wanted any more. After an
    // exception, and after a Refusal, `at_fault` is the number of the chunk that it is about.
    nb::object encode(const nb::list& given, const nb::object& check) {
        std::vector<std::unique_ptr<GivenChunk>> jobs;
        at_fault_ = chunks_.size();
        for (const nb::handle job : given) {
            jobs.push_back(std::make_unique<GivenChunk>(job));
            ++at_fault_;
        }
        for (const auto& job : jobs) columns_.push_back(job->column_object);
        const Encoding encoding(*this);
        try {
            Unlocked unlocked(check);
            for (const auto& job : jobs) {
                at_fault_ = chunks_.size();
                unlocked.tick();
                FlatMemory memory;
                if (job->flat && !job->flatten(memory)) throw Refusal{Refusal::Misfit, 0, 0, 0};
                chunks_.push_back(encode_chunk(*job->column, job->leaf, job->seal, unlocked, bytes_));
            }
        } catch (const Refusal& refusal) {
            return nb::cast(refusal);
        }
        return nb::none();
    }

    size_t count() const { return chunks_.size(); }
    size_t at_fault() const { return at_fault_; }
    size_t size() const { return bytes_.size(); }

    // The bytes that were not taken yet, in arrays. While another thread is in encode(), only finished areas are
    // returned.
    nb::list take() {
        nb::list found;
        for (const ChunkBytes::Part& part : bytes_.take(!encoding_))
            found.append(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(part.area.data, {part.size}, owner_of(part.area, part.size)));
        return found;
    }
    void place(int64_t base) { base_ = base; }
    int64_t uncompressed() const {
        int64_t total = 0;
        for (const ChunkFacts& chunk : chunks_) total += chunk.uncompressed;
        return total;
    }

    nb::object column_index(size_t k) const {
        const auto& found = at(k).column_index;
        return found ? nb::object(python_bytes(*found)) : nb::object(nb::none());
    }
    nb::bytes offset_index(size_t k) const { return python_bytes(offset_index_of(at(k), base_)); }
    nb::bytes column_metadata(size_t k) const { return python_bytes(column_metadata_of(at(k), base_)); }
    nb::bytes column_chunk(size_t k, const nb::bytes& crypto, const nb::bytes& sealed, bool bare) const {
        const StoredMetadata stored{{crypto.c_str(), crypto.size()}, {sealed.c_str(), sealed.size()}, bare};
        return python_bytes(column_chunk_of(at(k), base_, stored));
    }
    void set_column_index(size_t k, const nb::bytes& stored) { at(k).column_index = std::string(stored.c_str(), stored.size()); }
    void set_offset_index(size_t k, const nb::bytes& stored) { at(k).sealed_offset_index = std::string(stored.c_str(), stored.size()); }

    // All ColumnIndexes one after another, which will stand at `position`.
    nb::bytes column_indexes(int64_t position) {
        std::string all;
        for (ChunkFacts& chunk : chunks_) {
            if (!chunk.column_index) continue;
            chunk.column_index_at = position + static_cast<int64_t>(all.size());
            chunk.column_index_size = static_cast<int64_t>(chunk.column_index->size());
            all += *chunk.column_index;
            chunk.column_index.reset();
        }
        return python_bytes(all);
    }
    nb::bytes offset_indexes(int64_t position) {
        std::string all;
        for (ChunkFacts& chunk : chunks_) {
            const std::string one = chunk.sealed_offset_index ? *chunk.sealed_offset_index : offset_index_of(chunk, base_);
            chunk.sealed_offset_index.reset();
            chunk.offset_index_at = position + static_cast<int64_t>(all.size());
            chunk.offset_index_size = static_cast<int64_t>(one.size());
            all += one;
        }
        return python_bytes(all);
    }
    // All ColumnChunks one after another, as the footer has them.
    nb::bytes column_chunks() const {
        std::string all;
        for (const ChunkFacts& chunk : chunks_) all += column_chunk_of(chunk, base_);
        return python_bytes(all);
    }
    void set_bloom(size_t k, int64_t position, int64_t size) { at(k).bloom_at = position, at(k).bloom_size = size; }

    // (encoding, stored bytes per value) where the chunk chose and had enough to choose from.
    nb::object choice(size_t k) const {
        const ChunkFacts& chunk = at(k);
        if (!chunk.chose || chunk.choice.sizes.empty()) return nb::none();
        return nb::make_tuple(chunk.choice.encoding, chunk.choice.size());
    }
    // Where each entry of its dictionary first occurs; None without one that has all values.
    nb::object first_places(size_t k) {
        ChunkFacts& chunk = at(k);
        if (!chunk.complete) return nb::none();
        Fresh<int64_t> out(chunk.first.size());
        std::copy(chunk.first.begin(), chunk.first.end(), out.data);
        return std::move(out.object);
    }

    // The entries that occur in a chunk that came as codes.
    nb::object used_entries(size_t k) const {
        const std::vector<int64_t>& used = at(k).used;
        Fresh<int64_t> out(used.size());
        std::copy(used.begin(), used.end(), out.data);
        return std::move(out.object);
    }

  private:
    // For as long as a thread is in encode(); made and ended with the GIL.
    struct Encoding {
        explicit Encoding(EncodedChunks& chunks) : chunks(chunks) { chunks.encoding_ = true; }
        Encoding(const Encoding&) = delete;
        Encoding& operator=(const Encoding&) = delete;
        ~Encoding() { chunks.encoding_ = false; }
        EncodedChunks& chunks;
    };

    ChunkFacts& at(size_t k) {
        if (k >= chunks_.size()) throw nb::index_error();
        return chunks_[k];
    }
    const ChunkFacts& at(size_t k) const { return const_cast<EncodedChunks*>(this)->at(k); }

    std::vector<nb::object> columns_;
    std::vector<ChunkFacts> chunks_;
    ChunkBytes bytes_;
    bool encoding_ = false;  // read and set with the GIL
    size_t at_fault_ = 0;
    int64_t base_ = 0;
};

}  // namespace pyparq
