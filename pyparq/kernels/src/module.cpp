// The extension module pyparq.kernels._native: registers the error and every group of kernels.
#include "base/common.hpp"

namespace pyparq {
namespace {

struct Numpy {
    nb::object empty;
    nb::object boolean, u1, u4, u8, i1, i2, i4, i8, u2, f4, f8;
};

// Never freed: the interpreter may be gone before static destructors run.
Numpy* numpy = nullptr;

Numpy* load_numpy() {
    nb::module_ np = nb::module_::import_("numpy");
    nb::object dtype = np.attr("dtype");
    auto* n = new Numpy;
    n->empty = np.attr("empty");
    n->boolean = dtype("?");
    n->u1 = dtype("u1"), n->u2 = dtype("u2"), n->u4 = dtype("u4"), n->u8 = dtype("u8");
    n->i1 = dtype("i1"), n->i2 = dtype("i2"), n->i4 = dtype("i4"), n->i8 = dtype("i8");
    n->f4 = dtype("f4"), n->f8 = dtype("f8");
    return n;
}

const nb::object& dtype_of(char kind, size_t itemsize) {
    switch (kind) {
        case 'b': return numpy->boolean;
        case 'f': return itemsize == 4 ? numpy->f4 : numpy->f8;
        case 'i':
            return itemsize == 1 ? numpy->i1 : itemsize == 2 ? numpy->i2
                                           : itemsize == 4   ? numpy->i4
                                                             : numpy->i8;
        default:
            return itemsize == 1 ? numpy->u1 : itemsize == 2 ? numpy->u2
                                           : itemsize == 4   ? numpy->u4
                                                             : numpy->u8;
    }
}

}  // namespace

nb::object numpy_empty(size_t n, char kind, size_t itemsize) {
    if (n > static_cast<size_t>(PY_SSIZE_T_MAX) / itemsize) fail("result too large: " + str(n) + " items");
    return numpy->empty(n, dtype_of(kind, itemsize));
}

nb::object first_items(nb::object array, size_t have, size_t n) {
    if (n == have) return array;
    nb::object part = array[nb::slice(nb::int_(0), nb::int_(n), nb::int_(1))];
    return n < have / 2 ? nb::object(part.attr("copy")()) : part;
}

}  // namespace pyparq

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of pyparq: buffers in, buffers out, nothing else";
    // Other code in the process may never release objects that it can reach (pyarrow's key tools). nanobind would blame
    // these kernels at exit, in thirty lines.
    nb::set_leak_warnings(false);
    nb::exception<pyparq::KernelError>(m, "KernelError", PyExc_ValueError);
    pyparq::numpy = pyparq::load_numpy();
    pyparq::have_avx2();  // now, not first in a thread without the GIL, which a fork may leave behind half way
    m.def_submodule("probes", "What only the tests call.");
    bind_arrow_export(m);
    bind_arrow_import(m);
    bind_arrow_schema(m);
    bind_arrow_stream(m);
    bind_decoded_column(m);
    bind_engine(m);
    bind_engine_chunks(m);
    bind_rle(m);
    bind_fixed(m);
    bind_binary(m);
    bind_bounds(m);
    bind_chunk_bounds(m);
    bind_codecs(m);
    bind_codes(m);
    bind_dictionary(m);
    bind_many_filters(m);
    bind_many_footers(m);
    bind_many_ranges(m);
    bind_mask_bits(m);
    bind_mask_keep(m);
    bind_memory(m);
    bind_mask_match(m);
    bind_minmax(m);
    bind_hash(m);
    bind_delta(m);
    bind_split(m);
    bind_levels(m);
    bind_number_text(m);
    bind_page_index(m);
    bind_page_reader(m);
    bind_pread(m);
    bind_writeback(m);
    bind_seal(m);
    bind_crc(m);
    bind_thrift_footer(m);
    bind_thrift_rules(m);
    bind_thrift_split(m);
    bind_view_layout(m);
    bind_variant(m);
    bind_views(m);
    bind_write(m);
    bind_workers(m);
}
