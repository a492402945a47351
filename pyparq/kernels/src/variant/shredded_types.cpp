#include "variant/shredded_types.hpp"

#include "base/common.hpp"

namespace pyparq::variant {

size_t arrow_width(int kind) {
    switch (kind) {
        case kTrue:
        case kInt8: return 1;
        case kInt16: return 2;
        case kInt32:
        case kDate:
        case kFloat: return 4;
        case kInt64:
        case kDouble:
        case kTimestamp:
        case kTimestampNtz:
        case kTime:
        case kTimestampNanos:
        case kTimestampNtzNanos: return 8;
        case kDecimal4:
        case kDecimal8:
        case kDecimal16:
        case kUuid: return 16;
        case kBinary:
        case kString: return 0;
        default: fail("no Variant is shredded to the type " + std::to_string(kind));
    }
}

std::string_view text_of(const nb::handle& text) {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) {
        clear_exception();
        fail("a string has a lone surrogate, so it cannot be stored as UTF-8");
    }
    return {data, static_cast<size_t>(size)};
}

}  // namespace pyparq::variant
