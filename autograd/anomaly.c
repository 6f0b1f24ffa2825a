/* Anomaly mode: the search for the op that made the first NaN.
 *
 * While the mode is on, each forward run, vjp and jvp is checked for a NaN in its results without
 * a NaN in its operands. The trainer searches for infinities as well when a step has failed. Calls
 * inside of an op are not checked, so that the error names the op that the user called. */
#include "autograd/internal.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/system.h"

static WG__THREAD_LOCAL bool mode;
static _Thread_local bool finds_infinities; /* and names layers in place of callers */
static _Thread_local int64_t last_number;
static _Thread_local const wg_node *running; /* the node whose vjp is running */

bool wg_set_anomaly_mode(bool on) {
    bool was = mode;
    atomic_store(&wg__anomaly_check, wg__check_forward);
    mode = on;
    wg__checks_anomalies = on;
    return was;
}

bool wg__set_nonfinite_mode(bool on) {
    const bool was = finds_infinities;
    finds_infinities = on;
    wg_set_anomaly_mode(on);
    return was;
}

wg__anomaly_state wg__anomaly_enter(const wg_node *node) {
    const wg__anomaly_state before = {wg__checks_anomalies, running};
    wg__checks_anomalies = false;
    running = node ? node : running;
    return before;
}

void wg__anomaly_leave(wg__anomaly_state before) {
    wg__checks_anomalies = before.checks;
    running = before.within;
}

/* Finds the first NaN (or infinity, if they count) in row-major order. */
static bool find_nan(const wg_tensor *x, int64_t *index) {
    const int ndim = x->spec.ndim;
    const int64_t size = (int64_t)wg_dtype_size(x->spec.dtype);
    const char *data = wg__tensor_address(x);
    if (!wg_dtype_is_float(x->spec.dtype) || wg_tensor_count(x) == 0)
        return false;
    memset(index, 0, WG_MAX_DIMS * sizeof *index);
    for (;;) {
        int64_t position = 0;
        for (int d = 0; d < ndim; d++)
            position += index[d] * x->strides[d];
        const double value = wg__element(x->spec.dtype, data + position * size);
        if (finds_infinities ? !isfinite(value) : isnan(value))
            return true;
        int d = ndim - 1;
        while (d >= 0 && ++index[d] == x->spec.shape[d])
            index[d--] = 0;
        if (d < 0)
            return false;
    }
}

/* The numbers that the mode searches for, in messages; by finds_infinities. */
static const char *const searched[] = {"a NaN", "an infinity or a NaN"};

/* The first tensor that has a NaN, or -1. Writes the NaN's index, "(1, 0)", to `where` unless that
 * is NULL. */
static int first_with_nan(int count, wg_tensor *const *tensors, char *where, size_t size) {
    int64_t index[WG_MAX_DIMS];
    for (int i = 0; i < count; i++) {
        if (!tensors[i] || !find_nan(tensors[i], index))
            continue;
        if (!where)
            return i;
        size_t used = (size_t)snprintf(where, size, "(");
        for (int d = 0; d < tensors[i]->spec.ndim; d++)
            used += (size_t)snprintf(where + used, size - used, "%s%lld", d ? ", " : "",
                                     (long long)index[d]);
        snprintf(where + used, size - used, ")");
        return i;
    }
    return -1;
}

enum { SHOWN = 3, MOST_FRAMES = sizeof((wg__origin){0}.frames) / sizeof(void *) };

static bool is_named_ours(const Dl_info *info) {
    return info->dli_sname && wg__starts_with(info->dli_sname, "wg_");
}

/* The first frame outside of the library; the innermost frames are inside. In a statically linked
 * program all frames are in one object, so names decide: skip to the first public name (wg_...),
 * then skip public names and the internal functions between them. A frame without a name is
 * internal if a public function called it, or if it lies inside of a wg_apply. */
static int first_outside(int count, const Dl_info *infos) {
    static const char here;
    Dl_info own = {0};
    int k = 0;
    dladdr(&here, &own);
    if (!wg__is_program(own.dli_fbase)) {
        while (k < count && infos[k].dli_fbase != own.dli_fbase) /* a sanitizer's backtrace */
            k++;
        while (k < count && infos[k].dli_fbase == own.dli_fbase)
            k++;
        return k;
    }
    while (k < count && !is_named_ours(&infos[k]))
        k++;
    if (k == count)
        return 0; /* it was linked without names */
    for (; k < count; k++) {
        int named = k;
        bool is_ours;
        while (named < count && !infos[named].dli_sname)
            named++;
        if (named == k || named == count)
            is_ours = is_named_ours(&infos[k]);
        else
            is_ours = named == k + 1 ? is_named_ours(&infos[named])
                                     : strcmp(infos[named].dli_sname, "wg_apply") == 0;
        if (!is_ours)
            break;
    }
    return k;
}

static void describe(const wg__origin *origin, char *text, size_t size) {
    Dl_info infos[MOST_FRAMES];
    int count = 0;
    while (count < origin->frame_count && dladdr(origin->frames[count], &infos[count]) &&
           infos[count].dli_fname)
        count++;
    const int first = count > 0 ? first_outside(count, infos) : 0;
    size_t used = 0;
    for (int k = first; k < count && k < first + SHOWN && used < size; k++) {
        const char *file = strrchr(infos[k].dli_fname, '/');
        const char *name = infos[k].dli_sname;
        /* The call's place, as addr2line takes it: from the object's beginning unless it was linked
         * for one address. Return addresses point behind the call. */
        const char *base = wg__is_fixed(infos[k].dli_fbase) ? NULL : infos[k].dli_fbase;
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s+0x%zx", k > first ? ", " : "",
                                 name ? name : "", name ? " in " : "",
                                 file ? file + 1 : infos[k].dli_fname,
                                 (size_t)((const char *)origin->frames[k] - 1 - base));
    }
    if (used == 0)
        snprintf(text, size, "an unknown place");
}

int wg__origin_make(wg__origin **origin) {
    *origin = NULL;
    if (!mode)
        return 0;
    *origin = wg__calloc(1, sizeof **origin);
    if (!*origin)
        return -1;
    (*origin)->number = ++last_number;
    wg__error_place_now((*origin)->layer, sizeof(*origin)->layer);
    if (running) {
        (*origin)->within = running->op->name;
        (*origin)->within_call = running->origin ? running->origin->number : 0;
    }
    (*origin)->frame_count = wg__return_addresses(MOST_FRAMES, (*origin)->frames);
    return 0;
}

/* "; called by main in line+0x1234", or nothing where the layer is named. */
static const char *caller(char *text, size_t size) {
    *text = '\0';
    if (finds_infinities)
        return text;
    wg__origin here = {0};
    char from[300];
    here.frame_count = wg__return_addresses(MOST_FRAMES, here.frames);
    describe(&here, from, sizeof from);
    snprintf(text, size, "; called by %s", from);
    return text;
}

int wg__check_forward(const wg_call *call) {
    char where[128], from[320];
    const int j = first_with_nan(call->output_count, call->outputs, where, sizeof where);
    if (j < 0 || first_with_nan(call->input_count, call->inputs, NULL, 0) >= 0)
        return 0;
    return wg__op_fail(call, WG_ERROR_ANOMALY,
                       "it made %s of operands without one, in output %d at %s%s",
                       searched[finds_infinities], j, where, caller(from, sizeof from));
}

int wg__check_jvp(const wg_call *call, wg_tensor *const *tangents,
                  wg_tensor *const *output_tangents) {
    char where[128], from[320];
    const int j = first_with_nan(call->output_count, output_tangents, where, sizeof where);
    if (j < 0 || first_with_nan(call->input_count, tangents, NULL, 0) >= 0)
        return 0;
    return wg__op_fail(
        call, WG_ERROR_ANOMALY,
        "its jvp made %s of tangents without one, in the tangent of output %d at %s%s",
        searched[finds_infinities], j, where, caller(from, sizeof from));
}

int wg__check_vjp(const wg_node *node, wg_tensor *const *cotangents, wg_tensor *const *gradients) {
    char where[128], origin_text[448], from[320], within[96] = "", number[32] = "";
    const wg__origin *origin = node->origin;
    const int i = first_with_nan(node->input_count, gradients, where, sizeof where);
    if (i < 0 || first_with_nan(node->output_count, cotangents, NULL, 0) >= 0)
        return 0;
    bool saved_nan = false;
    for (int k = 0; k < node->input_count; k++)
        saved_nan = saved_nan || first_with_nan(1, &node->inputs[k].tensor, NULL, 0) >= 0;
    for (int j = 0; j < node->output_count; j++)
        saved_nan = saved_nan || first_with_nan(1, &node->outputs[j].tensor, NULL, 0) >= 0;
    if (!origin) {
        snprintf(origin_text, sizeof origin_text, "recorded before anomaly mode was on");
    } else if (finds_infinities) {
        snprintf(origin_text, sizeof origin_text, "recorded in %s",
                 *origin->layer ? origin->layer : "no layer");
    } else {
        describe(origin, from, sizeof from);
        if (origin->within_call)
            snprintf(number, sizeof number, " of call %lld", (long long)origin->within_call);
        if (origin->within)
            snprintf(within, sizeof within, " in the vjp of %.20s%s", origin->within, number);
        snprintf(origin_text, sizeof origin_text, "call %lld, recorded%s by %s",
                 (long long)origin->number, within, from);
    }
    const wg_call call = {
        .op = node->op, .input_count = node->input_count, .input_specs = node->input_specs};
    return wg__op_fail(&call, WG_ERROR_ANOMALY,
                       "its vjp made %s of cotangents without one%s, in the gradient of operand %d "
                       "at %s; %s",
                       searched[finds_infinities],
                       saved_nan ? " (but the forward call had one)" : "", i, where, origin_text);
}
