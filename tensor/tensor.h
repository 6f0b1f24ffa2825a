/* The n-d tensor: a strided view of a reference-counted, version-counted storage.
 *
 *     wg_tensor  --> storage (data, bytes, version)      several views share one storage
 *        |
 *        +---------> node that made it (autograd), when a gradient is wanted
 *
 * Up to 8 dimensions, 64-bit sizes; a size of 0 is allowed, rank 0 is a scalar.
 *
 * Ownership: every `wg_tensor *` returned belongs to the innermost open scope (see below). In the
 * contracts of this library, [scope; SHAPE, DTYPE] means: owned by the scope; NULL with one of
 * these errors. Every allocating function can also give MEMORY, and every function given a NULL
 * tensor returns NULL (or -1) and leaves the pending error alone. */
#ifndef WG_TENSOR_TENSOR_H
#define WG_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../base/api.h"
#include "dtype.h"
#include "../base/error.h"
#include "random.h"

WG_BEGIN_DECLS

#define WG_MAX_DIMS 8

typedef struct wg_tensor wg_tensor;

/* The dtype and shape of a tensor. */
typedef struct wg_spec {
    wg_dtype dtype;
    int ndim;                   /* -1: an absent optional operand */
    int64_t shape[WG_MAX_DIMS]; /* the first ndim entries */
} wg_spec;

/* ---- Scopes own tensors: nothing has to be freed one by one.
 *
 *     wg_scope step;
 *     wg_scope_begin(&step);
 *     wg_tensor *loss = forward(model, batch);   every intermediate belongs to `step`
 *     loss = wg_scope_end(&step, loss);          all are gone but loss, now owned one scope out
 *
 * Every function that returns a `wg_tensor *` returns a handle owned by the innermost open scope of
 * its thread. Each thread has a root scope, open from its first tensor to its end. ---- */

/* Lives on the caller's stack between begin and end; its members are the library's. */
typedef struct wg_scope {
    struct wg_scope *outer;
    wg_tensor *first;
} wg_scope;

/* Opens a scope on this thread. Cannot fail. */
WG_API void wg_scope_begin(wg_scope *scope);

/* Closes the innermost scope, which must be `scope`, and frees the handles that it owns, except
 * `result` (may be NULL), which moves to the next scope out and is returned. A result that some
 * other scope owns, or that was kept, is returned as it is. */
WG_API wg_tensor *wg_scope_end(wg_scope *scope, wg_tensor *result);

/* Moves a tensor to the scope one further out than the innermost: for a function with several
 * results. Returns the tensor; NULL gives NULL. */
WG_API wg_tensor *wg_scope_escape(wg_tensor *tensor);

/* Takes a tensor out of its scope: it lives until wg_release. Returns it; NULL gives NULL. */
WG_API wg_tensor *wg_keep(wg_tensor *tensor);

/* Frees a tensor that was kept. NULL is allowed. Any thread may call it. */
WG_API void wg_release(wg_tensor *tensor);

/* Turns checks of lifetimes on or off, in the whole process; returns the previous setting.
 * WENGERT_CHECK=1 in the environment turns them on from the start. Then these mistakes, which
 * otherwise go unnoticed until memory is damaged, are errors [STATE]: using, keeping or returning a
 * freed tensor; releasing a tensor twice, or one that a scope owns; ending scopes in the wrong
 * order; freeing a root module twice. The handles of the last 65,536 freed tensors are kept for
 * this. Turn the checks on before the first scope is open, while no other thread uses tensors. */
WG_API bool wg_set_lifetime_checks(bool on);

/* Frees what this thread's root scope owns (tensors made while no other scope was open). Returns
 * how many there were: 0 means that every tensor had another owner. */
WG_API int64_t wg_scope_clear_root(void);

/* The number of handles alive in the process, including kept handles and handles of graphs. */
WG_API int64_t wg_tensors_alive(void);

/* ---- Properties of a tensor. NULL gives 0, WG_F32 or NULL. ---- */

/* The dtype of its elements, and the number of its axes. */
WG_API wg_dtype wg_tensor_dtype(const wg_tensor *x);
WG_API int wg_tensor_ndim(const wg_tensor *x);

/* The sizes, ndim of them; borrowed from the tensor. */
WG_API const int64_t *wg_tensor_shape(const wg_tensor *x);

/* The distance between neighbours along each dimension, in elements; borrowed. */
WG_API const int64_t *wg_tensor_strides(const wg_tensor *x);

/* The size of a dimension; a negative index counts from the end. -1 with INDEX if there is none. */
WG_API int64_t wg_tensor_size(const wg_tensor *x, int dimension);

/* The number of elements: the product of the sizes, 1 for a scalar. */
WG_API int64_t wg_tensor_count(const wg_tensor *x);

/* True when the elements are contiguous in row-major order. */
WG_API bool wg_tensor_is_contiguous(const wg_tensor *x);

/* ---- Reading and writing elements ---- */

/* The address of the first element; borrowed. Elements follow wg_tensor_strides. After writing
 * through it, call wg_tensor_touch. */
WG_API void *wg_tensor_data(const wg_tensor *x);

/* Records a write through wg_tensor_data, so that backward refuses values that were saved before
 * it. */
WG_API void wg_tensor_touch(wg_tensor *x);

/* The only element of a one-element tensor as a double. NaN with SHAPE if there are more or none.
 */
WG_API double wg_item(const wg_tensor *x);

/* The element at `index` (one entry a dimension; negative ones count from the end) as a double; i64
 * beyond 2^53 loses bits. NaN with INDEX if it is out of range. */
WG_API double wg_at(const wg_tensor *x, const int64_t *index);

/* Copies all elements, in row-major order, into `out`, which holds wg_tensor_count elements of the
 * tensor's dtype, and may lie in the memory of x. -1 with nothing done if x is NULL. */
WG_API int wg_to_array(const wg_tensor *x, void *out);

/* ---- Making tensors: see ops.h for the operations on them. shape has ndim entries. ---- */

/* Uninitialised elements. [scope; SHAPE] */
WG_API wg_tensor *wg_empty(wg_dtype dtype, int ndim, const int64_t *shape);

/* While on, this thread makes module parameters, module buffers and tables of positions without
 * memory: they have shape, dtype and paths, and nothing else (PyTorch's "meta" device). A model of
 * any size is then made in milliseconds, to ask for the names and shapes of its weights. In the
 * mode, filling a tensor without memory (wg_initialize, wg_fill_, wg_copy_) does nothing. Other
 * functions that need its elements fail with STATE; so does filling it once the mode is off.
 * Returns the previous setting; a thread begins with false. */
WG_API bool wg_set_meta_init(bool on);

/* Every element 0, 1 or `value` (converted as a C cast does, clamped to an integer dtype's range).
 * [scope; SHAPE] */
WG_API wg_tensor *wg_zeros(wg_dtype dtype, int ndim, const int64_t *shape);
WG_API wg_tensor *wg_ones(wg_dtype dtype, int ndim, const int64_t *shape);
WG_API wg_tensor *wg_full(wg_dtype dtype, int ndim, const int64_t *shape, double value);

/* Zeros, ones, another value or uninitialised elements with the shape and dtype of x. [scope] */
WG_API wg_tensor *wg_zeros_like(const wg_tensor *x);
WG_API wg_tensor *wg_ones_like(const wg_tensor *x);
WG_API wg_tensor *wg_full_like(const wg_tensor *x, double value);
WG_API wg_tensor *wg_empty_like(const wg_tensor *x);

/* A rank-0 tensor. [scope] */
WG_API wg_tensor *wg_scalar(wg_dtype dtype, double value);

/* A copy of a row-major C array of that dtype. `data` may be NULL if the shape has no elements.
 *
 * A macro below checks the array: where `dtype` is a constant, an array of another C type does not
 * compile, so that doubles are never read as f32. Pointers to void, to char and to types that no
 * dtype has are taken as they are. A shape that is a compound literal wants WG_DIMS, or parentheses
 * around it. (wg_from_array)(...) is the function without the check. [scope; SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_from_array(wg_dtype dtype, int ndim, const int64_t *shape, const void *data);

#ifdef __cplusplus
extern "C++" {
/* Whether the C++ type T, or the element type of an array T with several axes, has a dtype. */
template <typename T> struct wg_element {
    static constexpr bool is_of(wg_dtype) {
        return true;
    }
};
template <typename T, size_t N> struct wg_element<T[N]> : wg_element<T> {};
#define WG_ELEMENT(TYPE, ...)                                                                      \
    template <> struct wg_element<TYPE> {                                                          \
        static constexpr bool is_of(wg_dtype dtype) {                                              \
            return __VA_ARGS__;                                                                    \
        }                                                                                          \
    };
WG_ELEMENT(float, dtype == WG_F32)
WG_ELEMENT(double, dtype == WG_F64)
WG_ELEMENT(int, dtype == WG_I32)
WG_ELEMENT(long, dtype == (sizeof(long) == 8 ? WG_I64 : WG_I32))
WG_ELEMENT(long long, dtype == WG_I64)
WG_ELEMENT(unsigned short, dtype == WG_BF16)
WG_ELEMENT(unsigned char, dtype == WG_U8 || dtype == WG_BOOL)
WG_ELEMENT(bool, dtype == WG_BOOL || dtype == WG_U8)
#undef WG_ELEMENT

/* The element type of an array, for WG_CHECK_ARRAY; declared, never defined. */
template <typename T> wg_element<T> wg_element_of(const T *);
wg_element<void> wg_element_of(decltype(nullptr));

template <bool> struct wg_array_of_another_dtype;
template <> struct wg_array_of_another_dtype<true> {};
}

#define WG_CHECK_ARRAY(DTYPE, DATA)                                                                \
    sizeof(wg_array_of_another_dtype<(!__builtin_constant_p(DTYPE) ||                              \
                                      decltype(wg_element_of(DATA))::is_of(DTYPE))>)
#else
/* The size of a type that is not complete is an error, which names the type. (In a _Static_assert,
 * clang takes a compound literal for one outside of functions, which must be constant.) */
struct wg_array_of_another_dtype;

#define WG_ARRAY_OF(TYPE, CHECK) TYPE * : (CHECK), const TYPE * : (CHECK)
#define WG_CHECK_ARRAY(DTYPE, DATA)                                                                \
    sizeof(*__builtin_choose_expr(                                                                 \
        __builtin_choose_expr(                                                                     \
            __builtin_constant_p(DTYPE),                                                           \
            _Generic((DATA), WG_ARRAY_OF(float, (DTYPE) == WG_F32),                                \
                     WG_ARRAY_OF(double, (DTYPE) == WG_F64), WG_ARRAY_OF(int, (DTYPE) == WG_I32),  \
                     WG_ARRAY_OF(long, (DTYPE) == (sizeof(long) == 8 ? WG_I64 : WG_I32)),          \
                     WG_ARRAY_OF(long long, (DTYPE) == WG_I64),                                    \
                     WG_ARRAY_OF(unsigned short, (DTYPE) == WG_BF16),                              \
                     WG_ARRAY_OF(unsigned char, (DTYPE) == WG_U8 || (DTYPE) == WG_BOOL),           \
                     WG_ARRAY_OF(_Bool, (DTYPE) == WG_BOOL || (DTYPE) == WG_U8), default : 1),     \
            1),                                                                                    \
        (const char *)0, (const struct wg_array_of_another_dtype *)0))
#endif

/* The arguments are expanded before they are counted: WG_DIMS is two of them. Everything after the
 * shape is `data`, which may contain commas. */
#define wg_from_array(...) WG_FROM_ARRAY(__VA_ARGS__)
#define WG_FROM_ARRAY(DTYPE, NDIM, SHAPE, ...)                                                     \
    ((void)WG_CHECK_ARRAY(DTYPE, (__VA_ARGS__)), (wg_from_array)(DTYPE, NDIM, SHAPE, __VA_ARGS__))

/* A tensor on the caller's memory, without a copy: PyTorch's from_blob. `data` is the address of
 * the first element, aligned for the dtype. `strides` are in elements and may be 0 or negative;
 * NULL: row-major. `release`, unless NULL, is called with `context` when the last tensor and the
 * last graph that uses the memory is freed, on the thread that frees it; after an error it is not
 * called. After writing to the memory, call wg_tensor_touch. [scope; SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_from_blob(wg_dtype dtype, int ndim, const int64_t *shape,
                               const int64_t *strides, void *data, void (*release)(void *context),
                               void *context);

/* start, start + step, ... up to, not including, stop: [ceil((stop - start) / step)].
 * [scope; ARGUMENT for a step of 0 or of the wrong sign] */
WG_API wg_tensor *wg_arange(wg_dtype dtype, double start, double stop, double step);

/* `count` numbers at equal distances from start to stop, both included: [count]. Integers are
 * rounded down, as in NumPy. [scope; ARGUMENT for a negative count] */
WG_API wg_tensor *wg_linspace(wg_dtype dtype, double start, double stop, int64_t count);

/* base to the power of each of linspace(start, stop, count). Integers are truncated.
 * [scope; ARGUMENT for a negative count] */
WG_API wg_tensor *wg_logspace(wg_dtype dtype, double start, double stop, int64_t count,
                              double base);

/* Zeros with ones on the main diagonal: [rows, columns]. [scope; SHAPE] */
WG_API wg_tensor *wg_eye(wg_dtype dtype, int64_t rows, int64_t columns);

/* Ones on and below the diagonal `diagonal` (0: the main one, 1: the one above it), zeros above:
 * [rows, columns]. [scope; SHAPE] */
WG_API wg_tensor *wg_tri(wg_dtype dtype, int64_t rows, int64_t columns, int64_t diagonal);

/* Uniform in [0, 1), of a floating dtype. Consumes one draw; NULL is the default generator.
 * [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_rand(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape);

/* Standard normal (Box-Muller), of a floating dtype. Consumes one draw. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_randn(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape);

/* The same two with the shape and dtype of x. [scope; DTYPE] */
WG_API wg_tensor *wg_rand_like(wg_generator *generator, const wg_tensor *x);
WG_API wg_tensor *wg_randn_like(wg_generator *generator, const wg_tensor *x);

/* Normal with a mean and a standard deviation, of a floating dtype. Consumes one draw.
 * [scope; SHAPE, DTYPE, ARGUMENT for a negative or infinite deviation] */
WG_API wg_tensor *wg_normal(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape,
                            double mean, double std);

/* The normal distribution truncated to [low, high], exact in the tails, too. A limit may be
 * infinite. Consumes one draw. [scope; SHAPE, DTYPE, ARGUMENT unless std > 0 and low < high] */
WG_API wg_tensor *wg_trunc_normal(wg_generator *generator, wg_dtype dtype, int ndim,
                                  const int64_t *shape, double mean, double std, double low,
                                  double high);

/* 1 with probability p, else 0, for each element of p, in its floating dtype. Consumes one draw.
 * [scope; DTYPE, ARGUMENT outside 0 <= p <= 1] */
WG_API wg_tensor *wg_bernoulli(wg_generator *generator, const wg_tensor *p);

/* Categories drawn by weights that need not sum to 1.   weights: (..., V) floating   ->
 * (..., samples) i64. Without replacement the samples of a row are distinct, in the order
 * of drawing. A category of weight 0 is never drawn. Consumes one draw. [scope; SHAPE, DTYPE,
 * ARGUMENT for weights that are negative or not finite, for rows that sum to 0, for fewer than 1
 * sample, and, without replacement, for more samples than weights above 0] */
WG_API wg_tensor *wg_multinomial(wg_generator *generator, const wg_tensor *weights, int64_t samples,
                                 bool replacement);

/* Integers uniform in [low, high), dtype i64. Consumes one draw. [scope; SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_randint(wg_generator *generator, int64_t low, int64_t high, int ndim,
                             const int64_t *shape);

/* A random permutation of 0..n-1, i64 [n] (Fisher-Yates). Consumes one draw. [scope; ARGUMENT] */
WG_API wg_tensor *wg_randperm(wg_generator *generator, int64_t n);

/* A second handle on the same storage and the same place in the graph. [scope] */
WG_API wg_tensor *wg_alias(wg_tensor *x);

/* ---- Writing in place: only what optimizers, initialisers and fills need. The version counter
 * moves; GRADIENT if x belongs to a recorded graph or is a leaf that requires a gradient while
 * recording is on.
 *
 * The source may overlap x, as x[:-1] overlaps x[1:] and as the transpose of x does: the result is
 * the same as for a clone of the source ([MEMORY] if there is no memory for the clone). ARGUMENT if
 * two elements of x share an address, as in an expanded view and in windows that overlap. ---- */

/* Sets all elements to a value, cast to the dtype of x. 0, or -1 with [ARGUMENT, GRADIENT] */
WG_API int wg_fill_(wg_tensor *x, double value);

/* Copies src, broadcast to the shape of x and cast to its dtype; src may overlap x.
 * [SHAPE, ARGUMENT, GRADIENT] */
WG_API int wg_copy_(wg_tensor *x, const wg_tensor *src);

/* x += alpha * y, with y of the same shape and dtype, which may overlap x.
 * [SHAPE, DTYPE, ARGUMENT, GRADIENT] */
WG_API int wg_add_(wg_tensor *x, const wg_tensor *y, double alpha);

/* x *= alpha, of a floating dtype. [DTYPE, ARGUMENT, GRADIENT] */
WG_API int wg_scale_(wg_tensor *x, double alpha);

/* ---- Printing, as NumPy prints ---- */

/* Writes the tensor to a stream and ends the line: nested brackets, columns aligned, at most 8
 * places after the point, the middle left out beyond 1000 elements, bf16 as f32. -1
 * with IO if the stream refuses. */
WG_API int wg_print(FILE *stream, const wg_tensor *x);

/* The same text in a buffer, without the line end. Returns the length that the whole text has, as
 * snprintf does. */
WG_API int64_t wg_format(char *buffer, size_t size, const wg_tensor *x);

/* "(2, 3) f32" and so on, for messages. Returns `buffer`. */
WG_API const char *wg_spec_text(char *buffer, size_t size, const wg_spec *spec);

WG_END_DECLS

#endif
