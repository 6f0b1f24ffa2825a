/* Scores of texts: against PyTorch's logits and a plain forward pass a prediction; batches; words;
 * errors. */
#include <math.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/kind.h"
#include "objectives/objective.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "models/internal.h"

/* ---- A model of each objective, with weights so large that everything depends on all ---- */

enum { TOKENS = 17, POSITIONS = 16, MOST = 64 };

static const char *const vocabulary[TOKENS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun",
                                               "moon",  "sea",   "sky",   "a",     "the",    "is",
                                               "red",   "blue",  "##s",   ".",     "##y"};

static const struct {
    const wg_objective *objective;
    const char *config;
} cases[] = {
    {&wg_causal_lm, "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_embd\": 16, \"n_layer\": 2,"
                    " \"n_head\": 2, \"n_positions\": 16, \"bos_token_id\": 0, \"eos_token_id\": "
                    "0, \"initializer_range\": 0.5}"},
    {&wg_masked_lm,
     "{\"model_type\": \"bert\", \"vocab_size\": 20, \"hidden_size\": 16, \"num_hidden_layers\": 2,"
     " \"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 16,"
     " \"initializer_range\": 0.5}"},
    {&wg_blank_infilling,
     "{\"model_type\": \"glm\", \"vocab_size\": 24, \"hidden_size\": 16, \"num_layers\": 2,"
     " \"num_attention_heads\": 2, \"max_sequence_length\": 16, \"initializer_range\": 0.5}"},
};

enum { CAUSAL, MASKED, BLANKS };

static const char *case_name(int index) {
    return cases[index].objective->name;
}

typedef struct world {
    const wg_objective *objective;
    wg_model model;
    wg_tokenizer *tokenizer;
} world;

static world world_of(int index) {
    world w = {.objective = cases[index].objective,
               .tokenizer = wg__wordpiece_new(TOKENS, vocabulary, NULL)};
    ck_assert_int_eq(wg_model_from_json(cases[index].config, 5, &w.model), 0);
    wg_module_train(w.model.module, false);
    return w;
}

static void free_world(world *w) {
    wg_scope_clear_root();
    wg_model_free(&w->model);
    wg_tokenizer_free(w->tokenizer);
}

static const char *const texts[] = {
    "the suns is red .",
    "a sea",
    "the sea is sunsy ysea .",
    "moony moons is blue and a sky is the red sun",
    "a sky",
    "the suns is red .",
    "sea a",
    "the moon is blue .",
    "skys sun is a",
};

enum { TEXTS = WG_COUNT(texts) };

static void score_all(const world *w, const wg_score_options *options, wg_score *scores) {
    wg_text_source sources[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        sources[i] = (wg_text_source){.text = texts[i]};
    ck_assert_int_eq(
        wg_score_texts(w->objective, &w->model, w->tokenizer, options, TEXTS, sources, scores), 0);
    assert_no_error();
}

/* ---- The same, one prediction at a time ---- */

/* A sequence as a model takes it. */
typedef struct sequence {
    int64_t ids[MOST], positions[MOST], blocks[MOST];
    int64_t part_a, count;
} sequence;

static void add(sequence *s, int64_t id, int64_t position, int64_t block) {
    s->ids[s->count] = id;
    s->positions[s->count] = position;
    s->blocks[s->count++] = block;
}

/* log p(id) at a place of the sequence. */
static double predict(const world *w, const sequence *s, int64_t place, int64_t id) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_model_inputs inputs = {.ids = wg_from_array(WG_I64, WG_DIMS(1, s->count), s->ids)};
    if (s->part_a) {
        inputs.position_ids = wg_from_array(WG_I64, WG_DIMS(1, s->count), s->positions);
        inputs.block_position_ids = wg_from_array(WG_I64, WG_DIMS(1, s->count), s->blocks);
        inputs.part_a = wg_full(WG_I64, WG_DIMS(1), (double)s->part_a);
    }
    wg_tensor *hidden = wg_model_forward(&w->model, &inputs);
    wg_tensor *logits = wg_model_logits(&w->model, hidden, NULL);
    wg_tensor *row = wg_select(wg_select(wg_cast(logits, WG_F64), 0, 0), 0, place);
    const double result = wg_item(wg_select(wg_log_softmax(row, -1), 0, id));
    wg_scope_end(&scope, NULL);
    assert_no_error();
    return result;
}

static wg_token_list encode(const world *w, const char *text) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(w->tokenizer, text, -1, NULL, &list), 0);
    return list;
}

/* WordPiece's continuations. */
static bool continues(int32_t id) {
    return strncmp(vocabulary[id], "##", 2) == 0;
}

static wg_score plain_causal(const world *w, const wg_token_list *text) {
    const int32_t begin = wg_tokenizer_special(w->tokenizer, WG_TOKEN_BEGIN);
    wg_score score = {0};
    sequence s = {.count = 0};
    if (begin >= 0)
        add(&s, begin, 0, 0);
    for (int64_t i = 0; i < text->count; i++) {
        if (s.count > 0) {
            score.log_probability += predict(w, &s, s.count - 1, text->ids[i]);
            score.tokens++;
        }
        add(&s, text->ids[i], 0, 0);
    }
    return score;
}

static wg_score plain_masked(const world *w, const wg_token_list *text, bool within_words) {
    wg_score score = {.tokens = text->count};
    for (int64_t place = 0; place < text->count; place++) {
        sequence s = {.count = 0};
        bool same_word = false;
        add(&s, 2, 0, 0); /* [CLS] */
        for (int64_t i = 0; i < text->count; i++) {
            same_word = i == place || (same_word && within_words && continues(text->ids[i]));
            add(&s, same_word ? 4 : text->ids[i], 0, 0);
        }
        add(&s, 3, 0, 0); /* [SEP] */
        score.log_probability += predict(w, &s, place + 1, text->ids[place]);
    }
    return score;
}

/* Writes the word first ... end - 1 into its blank, token after token. */
static void fill_word(const world *w, const wg_blank_tokens *tokens, const wg_token_list *text,
                      int64_t first, int64_t end, wg_score *score) {
    sequence s = {.count = 0};
    add(&s, tokens->beginning, 0, 0);
    for (int64_t i = 0; i < text->count; i++)
        if (i <= first || i >= end)
            add(&s, i == first ? tokens->mask : text->ids[i], s.count, 0);
    s.part_a = s.count;
    add(&s, tokens->start, first + 1, 1);
    for (int64_t i = first; i <= end; i++) {
        const int64_t next = i < end ? text->ids[i] : tokens->end;
        score->log_probability += predict(w, &s, s.count - 1, next);
        score->tokens++;
        add(&s, next, first + 1, i - first + 2);
    }
}

static wg_score plain_blanks(const world *w, const wg_token_list *text) {
    wg_score score = {0};
    wg_blank_tokens tokens;
    ck_assert_int_eq(wg__blank_tokens_of(w->tokenizer, &tokens), 0);
    for (int64_t first = 0, end; first < text->count; first = end) {
        for (end = first + 1; end < text->count && continues(text->ids[end]);)
            end++;
        fill_word(w, &tokens, text, first, end, &score);
    }
    return score;
}

static void assert_plain(const world *w, int index, bool within_words) {
    wg_score scores[TEXTS];
    score_all(w, &(wg_score_options){.within_words = within_words}, scores);
    for (int i = 0; i < TEXTS; i++) {
        wg_token_list text = encode(w, texts[i]);
        const wg_score plain = index == CAUSAL   ? plain_causal(w, &text)
                               : index == MASKED ? plain_masked(w, &text, within_words)
                                                 : plain_blanks(w, &text);
        ck_assert_int_eq(scores[i].tokens, plain.tokens);
        ck_assert_double_eq_tol(scores[i].log_probability, plain.log_probability,
                                1e-5 * fabs(plain.log_probability));
        wg_token_list_free(&text);
    }
}

START_TEST(scores_are_those_of_one_prediction_at_a_time) {
    world w = world_of(_i);
    assert_plain(&w, _i, false);
    free_world(&w);
}
END_TEST

START_TEST(later_tokens_of_a_word_are_masked_within_words) {
    world w = world_of(MASKED);
    wg_score across[TEXTS], within[TEXTS];
    assert_plain(&w, MASKED, true);
    score_all(&w, NULL, across);
    score_all(&w, &(wg_score_options){.within_words = true}, within);
    ck_assert_double_ne(across[0].log_probability, within[0].log_probability);
    ck_assert_double_eq(across[1].log_probability, within[1].log_probability);
    free_world(&w);
}
END_TEST

START_TEST(the_begin_token_predicts_the_first) {
    world w = world_of(CAUSAL);
    ck_assert_int_eq(wg__tokenizer_set_special(w.tokenizer, WG_TOKEN_BEGIN, 2), 0);
    assert_plain(&w, CAUSAL, false);
    free_world(&w);
}
END_TEST

/* ---- Beside PyTorch ---- */

START_TEST(scores_of_decoders_are_those_of_the_logits_of_pytorch) {
    const char *name = _i == 0 ? "decoders/gpt" : "decoders/llama";
    wg_tokenizer *tokenizer = wg__wordpiece_new(TOKENS, vocabulary, NULL);
    wg_model model = load_fixture_model(name, WG_F64);
    wg_tensor *ids = wg_cast(fixture_tensor("%s/ids", name), WG_I32);
    wg_tensor *logits = wg_cast(fixture_tensor("%s/logits", name), WG_F64);
    const int64_t rows = wg_tensor_size(ids, 0), n = wg_tensor_size(ids, 1);
    wg_score scores[8] = {{0}};
    wg_tensor *copy = wg_contiguous(ids);
    const wg_text_batch batch = {rows, n, wg_tensor_data(copy)};
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_score_options options = {0};
    ck_assert_int_eq(wg_causal_lm.use.score(&model, tokenizer, &options, &batch, scores), 0);
    wg_scope_end(&scope, NULL);
    wg_tensor *log_p = wg_log_softmax(logits, -1);
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 1; i < n; i++) {
            wg_tensor *place = wg_select(wg_select(log_p, 0, row), 0, i - 1);
            sum += wg_item(wg_select(place, 0, batch.ids[row * n + i]));
        }
        ck_assert_double_eq_tol(scores[row].log_probability, sum, 1e-10 * fabs(sum));
    }
    free_model(&model);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Batches ---- */

START_TEST(scores_do_not_depend_on_batches) {
    static const int64_t sizes[] = {1, 7, 24, 100};
    world w = world_of(_i);
    wg_score usual[TEXTS], scores[TEXTS];
    score_all(&w, NULL, usual);
    for (size_t size = 0; size < WG_COUNT(sizes); size++) {
        score_all(&w, &(wg_score_options){.batch_tokens = sizes[size]}, scores);
        for (int i = 0; i < TEXTS; i++) {
            ck_assert_double_eq_tol(scores[i].log_probability, usual[i].log_probability,
                                    1e-5 * fabs(usual[i].log_probability));
            ck_assert_int_eq(scores[i].tokens, usual[i].tokens);
        }
    }
    free_world(&w);
}
END_TEST

START_TEST(equal_texts_have_scores_of_the_same_bits) {
    world w = world_of(_i);
    wg_score scores[TEXTS], again[TEXTS];
    score_all(&w, &(wg_score_options){.batch_tokens = 8}, scores);
    score_all(&w, &(wg_score_options){.batch_tokens = 8}, again);
    ck_assert_double_eq(scores[0].log_probability, scores[5].log_probability);
    ck_assert_int_eq(memcmp(scores, again, sizeof scores), 0);
    free_world(&w);
}
END_TEST

START_TEST(nothing_is_recorded_and_the_mode_stays) {
    world w = world_of(_i);
    wg_score scores[TEXTS];
    wg_module_train(w.model.module, true);
    score_all(&w, NULL, scores);
    ck_assert(wg_module_is_training(w.model.module));
    ck_assert(wg_set_grad_enabled(true));
    free_world(&w);
}
END_TEST

static void count_listened(int64_t scored, int64_t count, void *context) {
    int64_t *last = context;
    ck_assert_int_lt(*last, scored);
    ck_assert_int_eq(count, TEXTS);
    *last = scored;
}

START_TEST(a_listener_hears_of_all_texts) {
    world w = world_of(_i);
    wg_score scores[TEXTS];
    int64_t last = 0;
    score_all(&w, &(wg_score_options){.listener = count_listened, .context = &last}, scores);
    ck_assert_int_eq(last, TEXTS);
    free_world(&w);
}
END_TEST

START_TEST(scoring_can_be_stopped) {
    static const volatile sig_atomic_t stop = 2;
    world w = world_of(_i);
    wg_score score;
    const wg_score_options options = {.stop = &stop};
    ck_assert_int_eq(wg_score_texts(w.objective, &w.model, w.tokenizer, &options, 1,
                                    &(wg_text_source){.text = "a sea"}, &score),
                     1);
    assert_no_error();
    free_world(&w);
}
END_TEST

/* ---- Words ---- */

static void assert_begins(const wg_tokenizer *tokenizer, const char *text, const char *wanted) {
    wg_token_list list = {0};
    char found[MOST] = "";
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, -1, NULL, &list), 0);
    for (int64_t i = 0; i < list.count; i++)
        found[i] = wg__token_begins_word(tokenizer, list.ids[i]) ? '1' : '0';
    ck_assert_str_eq(found, wanted);
    wg_token_list_free(&list);
}

START_TEST(a_tokenizer_tells_which_tokens_begin_words) {
    wg_tokenizer *pieces = wg__wordpiece_new(TOKENS, vocabulary, NULL);
    wg_tokenizer *bytes = wg_byte_new();
    wg_tokenizer *bpe = wg__bpe_train(" the the", -1, &(wg_bpe_training){.vocabulary_size = 262});
    wg_tokenizer *sentencepiece = wg_tokenizer_load(fixture("tokenizers/sp_bpe.model"));
    assert_begins(pieces, "the sunsy .", "11001");
    assert_begins(bytes, "a bc", "0100");
    assert_begins(bpe, " the b", "110");
    assert_begins(sentencepiece, "\xe2\x82\xac\xe2\x82\xac", "1000000");
    ck_assert(!wg__token_begins_word(pieces, TOKENS));
    wg_tokenizer_free(pieces);
    wg_tokenizer_free(bytes);
    wg_tokenizer_free(bpe);
    wg_tokenizer_free(sentencepiece);
}
END_TEST

/* ---- Errors ---- */

static void assert_refused(const world *w, const wg_score_options *options,
                           const wg_text_source *source, wg_error_code code, const char *part) {
    wg_score score;
    assert_fails(wg_score_texts(w->objective, &w->model, w->tokenizer, options, 1, source, &score),
                 code, part);
}

START_TEST(what_cannot_be_scored_is_refused) {
    world w = world_of(_i);
    char longest[64] = "a a a a a a a a a a a a a a a a";
    longest[2 * (POSITIONS - w.objective->use.score_frame) - 1] = '\0';
    wg_score score;
    ck_assert_int_eq(wg_score_texts(w.objective, &w.model, w.tokenizer, NULL, 1,
                                    &(wg_text_source){.text = longest}, &score),
                     0);
    const char *beyond = "a a a a a a a a a a a a a a a a a";
    assert_refused(&w, NULL, &(wg_text_source){beyond, "words.txt", 7}, WG_ERROR_ARGUMENT,
                   "words.txt, line 7: the text has 17 tokens; the model takes 1");
    assert_refused(&w, NULL, &(wg_text_source){.text = beyond}, WG_ERROR_ARGUMENT, "text 1: ");
    assert_refused(&w, NULL, &(wg_text_source){" ", "words.txt", 2}, WG_ERROR_ARGUMENT,
                   "words.txt, line 2: the text is empty");
    assert_refused(&w, NULL, &(wg_text_source){.text = "\xff"}, WG_ERROR_FORMAT, "UTF-8");
    assert_refused(&w, &(wg_score_options){.batch_tokens = -1}, &(wg_text_source){.text = "a"},
                   WG_ERROR_ARGUMENT, "-1 tokens");
    if (_i != MASKED)
        assert_refused(&w, &(wg_score_options){.within_words = true},
                       &(wg_text_source){.text = "a"}, WG_ERROR_ARGUMENT, "masks no tokens");
    w.objective = &wg_classification;
    assert_refused(&w, NULL, &(wg_text_source){.text = "a"}, WG_ERROR_STATE,
                   "classify does not score");
    free_world(&w);
}
END_TEST

START_TEST(scoring_that_finds_no_memory_leaves_nothing_behind) {
    world w = world_of(_i);
    wg_score score;
    int status = -1;
    for (int64_t n = 0; status < 0; n++) {
        wg__alloc_fail_after(n);
        status = wg_score_texts(w.objective, &w.model, w.tokenizer, NULL, 1,
                                &(wg_text_source){.text = "suns a"}, &score);
        wg__alloc_fail_after(-1);
        if (status < 0)
            assert_error(WG_ERROR_MEMORY, "");
    }
    free_world(&w);
}
END_TEST

static const char *decoder_name(int index) {
    return index == 0 ? "gpt" : "llama";
}

SUITES {
    const TTest *const of_each[] = {
        scores_are_those_of_one_prediction_at_a_time,
        scores_do_not_depend_on_batches,
        equal_texts_have_scores_of_the_same_bits,
        nothing_is_recorded_and_the_mode_stays,
        a_listener_hears_of_all_texts,
        scoring_can_be_stopped,
        what_cannot_be_scored_is_refused,
        scoring_that_finds_no_memory_leaves_nothing_behind,
    };
    add_suite_of_range("score", WG_COUNT(of_each), of_each, 0, WG_COUNT(cases), case_name);
    const TTest *const of_decoders[] = {scores_of_decoders_are_those_of_the_logits_of_pytorch};
    add_suite_of_range("score of decoders", 1, of_decoders, 0, 2, decoder_name);
    const TTest *const tests[] = {
        later_tokens_of_a_word_are_masked_within_words,
        the_begin_token_predicts_the_first,
        a_tokenizer_tells_which_tokens_begin_words,
    };
    add_suite("score details", tests);
}
