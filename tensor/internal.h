/* Internal declarations of tensor/: the structs of tensors, arithmetic on shapes, handles, strided
 * loops, and the tables of functions that autograd installs. */
#ifndef WG_TENSOR_INTERNAL_H
#define WG_TENSOR_INTERNAL_H

#include <stdatomic.h>

#include "base/internal.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tensor/profile.h"

typedef struct wg_storage {
    void *data; /* NULL: a tensor without memory (wg_set_meta_init) */
    size_t bytes;
    atomic_int refcount;
    atomic_uint_fast64_t version;

    /* Frees the caller's memory (wg_from_blob); NULL for the library's memory. */
    void (*release)(void *context);
    void *context;
} wg_storage;

typedef struct wg_node wg_node;       /* autograd/internal.h */
typedef struct wg_tangent wg_tangent; /* autograd/forward.c */

/* A handle. Its one owner is a scope (which lists it), a caller of wg_keep, a module, or a node of
 * a graph. Storage and node are shared and reference-counted. */
struct wg_tensor {
    wg_storage *storage;
    int64_t offset;             /* of the first element, in elements */
    wg_scope *scope;            /* NULL: kept */
    wg_tensor *previous, *next; /* in the scope's list */
    wg_node *node;              /* of the op that made it, or a leaf's; NULL: needs no gradient */
    wg_tangent *tangents;       /* of forward mode, highest level first; nearly always NULL */
    int output_index;           /* which output of the node it is */
    /* A cache line ends here; the next two hold all but the last axis. */
    wg_spec spec;
    int64_t strides[WG_MAX_DIMS]; /* in elements */
};

/* ---- Arithmetic on shapes ---- */

/* Fills a spec. -1 with SHAPE for a bad rank, a negative size, or a product beyond 2^62 bytes. */
int wg__spec_make(wg_spec *spec, wg_dtype dtype, int ndim, const int64_t *shape, const char *where);

static inline int64_t wg__spec_count(const wg_spec *spec) {
    int64_t count = 1;
    for (int i = 0; i < spec->ndim; i++)
        count *= spec->shape[i];
    return count;
}

static inline bool wg__same_shape(const wg_spec *a, const wg_spec *b) {
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* Row-major strides, in elements. */
void wg__contiguous_strides(const wg_spec *spec, int64_t *strides);

/* The NumPy broadcast of two shapes into out->ndim and out->shape; false if they do not fit. */
bool wg__broadcast(const wg_spec *a, const wg_spec *b, wg_spec *out);

/* The strides under which `x` is read as if it had the (broadcast) shape `to`; false if x does not
 * broadcast to it. */
bool wg__broadcast_strides(const wg_tensor *x, const wg_spec *to, int64_t *strides);

/* An axis in 0..ndim-1 from one that may be negative; -1 with INDEX. */
int wg__axis(int64_t axis, int ndim, const char *where);

/* A bit mask of axes (0, NULL: all of them); -1 with INDEX for one out of range or given twice. */
int64_t wg__axis_mask(int count, const int64_t *axes, int ndim, const char *where);

/* The shape left when the axes of the mask are reduced. */
void wg__reduced_spec(const wg_spec *x, int64_t axis_mask, bool keepdim, wg_spec *out);

/* ---- Handles ---- */

/* A contiguous tensor of uninitialised elements in the innermost scope; without memory if `is_meta`
 * (wg_set_meta_init). wg__tensor_new makes one with memory. */
wg_tensor *wg__tensor_make(const wg_spec *spec, bool is_meta);
wg_tensor *wg__tensor_new(const wg_spec *spec);

/* Whether wg_set_meta_init is on for this thread. */
extern WG__THREAD_LOCAL bool wg__meta_init;

static inline bool wg__tensor_is_meta(const wg_tensor *x) {
    return !x->storage->data;
}

/* Whether wg_set_lifetime_checks is on. */
extern bool wg__checks_lifetimes;

/* Frees memory after 65,536 more calls, or when checking is turned off. */
void wg__free_later(void *memory);

/* -1 with STATE if x has no memory or was freed; for functions that read elements outside of an op.
 */
int wg__check_memory(const wg_tensor *x, const char *where);

/* A handle in the innermost scope on `base`'s storage, with no node. View ops are made of it. */
wg_tensor *wg__tensor_view(const wg_tensor *base, const wg_spec *spec, const int64_t *strides,
                           int64_t offset);

/* A handle on x's storage that no scope owns, carrying x's node and tangents or (bare) none. Freed
 * by wg_release. */
wg_tensor *wg__tensor_reference(const wg_tensor *x, bool bare);

/* True when this handle is the only one on its storage and the memory is the library's, so that the
 * memory may be reused. */
bool wg__tensor_is_sole(const wg_tensor *x);

/* Element address arithmetic for kernels: the first element, typed by the caller. */
static inline void *wg__tensor_address(const wg_tensor *x) {
    return (char *)x->storage->data + x->offset * (int64_t)wg_dtype_size(x->spec.dtype);
}

/* Checks x before a write in place: -1 with GRADIENT if the write would break a recorded graph
 * (tensor.h), with ARGUMENT if elements of x share an address, with STATE if x has no memory and
 * wg_set_meta_init is off. */
int wg__check_writable(const wg_tensor *x, const char *where);

/* -1 with ARGUMENT if two elements of x share an address. */
int wg__check_apart(const wg_tensor *x, const char *where);

/* ---- Small questions ---- */

/* True when two tensors share their storage. */
bool wg__tensor_shares_storage(const wg_tensor *a, const wg_tensor *b);

/* How often the storage has been written in place; saved tensors are checked against it. */
uint64_t wg__tensor_version(const wg_tensor *x);

/* The common dtype of two operands, as PyTorch promotes tensors: the higher one in bool < u8 < i32
 * < i64 < bf16 < f32 < f64. */
wg_dtype wg__dtype_promote(wg_dtype a, wg_dtype b);

/* Element `index` of draw `offset` under `seed`: 32 random bits. Pure. */
uint32_t wg__random_bits(uint64_t seed, uint64_t offset, uint64_t index);

/* Numbers of the gamma distributions of these concentrations and rate 1, elements first to first +
 * n of draw `offset` under `seed`. n is at most WG__GAMMAS_AT_ONCE, and `first` is a multiple of
 * it. NaN for a concentration that is not above 0. Pure. */
#define WG__GAMMAS_AT_ONCE 128
void wg__random_gammas(uint64_t seed, uint64_t offset, int64_t first, int64_t n,
                       const double *concentration, double *x);

/* ---- Reading, writing and converting elements (convert.c) ---- */

/* The element at that address as a double. */
double wg__element(wg_dtype dtype, const void *address);

/* Writes a double there, by the rules of wg_cast. */
void wg__set_element(wg_dtype dtype, void *address, double value);

/* Copies every element of src, broadcast to the shape of dst and cast to its dtype by the rules of
 * wg_cast. The caller has checked the shapes. */
void wg__convert(wg_tensor *dst, const wg_tensor *src);

/* A contiguous copy in the innermost scope, not recorded. [MEMORY] */
wg_tensor *wg__copy_of(const wg_tensor *x);

/* ---- Strided loops (iter.c) ---- */

#define WG__MAX_OPERANDS 6

/* An inner loop over n elements: operand i starts at data[i] and steps by strides[i] BYTES (0 for a
 * broadcast one). */
typedef void (*wg__loop)(int64_t n, char *const *data, const int64_t *strides, const void *context);

/* The same over `rows` rows of n elements of `size` bytes. Rows are row_strides bytes apart. */
typedef void (*wg__plane_loop)(int64_t size, int64_t rows, int64_t n, char *const *data,
                               const int64_t *row_strides, const int64_t *strides);

/* Runs `loop` over all elements of operands[0], the output; the inputs, operands[1..], are
 * broadcast to its shape. Axes are merged and ordered so that the inner loop is long and, where
 * possible, contiguous in the output. */
void wg__iterate(int operand_count, wg_tensor *const *operands, wg__loop loop, const void *context);

/* The same, and `plane` on whole rows where an inner loop is short (64 elements at most). */
void wg__iterate_planes(int operand_count, wg_tensor *const *operands, wg__loop loop,
                        wg__plane_loop plane, const void *context);

/* ---- Whether tensors share memory, for writes in place (overlap.c) ----
 *
 *     x[0:5]   |0|1|2|3|4| |      x[1:6] += x[0:5] would read elements that it has written:
 *     x[1:6]   | |1|2|3|4|5|      the source is copied first
 *
 *     x        |1|                expand(x, 5) *= 2 would write one element five times:
 *     expand   |1| 5 times        a target like this is refused
 *
 * A search of bounded length finds the answers. They are exact for the layouts that ops make. A
 * layout of wg_from_blob counts as overlapping if the search reaches its bound. */

typedef enum wg__overlap {
    WG__OVERLAP_NONE,   /* no byte belongs to both */
    WG__OVERLAP_SAME,   /* element i of x is element i of y */
    WG__OVERLAP_PARTIAL /* anything else */
} wg__overlap;

/* How the elements of x and y overlap. Tensors of different storages can overlap only if the caller
 * owns the memory of x or y (wg_from_blob). */
wg__overlap wg__overlap_of(const wg_tensor *x, const wg_tensor *y);

/* True if two elements of x share an address. */
bool wg__overlaps_itself(const wg_tensor *x);

/* ---- Tables of functions that autograd installs: tensor/ calls them without including autograd's
 * headers. NULL until they are installed. ---- */

/* Recorded graphs; installed with the first leaf. */
typedef struct wg__autograd_hooks {
    int (*record)(const wg_call *call); /* gives the outputs of this call their node */
    void (*retain)(wg_node *node);
    void (*release)(wg_node *node);
    const wg_op *(*op_of)(const wg_node *node); /* NULL: a leaf */
} wg__autograd_hooks;

extern _Atomic(const wg__autograd_hooks *) wg__autograd;

/* Forward mode; installed by the first wg_jvp. */
typedef struct wg__forward_hooks {
    int (*run_dual)(wg_call *call); /* runs a call with inputs that carry tangents */
    wg_tangent *(*share)(wg_tangent *tangents);
    void (*release)(wg_tangent *tangents);
    wg_tangent *(*highest)(const wg_tensor *x); /* NULL: no tangent of a level that still runs */
    /* Gives y, a detached view, the samples of the tensor with these tangents. 0 or -1 */
    int (*detach_samples)(wg_tensor *y, const wg_tangent *tangents);
} wg__forward_hooks;

extern _Atomic(const wg__forward_hooks *) wg__forward;

/* Anomaly mode; installed when it is first turned on. -1 if a call made a NaN. */
extern int (*_Atomic wg__anomaly_check)(const wg_call *call);

/* True while the ops that run on this thread are checked for NaN. */
extern WG__THREAD_LOCAL bool wg__checks_anomalies;

/* ---- For ops ---- */

/* wg_fail for an op: "OP: OPERANDS: format...". Returns -1. */
int wg__op_fail(const wg_call *call, wg_error_code code, const char *format, ...)
    WG_PRINTF(3, 4) WG_COLD;

/* "(6, 7) f32 x (8, 8) f32", cut off where it does not fit. Returns buffer. */
const char *wg__operands_text(char *buffer, size_t size, int count, const wg_spec *specs);

/* The ops of a file; ops/registry.h lists these tables. */
typedef struct wg__op_table {
    const wg_op *const *ops;
    int count;
} wg__op_table;

/* A vector of channels, (C), in the shape that broadcasts along axis 1 of x: (1, C, 1...). [scope]
 */
wg_tensor *wg__as_channels(wg_tensor *vector, const wg_tensor *x);

/* ---- Of tensor/kernels.h ---- */

/* The kernels that the library has chosen for this processor. Cannot fail. */
WG__COMMAND wg_kernels wg__kernels_in_use(void);

/* ---- Of tensor/ops.h ---- */

/* The dtype that wg_set_matmul_dtype has set for this thread. */
wg_dtype wg__matmul_dtype(void);

/* wg_quantized_linear with `count` weights, 1 to WG_MAX_QUANTIZED_WEIGHTS; their outputs are
 * concatenated: (..., O1 + O2 + O3). If x has a single row, this is faster than a call for each
 * weight. `biases` is NULL if there are none, and so is each missing bias.
 * [scope; SHAPE, DTYPE, ARGUMENT] */
wg_tensor *wg__quantized_linears(wg_tensor *x, int count, wg_tensor *const *weights,
                                 wg_quantization quantization, wg_tensor *const *biases);

/* ---- Of tensor/profile.h ---- */

/* Floating-point operations, two a multiply-add, of the f32 and f64 matrix products that this
 * thread has requested so far. As papers count, attention counts all queries by all keys, masked or
 * not; backward counts twice as much as forward, and a forward pass that backward repeats does not
 * count. */
WG__COMMAND double wg__counted_product_flops(void);

/* "forward", "backward" or "region". */
WG__COMMAND const char *wg__profile_kind_name(wg_profile_kind kind);

/* Ends the profile, if one is being taken, and frees its rows and events. */
WG__COMMAND void wg__profile_free(void);

/* The rows after the end, most seconds first; borrowed. Sets their number and, unless NULL, the
 * seconds from begin to end. */
WG__COMMAND const wg_profile_row *wg__profile_rows(int *count, double *seconds);

/* The events in the order of their ends; borrowed, NULL if none were wanted. Sets their number and,
 * unless NULL, how many more did not fit. */
WG__COMMAND const wg_profile_event *wg__profile_events(int64_t *count, int64_t *lost);

#endif
