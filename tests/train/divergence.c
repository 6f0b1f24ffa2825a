/* What stops a step whose loss or gradient is not finite: the error names the first op that made
 * such a number, and its layer. On two linear layers and examples of which one is far too large. */
#include <math.h>
#include <string.h>

#include "nn/linear.h"
#include "tensor/easy.h"
#include "tests/support/testing.h"
#include "train/trainer.h"

enum { WIDTH = 4, EXAMPLES = 24, BATCH = 2 };

typedef struct run {
    wg_module *module;
    wg_linear *stem, *head;
    wg_batches *batches;
    int64_t bad;      /* the example that is too large; -1: none */
    double factor;    /* of that example; of others 1 */
    wg_linear *steep; /* the output of this layer has a gradient that is not finite for the bad
                       * example, whose loss is; NULL: none */
    int64_t batches_taken;
} run;

typedef struct batch {
    wg_tensor *x;
    bool is_bad;
} batch;

static int build(void *context, int64_t count, const wg_example *examples, void *of) {
    const run *r = context;
    batch *b = of;
    float values[BATCH * WIDTH];
    b->is_bad = false;
    for (int64_t i = 0; i < count; i++) {
        const bool is_bad = examples[i].index == r->bad;
        b->is_bad = b->is_bad || is_bad;
        for (int j = 0; j < WIDTH; j++)
            values[i * WIDTH + j] = (float)(is_bad ? r->factor : 1);
    }
    b->x = wg_from_array(WG_F32, WG_DIMS(count, WIDTH), values);
    return b->x ? 0 : -1;
}

/* A layer; the square root of zeros, if it is the steep one. */
static wg_tensor *forward(const run *r, wg_linear *layer, wg_tensor *x, bool is_bad) {
    wg_tensor *y = wg_linear_forward(layer, x);
    if (r->steep != layer || !is_bad)
        return y;
    wg_error_place place;
    wg_module_enter(&layer->module, &place);
    return wg_module_leave(&place, wg_sqrt(wg_mul_scalar(y, 0)));
}

static wg_tensor *loss_of(void *context, wg_metrics *metrics) {
    run *r = context;
    batch b;
    r->batches_taken++;
    metrics->tokens += BATCH;
    if (wg_batches_next(r->batches, &b) < 0)
        return NULL;
    wg_tensor *y = forward(r, r->head, forward(r, r->stem, b.x, b.is_bad), b.is_bad);
    return wg_mean(wg_mul(y, y), WG_ALL, false);
}

static run make(int64_t bad, double factor) {
    run r = {.module = wg_module_new(NULL, "", sizeof(wg_module)), .bad = bad, .factor = factor};
    r.stem = wg_linear_new(r.module, "stem", WIDTH, WIDTH, NULL);
    r.head = wg_linear_new(r.module, "head", WIDTH, WIDTH, NULL);
    return r;
}

/* Runs until the error, which must hold all these texts and have left the weights of the step
 * before. */
static void check(run *r, int64_t accumulate, double clip, const char *const *texts) {
    const wg_batch_source source = {.context = r, .build = build};
    r->batches =
        wg_batches_new(&source, &(wg_batches_options){.batch = BATCH, .examples = EXAMPLES});
    const wg_task task = {
        .context = r, .module = r->module, .loss = loss_of, .batches = r->batches};
    const char *path = in_scratch("divergence.h5");
    wg_trainer *trainer = wg_trainer_new(
        &task, wg_optimizer_new(&(wg_optimizer_choice){.name = "adamw"}),
        &(wg_trainer_options){.steps = EXAMPLES,
                              .accumulate = accumulate,
                              .clip = clip,
                              .path = path,
                              .save_every = 1,
                              .schedule = {.kind = WG_SCHEDULE_CONSTANT, .peak = 1e-3}});
    ck_assert_ptr_nonnull(trainer);
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    const wg_error error = *wg_error_pending();
    ck_assert_int_eq(error.code, WG_ERROR_GRADIENT);
    wg_error_clear();
    for (; *texts; texts++)
        ck_assert_msg(strstr(error.message, *texts), "no \"%s\" in \"%s\"", *texts, error.message);
    wg_checkpoint *file = wg_checkpoint_open(path);
    assert_close(wg_detach(r->stem->weight), wg_checkpoint_get_tensor(file, "/model/stem/weight"),
                 0, 0);
    assert_close(wg_detach(r->head->weight), wg_checkpoint_get_tensor(file, "/model/head/weight"),
                 0, 0);
    wg_checkpoint_close(file);
    wg_trainer_free(trainer);
    wg_batches_free(r->batches);
    wg_module_free(r->module);
}

/* A bad loss; a bad gradient of the head; a bad gradient of the stem, where backward has found the
 * finite gradients of the head before. */
START_TEST(the_first_op_that_is_not_finite_is_named_with_its_layer) {
    static const char *const texts[][5] = {{"loss: it is", "stem: linear", "an infinity or a NaN"},
                                           {"is not finite", "sqrt", "vjp", "recorded in head"},
                                           {"is not finite", "sqrt", "vjp", "recorded in stem"}};
    for (size_t i = 0; i < WG_COUNT(texts); i++)
        for (int64_t accumulate = 1; accumulate <= 3; accumulate += 2)
            for (int clips = 0; clips < 2; clips++) {
                run r = make(9, i == 0 ? 1e38 : 2);
                r.steep = i == 0 ? NULL : i == 1 ? r.head : r.stem;
                wg_set_grad_enabled(false);
                if (i == 0)
                    wg_fill_(r.stem->weight, 10);
                wg_set_grad_enabled(true);
                check(&r, accumulate, clips ? 1 : -1, texts[i]);
            }
}
END_TEST

START_TEST(a_weight_that_is_not_finite_is_named) {
    run r = make(-1, 1);
    wg_set_grad_enabled(false);
    wg_fill_(r.head->bias, NAN);
    wg_set_grad_enabled(true);
    const wg_batch_source source = {.context = &r, .build = build};
    r.batches =
        wg_batches_new(&source, &(wg_batches_options){.batch = BATCH, .examples = EXAMPLES});
    const wg_task task = {.context = &r, .module = r.module, .loss = loss_of, .batches = r.batches};
    wg_trainer *trainer =
        wg_trainer_new(&task, wg_optimizer_new(&(wg_optimizer_choice){.name = "adamw"}),
                       &(wg_trainer_options){.steps = 3});
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    ck_assert_int_eq(r.batches_taken, 1);
    assert_error(WG_ERROR_GRADIENT, "head.bias was not finite before this step");
    wg_trainer_free(trainer);
    wg_batches_free(r.batches);
    wg_module_free(r.module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        the_first_op_that_is_not_finite_is_named_with_its_layer,
        a_weight_that_is_not_finite_is_named,
    };
    add_suite("divergence", tests);
}
