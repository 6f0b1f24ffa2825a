/* BERT's heads for fine-tuning against PyTorch (tests/fixtures/bert_heads.py): their published
 * names, configurations, and what they load from checkpoints. */
#include "tests/support/testing.h"

#include <stdio.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "io/checkpoint/checkpoint.h"
#include "models/bert.h"
#include "models/heads.h"
#include "models/internal.h"
#include "objectives/internal.h"
#include "formats/convert.h"
#include "base/alloc.h"
#include "tensor/profile.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "data/internal.h"
#include "tensor/internal.h"

#define CLASSIFIER "bert_heads/classifier"
#define ANSWERER "bert_heads/answerer"
#define TAGGER "bert_heads/tagger"
#define MULTI_LABEL "bert_heads/multi_label"
#define VECTORS "bert_heads/vectors"

static wg_model_inputs load_inputs(const char *folder) {
    return (wg_model_inputs){
        .ids = fixture_tensor("%s/input_ids", folder),
        .token_type_ids = fixture_tensor("%s/token_type_ids", folder),
        .keep = fixture_tensor("%s/attention_mask", folder),
    };
}

static wg__labels three_labels(void) {
    wg__labels labels = {0};
    wg__labels_add(&labels, "contradiction");
    wg__labels_add(&labels, "entailment");
    wg__labels_add(&labels, "neutral");
    return labels;
}

/* What the head gives; *end is the second output. */
static wg_tensor *head_of(wg__headed_encoder *model, const wg_model_inputs *inputs,
                          wg_tensor **end) {
    wg_tensor *outputs[2];
    ck_assert_int_eq(wg__headed_encoder_forward(model, inputs, outputs), 0);
    if (end)
        *end = outputs[1];
    return outputs[0];
}

static wg__headed_encoder *new_labelled(wg__head_kind kind) {
    const wg_bert_config config = bert_fixture_config();
    wg__labels labels = three_labels();
    wg__headed_encoder *model = wg__headed_encoder_new(&wg_bert_type, kind, &config, &labels, 1);
    wg__labels_free(&labels);
    assert_no_error();
    return model;
}

static wg__headed_encoder *new_classifier(void) {
    return new_labelled(WG_HEAD_LABELS);
}

static wg__headed_encoder *new_answerer(void) {
    const wg_bert_config config = bert_fixture_config();
    wg__headed_encoder *model =
        wg__headed_encoder_new(&wg_bert_type, WG_HEAD_ANSWERS, &config, NULL, 1);
    assert_no_error();
    return model;
}

/* ---- Beside PyTorch ---- */

static const struct {
    wg_dtype dtype;
    double tolerance;
} precisions[] = {{WG_F64, 1e-10}, {WG_F32, 1e-5}};

/* Compares a loss and all gradients with the fixture's, and frees the model. */
static void finish(const char *folder, wg_tensor *loss, wg_module *module, double tolerance) {
    assert_relative(loss, fixture_tensor("%s/loss", folder), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients(folder, module, tolerance);
    wg_scope_clear_root();
    wg_module_free(module);
}

static wg_tensor *loss_of_head(const char *folder, wg__head_kind kind, wg_tensor *first,
                               wg_tensor *second) {
    if (kind == WG_HEAD_ANSWERS)
        return wg__answer_loss(first, second, fixture_tensor("%s/starts", folder),
                               fixture_tensor("%s/ends", folder));
    wg_tensor *labels = fixture_tensor(kind == WG_HEAD_WORDS ? "%s/tags" : "%s/labels", folder);
    if (kind == WG_HEAD_SEVERAL_LABELS)
        return wg_bce_with_logits(first, wg_cast(labels, wg_tensor_dtype(first)), NULL, NULL,
                                  WG_REDUCTION_MEAN);
    const int64_t count = wg_tensor_count(labels);
    return wg_cross_entropy(wg_reshape(first, WG_DIMS(count, 3)),
                            wg_reshape(labels, WG_DIMS(count)), WG_IGNORE_INDEX, NULL);
}

START_TEST(heads_have_pytorchs_names_outputs_and_gradients) {
    static const struct {
        const char *folder;
        wg__head_kind kind;
    } heads[] = {{CLASSIFIER, WG_HEAD_LABELS},
                 {ANSWERER, WG_HEAD_ANSWERS},
                 {TAGGER, WG_HEAD_WORDS},
                 {MULTI_LABEL, WG_HEAD_SEVERAL_LABELS}};
    for (size_t i = 0; i < WG_COUNT(heads) * WG_COUNT(precisions); i++) {
        const char *folder = heads[i / 2].folder;
        const wg__head_kind kind = heads[i / 2].kind;
        const double tolerance = precisions[i % 2].tolerance;
        const bool answers = kind == WG_HEAD_ANSWERS;
        wg__headed_encoder *model = answers ? new_answerer() : new_labelled(kind);
        if (kind != WG_HEAD_SEVERAL_LABELS)
            assert_model_paths(folder, &model->module);
        load_model_fixture(folder, &model->module, precisions[i % 2].dtype);
        const wg_model_inputs inputs = load_inputs(folder);
        wg_tensor *second, *first = head_of(model, &inputs, &second);
        assert_relative(first, fixture_tensor(answers ? "%s/start" : "%s/logits", folder),
                        tolerance);
        if (answers)
            assert_relative(second, fixture_tensor("%s/end", folder), tolerance);
        finish(folder, loss_of_head(folder, kind, first, second), &model->module, tolerance);
    }
}
END_TEST

/* The pooled output reads [CLS] alone, which spares more than half of the last layer. */
START_TEST(a_classification_computes_the_last_layer_of_first_positions_alone) {
    wg__headed_encoder *model = new_classifier();
    const wg_model_inputs inputs = load_inputs(CLASSIFIER);
    double before = wg__counted_product_flops();
    wg_bert_type.encoder.forward(model->encoder, &inputs);
    const double whole = wg__counted_product_flops() - before;
    const double layer = whole / (double)bert_fixture_config().num_hidden_layers;
    before = wg__counted_product_flops();
    head_of(model, &inputs, NULL);
    ck_assert_double_lt(wg__counted_product_flops() - before, whole - layer / 2);
    wg_module_free(&model->module);
}
END_TEST

START_TEST(contrastive_learning_equals_pytorch_with_every_gradient) {
    const wg_bert_config config = bert_fixture_config();
    for (size_t i = 0; i < WG_COUNT(precisions); i++) {
        wg_module *root = wg_module_new(NULL, "", sizeof *root);
        wg_module *encoder = wg_bert_type.encoder.make(root, "bert", &config, false);
        load_model_fixture(VECTORS, root, precisions[i].dtype);
        const wg_model_inputs inputs = load_inputs(VECTORS);
        wg_tensor *pooled = wg__pool_texts(wg_bert_type.encoder.forward(encoder, &inputs),
                                           inputs.keep, WG_POOL_MEAN, 0);
        wg_tensor *first = wg_div(pooled, wg_norm(pooled, 2, 1, (int64_t[]){1}, true));
        assert_relative(first, fixture_tensor("%s/first", VECTORS), precisions[i].tolerance);
        const int64_t rows = wg_tensor_size(first, 0);
        wg_tensor *second = wg_cat(
            2, (wg_tensor *[]){wg_narrow(first, 0, rows - 1, 1), wg_narrow(first, 0, 0, rows - 1)},
            0);
        double right;
        wg_tensor *loss = wg__contrastive_loss(
            wg_mul_scalar(wg_matmul(first, wg_transpose(second, 0, 1)), 1 / 0.05), &right);
        finish(VECTORS, loss, root, precisions[i].tolerance);
    }
}
END_TEST

/* ---- Configurations ---- */

START_TEST(labels_come_from_the_published_keys) {
    wg__labels labels;
    ck_assert_int_eq(wg__labels_of_config("{\"id2label\": {\"1\": \"b\", \"0\": \"a\"}}", &labels),
                     0);
    ck_assert_int_eq(labels.count, 2);
    ck_assert_str_eq(labels.names[1], "b");
    wg__labels_free(&labels);
    ck_assert_int_eq(
        wg__labels_of_config("{\"problem_type\": \"multi_label_classification\","
                             " \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}",
                             &labels),
        0);
    ck_assert_int_eq(labels.count, 3);
    wg__labels_free(&labels);
    ck_assert_int_eq(wg__labels_of_config("{\"num_labels\": 3}", &labels), 0);
    ck_assert_int_eq(labels.count, 3);
    ck_assert_str_eq(labels.names[2], "LABEL_2");
    wg__labels_free(&labels);
    ck_assert_int_eq(wg__labels_of_config("{}", &labels), 0);
    ck_assert_int_eq(labels.count, 2);
    wg__labels_free(&labels);
}
END_TEST

START_TEST(bad_labels_are_refused) {
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"{\"id2label\": {\"1\": \"b\", \"2\": \"a\"}}", "none for \"0\""},
        {"{\"id2label\": {\"0\": \"a\", \"1\": \"a\"}}", "\"a\" twice"},
        {"{\"problem_type\": \"regression\"}", "regression"},
        {"labels", "config.json"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__labels labels;
        assert_fails(wg__labels_of_config(cases[i].json, &labels), WG_ERROR_FORMAT, cases[i].part);
        ck_assert_int_eq(labels.count, 0);
    }
}
END_TEST

START_TEST(a_classification_has_two_labels_or_more) {
    const wg_bert_config config = bert_fixture_config();
    wg__labels labels = {0};
    wg__labels_add(&labels, "alone");
    assert_fails(wg__headed_encoder_new(&wg_bert_type, WG_HEAD_LABELS, &config, &labels, 1),
                 WG_ERROR_ARGUMENT, "two or more");
    wg__labels_free(&labels);
}
END_TEST

/* What config.json says of a head, and the kind that is read from it. */
START_TEST(kinds_of_heads_are_told_from_configurations) {
    static const struct {
        const char *json;
        int kind;
    } cases[] = {
        {"{\"architectures\": [\"BertForSequenceClassification\"]}", WG_HEAD_LABELS},
        {"{\"architectures\": [\"BertForSequenceClassification\"], \"problem_type\": "
         "\"regression\"}",
         WG_HEAD_SCORE},
        {"{\"architectures\": [\"BertForSequenceClassification\"], \"id2label\": {\"0\": "
         "\"LABEL_0\"}}",
         WG_HEAD_SCORE},
        {"{\"architectures\": [\"BertForSequenceClassification\"], \"num_labels\": 1}",
         WG_HEAD_SCORE},
        {"{\"architectures\": [\"BertForSequenceClassification\"], \"num_labels\": 3}",
         WG_HEAD_LABELS},
        {"{\"architectures\": [\"BertForQuestionAnswering\"]}", WG_HEAD_ANSWERS},
        {"{\"architectures\": [\"BertForTokenClassification\"]}", WG_HEAD_WORDS},
        {"{\"architectures\": [\"BertForPreTraining\"]}", -1},
        {"{}", -1},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_config *config = wg__config_parse(cases[i].json, "config.json");
        ck_assert_int_eq(wg__head_of_config(&wg_bert_type, config), cases[i].kind);
        wg__config_free(config);
    }
}
END_TEST

/* ---- Checkpoints ---- */

static wg_tokenizer *small_tokenizer(void) {
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word"};
    return wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL);
}

static void save(const char *path, wg_module *module, char *config) {
    wg_tokenizer *tokenizer = small_tokenizer();
    char *json = wg_tokenizer_to_json(tokenizer);
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_module(file, "/model", module), 0);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/config", config), 0);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/tokenizer", json), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_text_free(config);
    wg_text_free(json);
    wg_tokenizer_free(tokenizer);
}

static wg__headed_encoder *loaded(const char *path, wg__head_kind kind, wg_tokenizer **tokenizer) {
    wg_model model;
    ck_assert_int_eq(wg__headed_encoder_load(path, kind, &model, tokenizer), 0);
    return (wg__headed_encoder *)model.module;
}

static wg__headed_encoder *adapted(const wg__head_origin *origin, wg__head_kind kind,
                                   const wg__labels *labels, wg_tokenizer **tokenizer) {
    wg_model model;
    ck_assert_int_eq(wg__headed_encoder_adapt(origin, kind, labels, &model, tokenizer), 0);
    return (wg__headed_encoder *)model.module;
}

START_TEST(what_python_saved_gives_the_same_logits) {
    const char *path = in_scratch("classifier.h5"), *vocabulary = in_scratch("tokenizer.json");
    wg_tokenizer *tokenizer = small_tokenizer();
    ck_assert_int_eq(wg_tokenizer_save(tokenizer, vocabulary), 0);
    wg_tokenizer_free(tokenizer);
    const wg_convert_options options = {.tokenizer = vocabulary};
    ck_assert_int_eq(wg_convert(fixture("bert_heads/saved"), path, &options, NULL), 0);
    wg__headed_encoder *model;
    model = loaded(path, WG_HEAD_LABELS, &tokenizer);
    ck_assert_str_eq(model->labels.names[1], "entailment");
    const wg_model_inputs inputs = load_inputs(CLASSIFIER);
    assert_relative(head_of(model, &inputs, NULL), fixture_tensor("%s/logits", CLASSIFIER), 1e-5);
    wg_scope_clear_root();
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
}
END_TEST

/* A checkpoint, a folder and a checkpoint again have the same logits, labels and dropout. */
START_TEST(a_fine_tuned_model_survives_the_published_folder) {
    const char *first = in_scratch("first.h5"), *folder = in_scratch("folder"),
               *second = in_scratch("second.h5");
    wg__headed_encoder *model = new_classifier(), *back;
    wg_tokenizer *tokenizer;
    model->dropout = 0.25;
    save(first, &model->module, wg__headed_encoder_config(model));
    ck_assert_int_eq(wg_convert(first, folder, NULL, NULL), 0);
    ck_assert_int_eq(wg_convert(folder, second, NULL, NULL), 0);
    back = loaded(second, WG_HEAD_LABELS, &tokenizer);
    ck_assert(back->dropout == 0.25);
    ck_assert(wg__labels_equal(&back->labels, &model->labels));
    assert_close(back->head->weight, model->head->weight, 0, 0);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&back->module);
    wg_module_free(&model->module);

    wg__headed_encoder *answerer = new_answerer(), *answerer_back;
    save(first, &answerer->module, wg__headed_encoder_config(answerer));
    ck_assert_int_eq(wg_convert(first, folder, NULL, NULL), 0);
    ck_assert_int_eq(wg_convert(folder, second, NULL, NULL), 0);
    answerer_back = loaded(second, WG_HEAD_ANSWERS, &tokenizer);
    assert_close(answerer_back->head->weight, answerer->head->weight, 0, 0);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&answerer_back->module);
    wg_module_free(&answerer->module);
}
END_TEST

static void take_note(const char *message, void *context) {
    snprintf(context, 1024, "%s", message);
}

START_TEST(fine_tuning_takes_the_encoder_and_begins_the_head) {
    const char *path = in_scratch("pretrained.h5");
    const wg_bert_config config = bert_fixture_config();
    wg_bert_for_pretraining *pretrained = wg__bert_for_pretraining_new(&config, 7);
    save(path, &pretrained->module, wg_model_config_to_json(&wg_bert_type, &config));
    char note[1024] = "";
    const wg__head_origin origin = {.path = path, .seed = 3, .note = take_note, .context = note};
    wg__labels labels = three_labels();
    wg__headed_encoder *model;
    wg_tokenizer *tokenizer;
    model = adapted(&origin, WG_HEAD_LABELS, &labels, &tokenizer);
    assert_close(((wg_bert *)model->encoder)->pooler->weight, pretrained->bert->pooler->weight, 0,
                 0);
    ck_assert_ptr_nonnull(strstr(note, "begun anew: classifier.weight, classifier.bias"));
    wg_tokenizer_free(tokenizer);

    /* Fine-tuned again: the head stays while the labels are the same. */
    const char *tuned = in_scratch("tuned.h5");
    save(tuned, &model->module, wg__headed_encoder_config(model));
    const wg__head_origin again = {.path = tuned, .seed = 5, .note = take_note, .context = note};
    wg__headed_encoder *second;
    note[0] = '\0';
    second = adapted(&again, WG_HEAD_LABELS, &labels, &tokenizer);
    assert_close(second->head->weight, model->head->weight, 0, 0);
    ck_assert_str_eq(note, "");
    wg_tokenizer_free(tokenizer);
    wg_module_free(&second->module);
    wg__labels_add(&labels, "other");
    second = adapted(&again, WG_HEAD_LABELS, &labels, &tokenizer);
    ck_assert_ptr_nonnull(strstr(note, "classifier.weight"));
    wg_tokenizer_free(tokenizer);
    wg_module_free(&second->module);

    /* A head of another kind needs no pooler. */
    wg__headed_encoder *answerer;
    answerer = adapted(&again, WG_HEAD_ANSWERS, NULL, &tokenizer);
    ck_assert_ptr_nonnull(strstr(note, "begun anew: qa_outputs.weight, qa_outputs.bias"));
    wg_tokenizer_free(tokenizer);
    wg_module_free(&answerer->module);
    wg_module_free(&model->module);
    wg_module_free(&pretrained->module);
    wg__labels_free(&labels);
}
END_TEST

/* Creates a model with the n-th allocation failing. True if no allocation failed. */
static bool begin_without_memory(int64_t n, const wg__head_origin *origin,
                                 const wg__labels *labels) {
    wg_model model;
    wg_tokenizer *tokenizer;
    wg__alloc_fail_after(n);
    const int status = wg__headed_encoder_adapt(origin, WG_HEAD_LABELS, labels, &model, &tokenizer);
    wg__alloc_fail_after(-1);
    if (status < 0)
        return false;
    wg_tokenizer_free(tokenizer);
    wg_module_free(model.module);
    return true;
}

START_TEST(beginning_without_memory_says_so_and_leaves_nothing) {
    const char *path = in_scratch("pretrained.h5");
    wg_bert_config config = bert_fixture_config();
    config.num_hidden_layers = 1;
    wg_bert_for_pretraining *pretrained = wg__bert_for_pretraining_new(&config, 7);
    save(path, &pretrained->module, wg_model_config_to_json(&wg_bert_type, &config));
    wg_module_free(&pretrained->module);
    const wg__head_origin origin = {.path = path};
    wg__labels labels = three_labels();
    int64_t n = 0;
    while (!begin_without_memory(n, &origin, &labels)) {
        assert_error(WG_ERROR_MEMORY, "");
        n += 1 + n / 20;
    }
    ck_assert_int_gt(n, 50);
    wg__labels_free(&labels);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        heads_have_pytorchs_names_outputs_and_gradients,
        a_classification_computes_the_last_layer_of_first_positions_alone,
        contrastive_learning_equals_pytorch_with_every_gradient,
        labels_come_from_the_published_keys,
        bad_labels_are_refused,
        a_classification_has_two_labels_or_more,
        kinds_of_heads_are_told_from_configurations,
        what_python_saved_gives_the_same_logits,
        a_fine_tuned_model_survives_the_published_folder,
        fine_tuning_takes_the_encoder_and_begins_the_head,
        beginning_without_memory_says_so_and_leaves_nothing,
    };
    add_suite("bert_heads", tests);
}
