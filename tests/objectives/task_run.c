/* Helpers of the tests of tasks: see task_run.h. */
#include "tests/objectives/task_run.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/testing.h"

const char *task_text(int shift) {
    static char text[16384];
    static const char *const words[] = {"cat", "dog", "sun", "sea", "tree", "bird", "wind"};
    size_t length = 0;
    for (int document = 0; document < 12; document++) {
        for (int sentence = 0; sentence < 6; sentence++) {
            for (int word = 0; word < 5; word++)
                length +=
                    (size_t)snprintf(text + length, sizeof text - length, "%s%s", word ? " " : "",
                                     words[(document + shift + sentence * word) % 7]);
            length += (size_t)snprintf(text + length, sizeof text - length, " .\n");
        }
        length += (size_t)snprintf(text + length, sizeof text - length, "\n");
    }
    return text;
}

wg_training *training_of(const wg_objective *objective, const wg_model *model,
                         const wg_tokenizer *tokenizer, const wg_dataset *training,
                         const wg_dataset *held_out, const wg_training_setup *rest) {
    wg_training_setup setup = rest ? *rest : (wg_training_setup){0};
    setup.model = model;
    setup.tokenizer = tokenizer;
    setup.training = training;
    setup.held_out = held_out;
    return wg_training_new(objective, &setup);
}

wg_trainer *task_trainer(const wg_task *task, int64_t steps, const char *path) {
    wg_trainer_options options = {
        .steps = steps,
        .schedule = {.peak = 1e-3, .warmup_steps = 3, .total_steps = 10},
        .evaluate_every = 2,
        .path = path,
    };
    return wg_trainer_new(task, wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01}), &options);
}

/* ---- The same bits ---- */

typedef struct comparison {
    wg_checkpoint *other, *file;
    const char *group;
    int tensors;
} comparison;

static int compare_dataset(const char *name, const wg_spec *spec, void *context) {
    comparison *c = context;
    if (strncmp(name, c->group, strlen(c->group)) != 0 || spec->ndim == 0)
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *a = wg_checkpoint_get_tensor(c->file, name);
    wg_tensor *b = wg_checkpoint_get_tensor(c->other, name);
    assert_no_error();
    ck_assert_int_eq(wg_tensor_count(a), wg_tensor_count(b));
    size_t bytes = (size_t)wg_tensor_count(a) * wg_dtype_size(spec->dtype);
    ck_assert_msg(memcmp(wg_tensor_data(a), wg_tensor_data(b), bytes) == 0, "%s differs", name);
    wg_scope_end(&scope, NULL);
    c->tensors++;
    return 0;
}

void assert_same_tensors(const char *path, const char *other, const char *group) {
    comparison c = {
        .file = wg_checkpoint_open(path), .other = wg_checkpoint_open(other), .group = group};
    ck_assert_int_eq(wg_checkpoint_each(c.file, compare_dataset, &c), 0);
    ck_assert_int_gt(c.tensors, 0);
    wg_checkpoint_close(c.file);
    wg_checkpoint_close(c.other);
}

static void run(wg_task (*begin)(void), void (*end)(void), int64_t steps, const char *path,
                bool resume) {
    const wg_task task = begin();
    wg_trainer *trainer = task_trainer(&task, steps, path);
    if (resume)
        ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    end();
}

void assert_resumed_bits(wg_task (*begin)(void), void (*end)(void)) {
    char straight[600], resumed[600];
    snprintf(straight, sizeof straight, "%s/straight.h5", scratch());
    snprintf(resumed, sizeof resumed, "%s/resumed.h5", scratch());
    run(begin, end, 10, straight, false);
    run(begin, end, 4, resumed, false);
    run(begin, end, 10, resumed, true);
    assert_same_tensors(straight, resumed, "/model/");
    assert_same_tensors(straight, resumed, "/optimizer/");
    assert_same_tensors(straight, resumed, "/train/history/");
}
