/* What holds for every objective, on examples that predict unequal numbers of tokens. A step is the
 * same in one batch of eight and in eight of one whose gradients are accumulated; a resumed run has
 * the bits of a whole one; evaluations, checkpoints, refusals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "models/model.h"
#include "objectives/objective.h"
#include "tensor/ops.h"
#include "tests/objectives/task_run.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"
#include "train/internal.h"

enum { STEPS = 2, TOKENS = 40, SEQUENCE = 24, COLUMNS = 24 };

/* ---- Texts and files ---- */

/* The words w5 to w39; their ids are their numbers. */
static wg_tokenizer *make_tokenizer(void) {
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    static char words[TOKENS][16];
    const char *tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        snprintf(words[i], sizeof words[i], "w%d", i);
        tokens[i] = i < (int)WG_COUNT(specials) ? specials[i] : words[i];
    }
    return wg__wordpiece_new(TOKENS, tokens, NULL);
}

/* Appends `count` words. */
static void append_words(char *text, int first, int count) {
    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), "%sw%d", i ? " " : "", 5 + (first + 3 * i) % 35);
}

/* 60 documents of 2 to 5 sentences of 1 to 9 words. */
static const char *make_text(int shift) {
    static char text[16384];
    text[0] = '\0';
    for (int document = 0; document < 60; document++) {
        for (int sentence = 0; sentence < 2 + document % 4; sentence++) {
            append_words(text, shift + 7 * document + sentence,
                         1 + (5 * document + 3 * sentence) % 9);
            strcat(text, "\n");
        }
        strcat(text, "\n");
    }
    return text;
}

/* Pairs of 5 to 8 words, whose targets have 1 to 4: each fills a batch of 9 tokens alone, and all
 * four of them fit into one of 36. */
static const char *make_side(bool source, int shift) {
    static char sides[2][1024];
    char *text = sides[source];
    text[0] = '\0';
    for (int pair = 0; pair < 4; pair++) {
        append_words(text, shift + 5 * pair, source ? 5 + pair : 1 + pair);
        strcat(text, "\n");
    }
    return text;
}

/* Eight lines of 1 to 15 words, with what is in the table behind them. */
static const char *write_lines(const char *const *labels) {
    char text[2048] = "";
    for (int line = 0; line < 8; line++) {
        append_words(text, 4 * line, 1 + 2 * line);
        sprintf(text + strlen(text), "%s%s\n", labels ? "\t" : "", labels ? labels[line % 3] : "");
    }
    return write_text("lines.tsv", text);
}

static const char *write_labels(void) {
    return write_lines((const char *const[]){"x", "y", "x"});
}

static const char *write_sets(void) {
    return write_lines((const char *const[]){"x,y", "y,z", "z"});
}

static const char *write_numbers(void) {
    return write_lines((const char *const[]){"0.5", "2", "-1"});
}

static const char *write_texts(void) {
    return write_lines(NULL);
}

/* Sentences of 1 to 15 words. */
static const char *write_tags(void) {
    char text[4096] = "";
    for (int sentence = 0; sentence < 8; sentence++) {
        for (int word = 0; word < 1 + 2 * sentence; word++)
            sprintf(text + strlen(text), "w%d\t%s\n", 5 + (sentence + 5 * word) % 35,
                    (sentence + word) % 3 ? "B-x" : "O");
        strcat(text, "\n");
    }
    return write_text("tags.conll", text);
}

/* Paragraphs of 2 to 9 words, whose second word answers. */
static const char *write_questions(void) {
    char text[8192] = "{\"data\": [{\"paragraphs\": [";
    for (int i = 0; i < 8; i++) {
        char context[256] = "";
        append_words(context, 3 * i, 2 + i);
        const char *answer = strchr(context, ' ') + 1;
        sprintf(
            text + strlen(text),
            "%s{\"context\": \"%s\", \"qas\": [{\"id\": \"%d\", \"question\": \"w5\", \"answers\": "
            "[{\"text\": \"%.*s\", \"answer_start\": %d}]}]}",
            i ? ", " : "", context, i, (int)strcspn(answer, " "), answer, (int)(answer - context));
    }
    strcat(text, "]}]}");
    return write_text("questions.json", text);
}

/* ---- Objectives ---- */

#define ENCODER                                                                                    \
    "'vocab_size': 40, 'hidden_size': 16, 'num_hidden_layers': 1, 'num_attention_heads': 2, "      \
    "'intermediate_size': 24, 'max_position_embeddings': 96, 'initializer_range': 0.3"
#define BERT                                                                                       \
    "'model_type': 'bert', 'hidden_dropout_prob': 0, 'attention_probs_dropout_prob': 0, " ENCODER
#define MODERNBERT                                                                                 \
    "'model_type': 'modernbert', 'pad_token_id': 0, 'bos_token_id': 2, 'eos_token_id': 3, "        \
    "'cls_token_id': 2, 'sep_token_id': 3, " ENCODER
#define GLM                                                                                        \
    "'model_type': 'glm', 'vocab_size': 64, 'hidden_size': 16, 'num_layers': 1, "                  \
    "'num_attention_heads': 2, 'max_sequence_length': 24, 'embedding_dropout_prob': 0, "           \
    "'attention_dropout_prob': 0, 'output_dropout_prob': 0"
#define LLAMA                                                                                      \
    "'model_type': 'llama', 'vocab_size': 40, 'hidden_size': 16, 'intermediate_size': 24, "        \
    "'num_hidden_layers': 1, 'num_attention_heads': 2, 'num_key_value_heads': 1, "                 \
    "'max_position_embeddings': 24, 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, "                 \
    "'tie_word_embeddings': false"
#define T5                                                                                         \
    "'model_type': 't5', 'vocab_size': 160, 'd_model': 16, 'd_kv': 8, 'd_ff': 24, "                \
    "'num_layers': 1, 'num_heads': 2, 'dropout_rate': 0, 'eos_token_id': 40"
#define TRANSFORMER                                                                                \
    "'model_type': 'transformer', 'vocab_size': 40, 'd_model': 16, 'encoder_layers': 1, "          \
    "'decoder_layers': 1, 'encoder_attention_heads': 2, 'decoder_attention_heads': 2, "            \
    "'encoder_ffn_dim': 24, 'decoder_ffn_dim': 24, 'dropout': 0, 'label_smoothing': 0.1, "         \
    "'max_position_embeddings': 24, 'pad_token_id': 0, 'eos_token_id': 3, "                        \
    "'decoder_start_token_id': 2"

static const char *const verbalizers[] = {"x=w20", "y=w21 w22 w23"};
static const wg_cloze_options cloze_options = {
    .pattern = "{text} w8 [MASK]",
    .verbalizer = {WG_COUNT(verbalizers), (const char **)verbalizers}};
static const wg_mlm_options masking = {
    .masked_share = 0.3, .final_masked_share = 0.05, .span_mean = 3};
static const wg_mlm_options hybrid_masking = {
    .masked_share = 0.3, .final_masked_share = 0.05, .span_mean = 3, .causal_share = 0.25};
static const wg_contrastive_options contrastive_options = {.temperature = 0.05};

typedef struct cut {
    int64_t batch, accumulate;
} cut;

typedef struct accumulated {
    const wg_objective *objective;
    const char *model;
    const char *(*write)(void); /* the file of a fine-tuning; NULL: a pretraining */
    const void *options;
    cut whole, parts; /* 0: one batch of eight, eight of one */
    int64_t sequence; /* 0: SEQUENCE */
    bool needs_batch; /* its loss compares the examples of a batch, so that it cannot be cut */
} accumulated;

/* The pretrainings are first. */
enum { PRETRAININGS = 7 };
static const accumulated cases[] = {
    {.objective = &wg_masked_lm, .model = BERT},
    {.objective = &wg_mlm, .model = MODERNBERT, .options = &masking},
    {.objective = &wg_hybrid, .model = MODERNBERT, .options = &hybrid_masking},
    {.objective = &wg_blank_infilling, .model = GLM},
    {.objective = &wg_causal_lm, .model = LLAMA},
    {.objective = &wg_span_corruption, .model = T5, .sequence = 48}, /* several spans a sequence */
    {.objective = &wg_translation,
     .model = TRANSFORMER,
     .whole = {36, 1},
     .parts = {9, 4},
     .sequence = 9},
    {.objective = &wg_classification, .model = BERT, .write = write_labels},
    {.objective = &wg_multi_label, .model = BERT, .write = write_sets},
    {.objective = &wg_regression, .model = BERT, .write = write_numbers},
    {.objective = &wg_token_labels, .model = BERT, .write = write_tags},
    {.objective = &wg_contrastive,
     .model = BERT,
     .write = write_texts,
     .options = &contrastive_options,
     .needs_batch = true},
    {.objective = &wg_question_answering, .model = BERT, .write = write_questions, .sequence = 80},
    {.objective = &wg_cloze_objective,
     .model = GLM,
     .write = write_labels,
     .options = &cloze_options},
};

static const char *case_name(int index) {
    return cases[index].objective->name;
}

/* ---- Runs ---- */

typedef struct world {
    wg_tokenizer *tokenizer;
    wg_model model;
    wg_dataset *text;
    wg_training *training;
} world;

/* How a world differs from the usual one. */
typedef struct variation {
    int64_t batch, sequence; /* 0: the usual ones */
    int shift;               /* other words */
    bool dropout, blind;     /* blind: without held-out text */
} variation;

static wg_dataset *read_text(const wg_objective *objective, const wg_tokenizer *tokenizer,
                             int shift) {
    const bool pairs = objective->data.text == WG_TEXT_PAIRS;
    return wg_dataset_from_text(
        pairs ? make_side(true, shift) : make_text(shift), -1,
        pairs ? make_side(false, shift) : NULL, tokenizer,
        &(wg_dataset_options){.kind = objective->data.text, .format = WG_SENTENCES_BY_LINE});
}

/* `setup` has the batch, and what else is not usual. */
static wg_training *begin_training(world *w, const accumulated *c, variation v,
                                   wg_training_setup setup) {
    w->text = c->write ? NULL : read_text(c->objective, w->tokenizer, v.shift);
    setup.model = &w->model;
    setup.tokenizer = w->tokenizer;
    setup.training = w->text;
    setup.held_out = v.blind ? NULL : w->text;
    setup.batch = v.batch;
    setup.sequence = v.sequence ? v.sequence : c->sequence ? c->sequence : SEQUENCE;
    return wg_training_new(c->objective, &setup);
}

/* config.json of these settings; freed with free. */
static char *config_of(const char *settings, bool dropout) {
    json_t *config = settings_object(settings), *value;
    const char *key;
    void *next;
    json_object_foreach_safe(config, next, key, value) {
        if (dropout && strstr(key, "drop"))
            json_object_set_new(config, key, json_real(0.1));
    }
    char *text = json_dumps(config, 0);
    json_decref(config);
    return text;
}

/* A checkpoint of an untrained model, from which fine-tuning begins. */
static const char *write_origin(const char *json, const char *kind) {
    const accumulated c = {.objective = strcmp(kind, GLM) == 0 ? &wg_blank_infilling : &wg_mlm,
                           .model = json};
    world w = {.tokenizer = make_tokenizer()};
    ck_assert_int_eq(wg_model_from_json(json, 1, &w.model), 0);
    w.training = begin_training(&w, &c, (variation){.batch = 1}, (wg_training_setup){0});
    assert_no_error();
    const wg_task task = wg_training_task(w.training);
    wg_trainer *trainer =
        wg_trainer_new(&task, wg_adamw_new(NULL), &(wg_trainer_options){.steps = 1});
    ck_assert_int_eq(wg_trainer_save(trainer, in_scratch("origin.h5")), 0);
    wg_trainer_free(trainer);
    wg_training_free(w.training);
    wg_dataset_free(w.text);
    wg_model_free(&w.model);
    wg_tokenizer_free(w.tokenizer);
    return in_scratch("origin.h5");
}

static void ignore_note(const char *message, void *context) {
    (void)message, (void)context;
}

static world begin_world(const accumulated *c, variation v) {
    world w = {0};
    wg_training_setup setup = {.seed = 2, .options = c->options};
    char *config = config_of(c->model, v.dropout);
    if (c->write) {
        setup.training_path = setup.held_out_path = c->write();
        setup.checkpoint = write_origin(config, c->model);
        ck_assert_int_eq(c->objective->training->adapt(c->objective, &setup, ignore_note, NULL,
                                                       &w.model, &w.tokenizer),
                         0);
        setup.checkpoint = NULL;
    } else {
        w.tokenizer = make_tokenizer();
        wg_model_from_json(config, 1, &w.model);
        assert_no_error();
    }
    free(config);
    w.training = begin_training(&w, c, v, setup);
    return w;
}

static void end_world(world *w) {
    wg_scope_clear_root();
    wg_training_free(w->training);
    wg_dataset_free(w->text);
    wg_model_free(&w->model);
    wg_tokenizer_free(w->tokenizer);
}

/* What a run leaves: its weights, its history, and an evaluation after it. */
typedef struct outcome {
    int64_t count;
    double *weights; /* (count) */
    int columns;
    char names[COLUMNS][32];
    double history[COLUMNS][STEPS];
    wg_metrics evaluation;
} outcome;

static void read_weights(wg_module *module, outcome *o) {
    wg_state_dict *state = wg_module_state(module);
    o->weights = malloc((size_t)wg_module_parameter_count(module) * sizeof *o->weights);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_PARAMETER || slot->tied)
            continue;
        wg_to_array(wg_cast(slot->tensor, WG_F64), o->weights + o->count);
        o->count += wg_tensor_count(slot->tensor);
    }
    wg_state_dict_free(state);
}

static void read_history(const wg_trainer *trainer, outcome *o) {
    const wg_history *history = wg_trainer_history(trainer);
    o->columns = history->column_count;
    for (int i = 0; i < history->column_count; i++) {
        strcpy(o->names[i], history->names[i]);
        memcpy(o->history[i], history->columns[i], sizeof o->history[i]);
    }
}

static outcome run(const accumulated *c, cut by, bool in_backward) {
    outcome o = {0};
    world w = begin_world(c, (variation){.batch = by.batch});
    assert_no_error();
    w.training->run_examples = w.training->ramp_examples = 12; /* changes in the second step */
    const wg_task task = wg_training_task(w.training);
    wg_trainer *trainer = wg_trainer_new(
        &task, wg_optimizer_new(&(wg_optimizer_choice){.name = "sgd"}),
        &(wg_trainer_options){.steps = STEPS,
                              .schedule = {.kind = WG_SCHEDULE_CONSTANT, .peak = 0.1},
                              .clip = -1,
                              .evaluate_every = STEPS + 1,
                              .accumulate = by.accumulate,
                              .step_in_backward = in_backward,
                              .save_seconds = -1});
    const int status = wg_trainer_run(trainer);
    assert_no_error();
    ck_assert_int_eq(status, WG_TRAIN_FINISHED);
    read_weights(w.model.module, &o);
    read_history(trainer, &o);
    wg_trainer_free(trainer);
    wg_module_train(w.model.module, false);
    wg_set_grad_enabled(false);
    /* The same examples, however many batches they are. */
    const int64_t batches = c->objective == &wg_translation ? 0 : by.accumulate;
    ck_assert_int_eq(c->objective->training->evaluate(w.training, batches, &o.evaluation), 0);
    wg_set_grad_enabled(true);
    end_world(&w);
    return o;
}

static cut whole_of(const accumulated *c) {
    return c->whole.batch ? c->whole : (cut){8, 1};
}

static cut parts_of(const accumulated *c) {
    return c->parts.batch ? c->parts : (cut){1, 8};
}

static void assert_same_weights(const outcome *a, const outcome *b, double limit) {
    double most = 0;
    ck_assert_int_eq(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        most = fmax(most, fabs(a->weights[i] - b->weights[i]));
    ck_assert_msg(most <= limit, "weights differ by %.3g", most);
}

/* ---- Tests ---- */

START_TEST(one_batch_and_its_parts_step_and_measure_the_same) {
    const accumulated *c = &cases[_i];
    if (c->needs_batch)
        return;
    outcome whole = run(c, whole_of(c), false), parts = run(c, parts_of(c), false);
    ck_assert_int_eq(whole.columns, parts.columns);
    for (int i = 0; i < whole.columns; i++)
        for (int step = 0; step < STEPS; step++) {
            const double a = whole.history[i][step], b = parts.history[i][step];
            ck_assert_str_eq(whole.names[i], parts.names[i]);
            ck_assert_msg(fabs(a - b) <= 2e-5 * fmax(1, fabs(a)), "%s of step %d: %.7g and %.7g",
                          whole.names[i], step + 1, a, b);
        }
    assert_same_weights(&whole, &parts, 2e-6);
    for (int i = 0; i < whole.evaluation.count; i++) {
        const wg_metric *metric = &whole.evaluation.metrics[i];
        const double a = wg__metric_value(metric),
                     b = wg_metrics_get(&parts.evaluation, metric->name);
        ck_assert_msg(fabs(a - b) <= 2e-5, "evaluation, %s: %.7g and %.7g", metric->name, a, b);
    }
    free(whole.weights);
    free(parts.weights);
}
END_TEST

START_TEST(a_loss_that_compares_examples_refuses_a_batch_of_one) {
    const accumulated *c = &cases[_i];
    if (!c->needs_batch)
        return;
    world w = begin_world(c, (variation){.batch = 1});
    assert_fails(w.training, WG_ERROR_ARGUMENT, "compared with the others of its batch");
    end_world(&w);
}
END_TEST

START_TEST(weights_that_step_in_backward_are_the_same) {
    const accumulated *c = &cases[0];
    outcome after = run(c, parts_of(c), false), within = run(c, parts_of(c), true);
    assert_same_weights(&after, &within, 0);
    free(after.weights);
    free(within.weights);
}
END_TEST

START_TEST(every_objective_is_among_the_cases) {
    for (int i = 0; wg_objective_at(i); i++) {
        bool found = false;
        for (size_t c = 0; c < WG_COUNT(cases); c++)
            found |= cases[c].objective == wg_objective_at(i);
        ck_assert_msg(found, "%s is not", wg_objective_at(i)->name);
    }
}
END_TEST

/* ---- Runs that go on ---- */

static const accumulated *running;
static world made;

static wg_task begin_run(void) {
    made = begin_world(running, (variation){.batch = whole_of(running).batch, .dropout = true});
    made.training->run_examples = 40;
    assert_no_error();
    return wg_training_task(made.training);
}

static void end_run(void) {
    end_world(&made);
}

/* With dropout, whose counters a checkpoint keeps, and over the ends of epochs. */
START_TEST(a_resumed_run_gives_the_same_bits) {
    running = &cases[_i];
    assert_resumed_bits(begin_run, end_run);
}
END_TEST

static wg_trainer *train_two_steps(const wg_task *task) {
    wg_trainer *trainer = task_trainer(task, 2, in_scratch("run.h5"));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    return trainer;
}

START_TEST(another_text_is_refused_when_a_run_goes_on) {
    const accumulated *c = &cases[_i];
    for (int shift = 0; shift < 2; shift++) {
        world w = begin_world(c, (variation){.batch = whole_of(c).batch, .shift = shift});
        const wg_task task = wg_training_task(w.training);
        wg_trainer *trainer = shift ? task_trainer(&task, 4, NULL) : train_two_steps(&task);
        ck_assert_int_eq(wg_trainer_resume(trainer, in_scratch("run.h5")), shift ? -1 : 0);
        if (shift)
            assert_error(WG_ERROR_STATE, "the corpus");
        wg_trainer_free(trainer);
        end_world(&w);
    }
}
END_TEST

START_TEST(a_checkpoint_gives_back_model_and_tokenizer) {
    const accumulated *c = &cases[_i];
    world w = begin_world(c, (variation){.batch = whole_of(c).batch});
    const wg_task task = wg_training_task(w.training);
    wg_trainer_free(train_two_steps(&task));
    wg_model model;
    wg_tokenizer *tokenizer;
    ck_assert_int_eq(wg_model_load(in_scratch("run.h5"), &model, &tokenizer), 0);
    assert_same_tokenizer(tokenizer, w.tokenizer);
    char *read = wg_model_config_json(&model), *written = wg_model_config_json(&w.model);
    ck_assert_str_eq(read, written);
    wg_state_dict *state = wg_module_state(w.model.module);
    for (int64_t i = 0; i < state->count; i++)
        assert_close(wg_module_find(model.module, state->entries[i].path)->tensor,
                     state->entries[i].slot->tensor, 0, 0);
    wg_state_dict_free(state);
    wg_text_free(read);
    wg_text_free(written);
    wg_tokenizer_free(tokenizer);
    wg_model_free(&model);
    end_world(&w);
}
END_TEST

START_TEST(an_evaluation_is_the_same_each_time) {
    world w = begin_world(&cases[_i], (variation){.batch = whole_of(&cases[_i]).batch});
    wg_metrics first = {0}, second = {0};
    ck_assert_int_eq(wg_training_evaluate(w.training, &first), 0);
    ck_assert_int_eq(wg_training_evaluate(w.training, &second), 0);
    ck_assert_mem_eq(&first, &second, sizeof first);
    ck_assert_double_gt(wg_metrics_get(&first, "loss"), 0);
    end_world(&w);
}
END_TEST

START_TEST(there_is_no_evaluation_without_held_out_text) {
    const accumulated *c = &cases[_i];
    world w = begin_world(c, (variation){.batch = whole_of(c).batch, .blind = true});
    wg_metrics metrics = {0};
    ck_assert(wg_training_task(w.training).evaluate == NULL);
    assert_fails(wg_training_evaluate(w.training, &metrics), WG_ERROR_STATE, "held-out");
    end_world(&w);
}
END_TEST

START_TEST(a_sequence_beyond_the_positions_is_refused) {
    const accumulated *c = &cases[_i];
    wg_model model;
    char *config = config_of(c->model, false);
    ck_assert_int_eq(wg_model_from_json(config, 1, &model), 0);
    free(config);
    const int64_t most = wg_model_sizes_of(&model).positions;
    wg_model_free(&model);
    if (most == INT64_MAX)
        return;
    char part[64];
    snprintf(part, sizeof part, "%d positions", (int)most);
    world w = begin_world(c, (variation){.batch = 200, .sequence = most + 1});
    assert_fails(w.training, WG_ERROR_ARGUMENT, part);
    end_world(&w);
}
END_TEST

START_TEST(a_checkpoint_that_is_not_there_is_an_error) {
    wg_model model;
    wg_tokenizer *tokenizer;
    assert_fails(wg_model_load("no-such.h5", &model, &tokenizer), WG_ERROR_NOT_FOUND, "no-such.h5");
    ck_assert(!model.module && !tokenizer);
}
END_TEST

SUITES {
    const TTest *const each[] = {one_batch_and_its_parts_step_and_measure_the_same,
                                 a_loss_that_compares_examples_refuses_a_batch_of_one};
    add_suite_of_each("accumulation of each objective", each, WG_COUNT(cases), case_name);
    const TTest *const of_runs[] = {a_resumed_run_gives_the_same_bits,
                                    an_evaluation_is_the_same_each_time};
    add_suite_of_each("every objective", of_runs, WG_COUNT(cases), case_name);
    const TTest *const of_pretraining[] = {
        another_text_is_refused_when_a_run_goes_on,
        a_checkpoint_gives_back_model_and_tokenizer,
        there_is_no_evaluation_without_held_out_text,
        a_sequence_beyond_the_positions_is_refused,
    };
    add_suite_of_each("every pretraining", of_pretraining, PRETRAININGS, case_name);
    const TTest *const all[] = {a_checkpoint_that_is_not_there_is_an_error,
                                weights_that_step_in_backward_are_the_same,
                                every_objective_is_among_the_cases};
    add_suite("accumulation", all);
}
