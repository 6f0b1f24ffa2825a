/* Checks of ops on their samples and on variants of the samples, and libraries of ops. gradcheck.h
 * explains the mathematics. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"
#include "gradcheck/internal.h"

/* The check of an op ends after so many failed samples. The best explained failure is reported. */
enum { MAX_FAILURES = 4 };

typedef struct op_check {
    const wg_op *op;
    wg_gradcheck_options options; /* with defaults */
    wg_gradcheck_report *report;  /* totals, and the worst or the best explained failure */
    int failures;
    double merit; /* of the failure in the report */
    bool nonzero; /* some gradient was not zero */
} op_check;

static int apply_sample(int input_count, wg_tensor *const *inputs, int output_count,
                        wg_tensor **outputs, void *context) {
    (void)output_count;
    const wg__sampled_op *sampled = context;
    return wg_apply(sampled->op, input_count, inputs, sampled->options, outputs);
}

/* The explained failure of the sample with the most coordinates has the highest merit. */
static double merit(const wg_gradcheck_report *r) {
    switch (r->diagnosis) {
    case WG_DIAGNOSIS_WRONG:
    case WG_DIAGNOSIS_LOCAL:
    case WG_DIAGNOSIS_FAILED:
    case WG_DIAGNOSIS_JUMP:
        return (double)r->compared;
    default:
        return 1e12 + (double)r->compared;
    }
}

/* Keeps the worst report that passed, or else the failure that is explained best. */
static void merge(op_check *o, const wg_gradcheck_report *one) {
    const wg_gradcheck_report *all = o->report;
    bool better =
        one->passed ? all->passed && (all->compared == 0 || one->largest_error > all->largest_error)
                    : all->passed || merit(one) > o->merit;
    if (better && !one->passed)
        o->merit = merit(one);
    wg__gradcheck_merge(o->report, one, better);
}

/* Casts floating inputs to the checked dtype, and sets requires_grad if the op is differentiable in
 * them. */
static void make_leaves(const op_check *o, wg_sample *sample) {
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x)
            continue;
        if (o->options.f32 && wg_tensor_dtype(x) == WG_F64)
            x = wg_cast(x, WG_F32);
        wg_dtype checked = o->options.f32 ? WG_F32 : WG_F64;
        x = wg_detach(x);
        if (o->op->differentiable >> i & 1 && wg_tensor_dtype(x) == checked)
            wg_set_requires_grad(x, true);
        sample->inputs[i] = x;
    }
}

/* The kinds of variants. */
typedef enum kind { SAMPLE, SHAPE, VALUE, LONG, MANY_THREADS } kind;

static wg__variant_maker *const makers[] = {[SHAPE] = wg__variant_of_shape,
                                            [VALUE] = wg__variant_of_value,
                                            [LONG] = wg__variant_long,
                                            [MANY_THREADS] = wg__variant_grown};

/* Whether the op accepts the inputs of a variant and gives finite results. An error about shapes,
 * dtypes or values is no failure of a variant. */
static bool is_taken(const op_check *o, const wg_sample *sample, kind kind) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    wg_scope scope;
    wg_scope_begin(&scope);
    bool taken =
        wg_apply(o->op, sample->input_count, sample->inputs, sample->options, outputs) == 0;
    for (int j = 0; taken && j < o->op->output_count; j++) {
        if (!wg_dtype_is_float(wg_tensor_dtype(outputs[j])))
            continue;
        wg_tensor *finite = wg_eq(wg_sub(wg_detach(outputs[j]), wg_detach(outputs[j])),
                                  wg_scalar(wg_tensor_dtype(outputs[j]), 0));
        wg_tensor *all = wg_sum(wg_cast(finite, WG_F64), 0, NULL, false);
        taken = wg_item(all) == (double)wg_tensor_count(outputs[j]);
    }
    const wg_error *error = wg_error_pending();
    bool refused =
        error && (kind == VALUE || error->code == WG_ERROR_SHAPE || error->code == WG_ERROR_DTYPE ||
                  error->code == WG_ERROR_INDEX || error->code == WG_ERROR_ARGUMENT);
    if (refused)
        wg_error_clear();
    wg_scope_end(&scope, NULL);
    return taken || (error && !refused); /* the check itself reports other errors */
}

static int check_one(op_check *o, kind kind, const wg__variant *v, int number,
                     wg_gradcheck_report *report) {
    wg__sampled_op sampled = {o->op, v->sample.options};
    const bool derived = kind != SAMPLE;
    wg__gradcheck c = {.function = apply_sample,
                       .context = &sampled,
                       .op = o->op,
                       .user_count = v->sample.input_count,
                       .input_count = v->sample.input_count,
                       .inputs = v->sample.inputs,
                       .output_count = o->op->output_count,
                       .order = 1,
                       .derived = derived,
                       .dtype = o->options.f32 ? WG_F32 : WG_F64,
                       .options = o->options,
                       .report = report};
    report->sample = number;
    snprintf(report->variant, sizeof report->variant, "%s", v->name);
    if (derived)
        c.options.order = 1;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = kind == VALUE          ? wg__gradcheck_point(&c, &v->point)
                 : kind == LONG         ? wg__gradcheck_long(&c, v)
                 : kind == MANY_THREADS ? wg__gradcheck_prepare(&c)
                                        : wg__gradcheck_all(&c);
    if (kind == MANY_THREADS && status == 0 && c.wanted.count > 0)
        status = wg__gradcheck_evaluate(&c, NULL, c.sums.analytic);
    if (kind == MANY_THREADS && status == 0)
        status = wg__gradcheck_threads(&c);
    o->nonzero |= c.found.nonzero;
    wg__gradcheck_free(&c);
    wg_scope_end(&scope, NULL);
    return status;
}

/* The verdict on a sample or a variant that could not be made. */
static int cannot_be_made(op_check *o, int sample, const char *variant) {
    wg_gradcheck_report report = wg__gradcheck_report(o->options.seed);
    wg__gradcheck c = {.op = o->op, .order = 1, .report = &report, .user_count = WG_MAX_INPUTS};
    report.sample = sample;
    snprintf(report.variant, sizeof report.variant, "%s", variant);
    wg__gradcheck_fail(&c, WG_DIAGNOSIS_FAILED, -1, "cannot be made");
    merge(o, &report);
    return -1;
}

static int check_variants(op_check *o, const wg_sample *sample, int number) {
    int status = 0;
    for (kind kind = SHAPE; kind <= MANY_THREADS; kind++)
        for (int n = 0, more = 1; status == 0 && more != 0; n++) {
            wg__variant v = {.name = ""};
            wg_scope scope;
            wg_scope_begin(&scope);
            more = makers[kind](o->op, n, sample, number == 0, &v);
            if (wg_error_pending())
                status = cannot_be_made(o, number, v.name);
            else if (more > 0) {
                wg_gradcheck_report report = wg__gradcheck_report(o->options.seed);
                make_leaves(o, &v.sample);
                if (wg_error_pending() || is_taken(o, &v.sample, kind)) {
                    report.variants = 1;
                    status = check_one(o, kind, &v, number, &report);
                } else {
                    report.refused = 1;
                }
                merge(o, &report);
            }
            wg_scope_end(&scope, NULL);
        }
    return status;
}

/* Returns 1, 0 after the last sample, -1 after MAX_FAILURES failures or without a sample. */
static int check_next_sample(op_check *o, int index) {
    wg_generator generator = {.seed = o->options.seed, .offset = (uint64_t)index << 16};
    wg__variant v = {.name = ""};
    wg_gradcheck_report report = wg__gradcheck_report(o->options.seed);
    wg_scope scope;
    wg_scope_begin(&scope);
    int more = o->op->sample(index, &generator, &v.sample), status = 0;
    make_leaves(o, &v.sample);
    if (more < 0 || wg_error_pending()) {
        status = cannot_be_made(o, index, "");
        more = -1;
    } else if (more > 0) {
        status = check_one(o, SAMPLE, &v, index, &report);
        merge(o, &report);
    }
    if (more > 0 && status == 0 && o->failures == 0 && !o->options.no_variants)
        status = check_variants(o, &v.sample, index);
    wg_scope_end(&scope, NULL);
    o->failures += status < 0;
    return o->failures >= MAX_FAILURES ? -1 : more;
}

static int refuse(op_check *o, wg_diagnosis diagnosis, const char *what) {
    wg__gradcheck c = {.op = o->op, .order = 1, .report = o->report, .user_count = WG_MAX_INPUTS};
    o->report->sample = -1;
    return wg__gradcheck_fail(&c, diagnosis, -1, "%s", what);
}

static int check_samples(op_check *o) {
    const wg_op *op = o->op;
    wg_gradcheck_report *r = o->report;
    const char *reason = wg__op_exceptions(op)->zero_gradient;
    reason = reason ? reason : o->options.zero_gradient;
    if (!op->sample)
        return refuse(o, WG_DIAGNOSIS_FAILED, "it has no samples");
    if (op->differentiable ? !op->vjp && op->forward : !op->no_gradient)
        return refuse(o, WG_DIAGNOSIS_FAILED, "it has neither vjp nor a reason for having none");
    bool recording = wg_set_grad_enabled(true);
    for (int k = 0, more = 1; more > 0; k++) {
        more = check_next_sample(o, k);
        r->samples += more != 0;
    }
    wg_set_grad_enabled(recording);
    if (!r->passed)
        return -1;
    if (r->samples == 0)
        return refuse(o, WG_DIAGNOSIS_FAILED, "it has no samples");
    if (!op->differentiable) {
        snprintf(r->message, sizeof r->message, "no gradient: %.400s", op->no_gradient);
        return 0;
    }
    if (r->compared == 0)
        return refuse(o, WG_DIAGNOSIS_NOTHING_COMPARED,
                      "no sample has an f64 input that is differentiable");
    if (!o->nonzero && !reason)
        return refuse(o, WG_DIAGNOSIS_ALL_ZERO, "the gradients of all samples");
    if (o->nonzero && reason)
        return refuse(o, WG_DIAGNOSIS_NOT_ZERO, reason);
    snprintf(
        r->message, sizeof r->message,
        "%d samples and %d variants, %lld coordinates agree, the worst to %.2g of the tolerance",
        r->samples, r->variants, (long long)r->compared, r->largest_error);
    return 0;
}

int wg_gradcheck_op(const wg_op *op, const wg_gradcheck_options *options,
                    wg_gradcheck_report *report) {
    wg_gradcheck_report own = {0};
    op_check o = {
        .op = op, .options = wg__gradcheck_defaults(options), .report = report ? report : &own};
    if (!options || options->order == 0)
        o.options.order = op->vjp && op->decompose ? 1 : 2;
    if (!wg__gradcheck_begin(&o.options, o.report))
        return -1;
    return wg__gradcheck_end(check_samples(&o), o.report);
}

static int read_exports(void *handle, const char *path, const wg_op *const **ops,
                        const wg_module_example *const **examples) {
    static const wg_op *const no_ops[] = {NULL};
    static const wg_module_example *const no_examples[] = {NULL};
    const wg_op_library *of_ops = dlsym(handle, "wengert_ops");
    const wg_module_library *of_modules = dlsym(handle, "wengert_modules");
    if (!of_ops && !of_modules)
        return wg_fail(WG_ERROR_FORMAT, "op_library",
                       "%s exports no ops and no modules: it needs WG_EXPORT_OPS(&op, ...) or "
                       "WG_EXPORT_MODULES(&example, ...) outside of its functions",
                       path);
    void *symbol = dlsym(handle, "wg_op_count"); /* in its copy of libwengert */
    int (*theirs)(void);
    memcpy(&theirs, &symbol, sizeof theirs);
    if (theirs != wg_op_count)
        return wg_fail(
            WG_ERROR_FORMAT, "op_library",
            "%s runs on another copy of libwengert than this command: link it with the library "
            "that the command is linked with (a command built with --disable-shared can load "
            "no ops and no modules)",
            path);
    if ((of_ops &&
         (of_ops->op_size != sizeof(wg_op) || of_ops->exceptions_size != sizeof(wg_op_exceptions) ||
          of_ops->call_size != sizeof(wg_call) || of_ops->sample_size != sizeof(wg_sample))) ||
        (of_modules && (of_modules->example_size != sizeof(wg_module_example) ||
                        of_modules->sample_size != sizeof(wg_module_sample) ||
                        of_modules->module_size != sizeof(wg_module))))
        return wg_fail(
            WG_ERROR_FORMAT, "op_library",
            "%s was compiled against the headers of another version of wengert: compile it anew",
            path);
    *ops = of_ops ? of_ops->ops : no_ops;
    *examples = of_modules ? of_modules->examples : no_examples;
    return 0;
}

int wg__gradcheck_library_open(const char *path, const wg_op *const **ops,
                               const wg_module_example *const **examples) {
    *ops = NULL;
    *examples = NULL;
    char with_slash[4096]; /* without one, dlopen would search the system's folders */
    snprintf(with_slash, sizeof with_slash, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (access(with_slash, R_OK) < 0)
        return wg_fail(WG_ERROR_NOT_FOUND, "op_library", "%s cannot be read: %s", path,
                       strerror(errno));
    void *handle = dlopen(with_slash, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return wg_fail(
            WG_ERROR_FORMAT, "op_library",
            "%s is no shared library that can be opened: %s; compile it as in cc -shared "
            "-fPIC my_op.c -o my_op.so $(pkg-config --cflags --libs wengert)",
            path, dlerror());
    if (read_exports(handle, path, ops, examples) == 0)
        return 0;
    dlclose(handle);
    return -1;
}
