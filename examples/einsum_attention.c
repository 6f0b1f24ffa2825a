/* Multi-head attention in four lines of wg_einsum, trained to look up values: each example is a
 * new dictionary of pairs (key, value), and queries, which are keys of the dictionary. At the end
 * the fused wg_attention gives the same result with the same weights.
 *
 *     cc einsum_attention.c $(pkg-config --cflags --libs wengert) -lm -o einsum_attention */
#include <math.h>
#include <stdio.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

/* Letters of the equations: b of BATCH, t of PAIRS, q of QUESTIONS, c of WIDTH, h of HEADS, d of
 * SIZE, v of VALUES. */
enum { KEYS = 32, VALUES = 10, BATCH = 32, PAIRS = 12, QUESTIONS = 8, STEPS = 100 };
enum { WIDTH = 32, HEADS = 4, SIZE = 8 };

/* ---- The model ---- */

typedef struct lookup {
    wg_module module;
    wg_tensor *key_table, *value_table; /* (KEYS, c), (VALUES, c) */
    wg_tensor *query, *key, *value;     /* (c, h, d) */
    wg_tensor *output;                  /* (h, d, v) */
} lookup;

static wg_tensor *parameter(lookup *model, const char *name, double scale, int ndim,
                            const int64_t *shape) {
    wg_tensor *x = wg_module_parameter(&model->module, name, ndim, shape);
    wg_initialize(x, &(wg_initializer){WG_INIT_NORMAL, scale}, NULL);
    return x;
}

static lookup *lookup_new(void) {
    lookup *model = wg_module_new(NULL, "", sizeof *model);
    if (model == NULL)
        return NULL;
    const double scale = 1 / sqrt(WIDTH);
    model->key_table = parameter(model, "key_table", 1, WG_DIMS(KEYS, WIDTH));
    model->value_table = parameter(model, "value_table", 1, WG_DIMS(VALUES, WIDTH));
    model->query = parameter(model, "query", scale, WG_DIMS(WIDTH, HEADS, SIZE));
    model->key = parameter(model, "key", scale, WG_DIMS(WIDTH, HEADS, SIZE));
    model->value = parameter(model, "value", scale, WG_DIMS(WIDTH, HEADS, SIZE));
    model->output = parameter(model, "output", scale, WG_DIMS(HEADS, SIZE, VALUES));
    return wg_module_finish(&model->module);
}

/* softmax(q k^T / sqrt(d)) v.   q: (b, q, h, d)   k, v: (b, t, h, d)   ->   (b, q, h, d) */
static wg_tensor *attention(wg_tensor *q, wg_tensor *k, wg_tensor *v) {
    wg_tensor *scores = wg_einsum("bqhd,bthd->bhqt", WG_TENSORS(q, k));
    wg_tensor *weights = wg_softmax(wg_mul_scalar(scores, 1 / sqrt(SIZE)), -1);
    return wg_einsum("bhqt,bthd->bqhd", WG_TENSORS(weights, v));
}

/* The same by the fused op, which has the heads before the positions. */
static wg_tensor *fused_attention(wg_tensor *q, wg_tensor *k, wg_tensor *v) {
    return wg_transpose(wg_attention(wg_transpose(q, 1, 2), wg_transpose(k, 1, 2),
                                     wg_transpose(v, 1, 2), NULL, NULL),
                        1, 2);
}

/* ---- The task ---- */

typedef struct batch {
    wg_tensor *keys, *values;    /* (b, t) i64: no key comes twice */
    wg_tensor *asked, *expected; /* (b, q) i64 */
} batch;

static batch make_batch(wg_generator *generator) {
    wg_tensor *permutations[BATCH];
    for (int b = 0; b < BATCH; b++)
        permutations[b] = wg_randperm(generator, KEYS);
    wg_tensor *keys = wg_slice(wg_stack(BATCH, permutations, 0), 1, 0, PAIRS, 1);
    wg_tensor *values = wg_randint(generator, 0, VALUES, WG_DIMS(BATCH, PAIRS));
    wg_tensor *pair = wg_randint(generator, 0, PAIRS, WG_DIMS(BATCH, QUESTIONS));
    return (batch){keys, values, wg_gather(keys, 1, pair), wg_gather(values, 1, pair)};
}

/* The logits of the answers, (b, q, v); `difference`, unless NULL, is how far the fused op is off.
 */
static wg_tensor *answer(lookup *model, const batch *x, double *difference) {
    wg_tensor *pairs = wg_add(wg_embedding_op(model->key_table, x->keys, -1),
                              wg_embedding_op(model->value_table, x->values, -1));
    wg_tensor *questions = wg_embedding_op(model->key_table, x->asked, -1);
    wg_tensor *q = wg_einsum("bqc,chd->bqhd", WG_TENSORS(questions, model->query));
    wg_tensor *k = wg_einsum("btc,chd->bthd", WG_TENSORS(pairs, model->key));
    wg_tensor *v = wg_einsum("btc,chd->bthd", WG_TENSORS(pairs, model->value));
    wg_tensor *context = attention(q, k, v);
    if (difference != NULL) {
        wg_tensor *other = fused_attention(q, k, v);
        *difference = wg_item(wg_max(wg_abs(wg_sub(context, other)), WG_ALL, false));
    }
    return wg_einsum("bqhd,hdv->bqv", WG_TENSORS(context, model->output));
}

static double train_step(lookup *model, wg_optimizer *optimizer, wg_generator *generator) {
    wg_scope step;
    wg_scope_begin(&step);
    batch x = make_batch(generator);
    wg_tensor *expected = wg_cast(wg_one_hot(x.expected, VALUES), WG_F32);
    wg_tensor *scores = wg_log_softmax(answer(model, &x, NULL), -1);
    wg_tensor *loss = wg_mul_scalar(wg_einsum("bqv,bqv->", WG_TENSORS(expected, scores)),
                                    -1.0 / (BATCH * QUESTIONS));
    wg_backward(loss, NULL);
    wg_optimizer_step(optimizer, 0.01);
    double value = wg_item(loss);
    wg_scope_end(&step, NULL);
    return value;
}

static void evaluate(lookup *model, wg_generator *generator) {
    wg_scope scope;
    wg_scope_begin(&scope);
    double difference;
    batch x = make_batch(generator);
    wg_tensor *answers = wg_argmax(answer(model, &x, &difference), -1, false);
    wg_tensor *right = wg_cast(wg_eq(answers, x.expected), WG_F32);
    printf("right answers: %.1f %%\n", 100 * wg_item(wg_mean(right, WG_ALL, false)));
    printf("largest difference from wg_attention: %.1e\n", difference);
    wg_scope_end(&scope, NULL);
}

int main(void) {
    wg_manual_seed(1);
    wg_generator generator = {.seed = 2};
    lookup *model = lookup_new();
    if (model == NULL)
        return 1;
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_optimizer_add_module(optimizer, &model->module);
    for (int step = 1; step <= STEPS && !wg_error_pending(); step++) {
        double loss = train_step(model, optimizer, &generator);
        if (step % 20 == 0)
            printf("step %3d   loss %.4f\n", step, loss);
    }
    evaluate(model, &generator);
    wg_optimizer_free(optimizer);
    wg_module_free(&model->module);
    if (wg_error_pending())
        fprintf(stderr, "%s\n", wg_error_pending()->message);
    return wg_error_pending() ? 1 : 0;
}
