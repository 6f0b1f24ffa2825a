/* Fine-tuning of an encoder with a head: see head.h. */
#include "objectives/head.h"

#include "tensor/internal.h"

/* ---- The model ---- */

/* A new model has the labels of its training text, which is tokenised as the checkpoint says: so
 * the tokenizer is read first. */
int wg__head_adapt(const wg_objective *objective, const wg_training_setup *setup,
                   void (*note)(const char *message, void *context), void *note_context,
                   wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_task *task = objective->head;
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    if (!task->learns_labels)
        return wg__headed_encoder_adapt(&origin, task->kind, NULL, model, tokenizer);
    wg__labels labels = {0};
    wg_tokenizer *own = wg_tokenizer_load(setup->checkpoint);
    wg__examples *text = own ? task->read(setup, NULL, setup->training_path, own, &labels) : NULL;
    const int status =
        text ? wg__headed_encoder_adapt(&origin, task->kind, &labels, model, tokenizer) : -1;
    wg__examples_free(text);
    wg_tokenizer_free(own);
    wg__labels_free(&labels);
    return status;
}

int wg__head_load(const wg_objective *objective, const char *path, wg_model *model,
                  wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, objective->head->kind, model, tokenizer);
}

char *wg__head_config(const wg_training *t) {
    return wg__headed_encoder_config(wg__headed_of(t->setup.model));
}

int wg__head_outputs(const wg_training *t, const wg__example_batch *batch, wg_tensor *outputs[2]) {
    const wg_model_inputs inputs = wg__pair_inputs(&batch->inputs);
    return wg__headed_encoder_forward(wg__headed_of(t->setup.model), &inputs, outputs);
}

/* ---- Training ---- */

/* Fills a batch with the examples of run->chosen. */
static int read_batch(const wg_training *t, const wg__examples *examples, int64_t count,
                      wg__example_batch *batch) {
    const wg__head_run *run = t->context;
    const wg__head_task *task = t->objective->head;
    return task->batch ? task->batch(t, examples, count, batch)
                       : wg__example_batch_read(examples, &run->frame, count, run->chosen, batch);
}

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    const wg_training *t = context;
    const wg__head_run *run = t->context;
    for (int64_t i = 0; i < count; i++)
        run->chosen[i] = examples[i].index;
    return read_batch(t, run->training, count, batch);
}

int wg__head_begin_as(wg_training *t, void *own, wg__labels *labels) {
    const wg_training_setup *setup = &t->setup;
    const wg__head_task *task = t->objective->head;
    wg__head_run *run = t->context = wg__calloc(1, sizeof *run);
    if (!run)
        return -1;
    run->own = own;
    run->labels = labels;
    run->chosen = wg__alloc_array(setup->batch, sizeof *run->chosen);
    if (!run->chosen ||
        (!task->batch && wg__pair_frame_of(setup->tokenizer, setup->sequence, &run->frame) < 0))
        return -1;
    if (setup->training_path &&
        !(run->training = task->read(setup, own, setup->training_path, setup->tokenizer, labels)))
        return -1;
    if (setup->held_out_path &&
        !(run->held_out = task->read(setup, own, setup->held_out_path, setup->tokenizer, labels)))
        return -1;
    if (!run->training)
        return 0;
    t->fingerprint = (int64_t)run->training->kind->fingerprint(run->training);
    t->examples = run->training->count;
    t->batches = wg_batches_new(
        &(wg_batch_source){.context = t, .build = build},
        &(wg_batches_options){.batch = setup->batch, .examples = t->examples, .seed = setup->seed});
    return t->batches ? 0 : -1;
}

int wg__head_begin(wg_training *t) {
    return wg__head_begin_as(t, NULL, &wg__headed_of(t->setup.model)->labels);
}

void wg__head_end(wg_training *t) {
    wg__head_run *run = t->context;
    if (!run)
        return;
    wg__examples_free(run->training);
    wg__examples_free(run->held_out);
    wg__free(run->chosen);
    wg__free(run);
}

/* What a model says about a batch. */
static int outputs_of(const wg_training *t, const wg__example_batch *batch, wg_tensor *outputs[2]) {
    const wg__head_task *task = t->objective->head;
    outputs[0] = outputs[1] = NULL;
    return (task->outputs ? task->outputs : wg__head_outputs)(t, batch, outputs);
}

wg_tensor *wg__head_loss(wg_training *t, const void *batch, wg_metrics *metrics) {
    const wg__head_task *task = t->objective->head;
    wg_tensor *outputs[2];
    if (outputs_of(t, batch, outputs) < 0 ||
        (task->measure_step && task->measure_step(outputs, batch, metrics) < 0))
        return NULL;
    return task->loss(outputs, batch);
}

/* ---- Evaluation ---- */

static int predict(const wg_training *t, int64_t first, int64_t count, void *context,
                   wg_metrics *metrics) {
    const wg__head_run *run = context;
    wg_tensor *outputs[2];
    for (int64_t i = 0; i < count; i++)
        run->chosen[i] = first + i;
    if (read_batch(t, run->held_out, count, t->batch) < 0 || outputs_of(t, t->batch, outputs) < 0)
        return -1;
    return t->objective->head->predict(t, first, count, outputs, t->batch, metrics);
}

/* All of the held-out text, also during training. Ranks give each other their predictions; words
 * are not as many as examples, but each is in one of them. */
int wg__head_evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    wg__head_run *run = t->context;
    const wg__head_task *task = t->objective->head;
    const wg__examples *text = run->held_out;
    const size_t size = task->prediction ? task->prediction : (size_t)run->labels->count;
    run->loss = 0;
    run->predictions = wg__calloc((size_t)text->predictions, size);
    int status =
        wg__evaluate_examples(t, run->predictions ? 0 : -1, text->count, predict, run, metrics);
    if (status == 0)
        status = wg_group_sum(t->setup.group, WG_GROUP_F64, 1, &run->loss);
    if (status == 0)
        status =
            text->predictions == text->count
                ? wg__share_results(t, text->count, t->setup.batch, size, run->predictions)
                : wg_group_sum(t->setup.group, WG_GROUP_I64, text->predictions, run->predictions);
    if (status == 0)
        status = task->measure(run, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status = task->write(run, t->setup.evaluation->predictions);
    wg__free(run->predictions);
    return status;
}

const wg_objective_training wg__head_training = {.adapt = wg__head_adapt,
                                                 .load = wg__head_load,
                                                 .config = wg__head_config,
                                                 .begin = wg__head_begin,
                                                 .end = wg__head_end,
                                                 .loss = wg__head_loss,
                                                 .evaluate = wg__head_evaluate};
