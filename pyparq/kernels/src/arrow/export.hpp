// Arrays of Arrow's C data interface over memory that other objects own too.
#pragma once
#include "arrow/c_data.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace pyparq {

// Objects that an array keeps alive: its buffers' owners, and its children until a consumer takes them over.
class ArrayParts {
  public:
    // `data` may be null. The owner is a shared one, or an object of Python's.
    void add(const void* data, std::shared_ptr<const void> owner);
    void add(const void* data, const nb::object& owner);

    std::vector<ArrowArray> children;
    std::unique_ptr<ArrowArray> dictionary;

    // The array, which owns all of this.
    static ArrowArray finish(std::unique_ptr<ArrayParts> parts, int64_t length, int64_t nulls, int64_t offset);

    ArrayParts() = default;
    ArrayParts(const ArrayParts&) = delete;
    ArrayParts& operator=(const ArrayParts&) = delete;
    ~ArrayParts();

  private:
    static constexpr size_t kFew = 3;

    size_t count_ = 0;
    std::array<const void*, kFew> few_{};
    std::vector<const void*> many_;  // all of them, where there are more
    std::array<std::shared_ptr<const void>, kFew> shared_;
    size_t shared_count_ = 0;
    std::vector<PyObject*> objects_;
    std::vector<ArrowArray*> child_places_;
    void place(const void* data);
};

struct SchemaNode;

// A field and all below it, in the form that is given away: as often as it is asked for.
struct ArrowField {
    std::shared_ptr<const SchemaNode> root;

    explicit ArrowField(const nb::object& field);
    nb::object capsule() const;
};

}  // namespace pyparq
