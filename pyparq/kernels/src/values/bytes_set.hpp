// Byte strings to look others up in.
#pragma once
#include "base/common.hpp"

namespace pyparq {

class BytesSet {
  public:
    BytesSet(const Offsets& offsets, const RawIn& data);
    nb::object test(const Offsets& offsets, const RawIn& data, const Array<uint64_t, false, true>& within) const;

  private:
    struct Built;
    std::shared_ptr<const Built> built_;
};

}  // namespace pyparq
