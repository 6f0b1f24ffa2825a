/* A language model of letters, an LSTM: it is trained on a book and then writes. Generation
 * keeps the LSTM's state h, c where a transformer has a key-value cache. Several texts are
 * continued in one batch, each with the same result as alone.
 *
 *     cc char_lstm.c $(pkg-config --cflags --libs wengert) -o char_lstm
 *     ./char_lstm corpus/books/alice-in-wonderland.txt 2000 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

enum { BATCH = 16, LENGTH = 48, WIDTH = 48, HIDDEN = 96, TEXTS = 2, TOKENS = 120 };

typedef struct writer {
    wg_module module;
    wg_embedding *letters;
    wg_lstm *lstm;
    wg_linear *head;
    int64_t vocabulary;
} writer;

static writer *writer_new(int64_t vocabulary) {
    writer *w = wg_module_new(NULL, "", sizeof *w);
    if (!w)
        return NULL;
    w->module.generator.seed = 1;
    w->vocabulary = vocabulary;
    w->letters = wg_embedding_new(&w->module, "letters", vocabulary, WIDTH, NULL);
    w->lstm = wg_lstm_new(&w->module, "lstm", WIDTH, HIDDEN,
                          &(wg_recurrent_options){.batch_first = true});
    w->head = wg_linear_new(&w->module, "head", HIDDEN, vocabulary, NULL);
    return wg_module_finish(&w->module);
}

/* ids (B, T)   ->   (B, T, HIDDEN); h and c are where it begins, and then where it ended. */
static wg_tensor *read_letters(writer *w, wg_tensor *ids, wg_tensor **h, wg_tensor **c) {
    return wg_lstm_forward(w->lstm, wg_embedding_forward(w->letters, ids), h, c);
}

/* ---- Training ---- */

typedef struct lesson {
    writer *writer;
    wg_batches *batches;
    double loss; /* of the last steps */
} lesson;

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    lesson *l = context;
    wg_causal_batch batch;
    if (wg_batches_next(l->batches, &batch) < 0)
        return NULL;
    metrics->tokens += batch.tokens;
    wg_tensor *hidden = read_letters(l->writer, batch.ids, NULL, NULL);
    return wg_linear_loss(l->writer->head, hidden, batch.labels, WG_IGNORE_INDEX, NULL);
}

static void tell(const wg_train_report *report, void *context) {
    lesson *l = context;
    l->loss = report->step == 1 ? report->loss : 0.95 * l->loss + 0.05 * report->loss;
}

static double train(writer *w, const wg_dataset *text, int64_t steps) {
    const wg_causal_batch_options batching = {.batch = BATCH, .sequence = LENGTH};
    lesson l = {.writer = w, .batches = wg_causal_batches_new(text, &batching)};
    const wg_task task = {
        .context = &l, .module = &w->module, .loss = next_loss, .batches = l.batches};
    const wg_trainer_options options = {
        .steps = steps,
        .schedule = {.peak = 6e-3, .final = 0.1, .total_steps = steps, .warmup_steps = 20},
        .listener = tell,
        .listener_context = &l};
    wg_trainer *trainer = wg_trainer_new(&task, wg_adamw_new(NULL), &options);
    wg_trainer_run(trainer);
    wg_trainer_free(trainer);
    wg_batches_free(l.batches);
    return l.loss;
}

/* ---- Writing: the state is h and c of all texts, (1, R, HIDDEN) each ---- */

typedef struct memory {
    wg_tensor *h, *c;
} memory;

static void *begin(void *context, int64_t texts, int64_t length) {
    (void)context, (void)texts, (void)length;
    return calloc(1, sizeof(memory));
}

static void replace(wg_tensor **kept, wg_tensor *x) {
    wg_keep(x);
    wg_release(*kept);
    *kept = x;
}

static wg_tensor *read_on(void *context, void *state, const wg_new_tokens *tokens) {
    writer *w = context;
    memory *m = state;
    wg_tensor *h = m->h, *c = m->c;
    wg_tensor *hidden = read_letters(w, tokens->ids, &h, &c);
    replace(&m->h, h);
    replace(&m->c, c);
    return wg_linear_forward(w->head, wg_select(hidden, 1, -1));
}

static int reorder(void *context, void *state, wg_tensor *index) {
    memory *m = state;
    (void)context;
    replace(&m->h, wg_index_select(m->h, 1, index));
    replace(&m->c, wg_index_select(m->c, 1, index));
    return m->h && m->c ? 0 : -1;
}

static void end(void *context, void *state) {
    memory *m = state;
    (void)context;
    wg_release(m->h);
    wg_release(m->c);
    free(m);
}

/* Continues the first `count` of these prompts, and appends them to `written`. */
static int write_texts(writer *w, const wg_tokenizer *letters, int64_t count,
                       char written[TEXTS][1024]) {
    static const char *const prompts[TEXTS] = {"Alice was ", "The Queen said to the "};
    const wg_language_model model = {.context = w,
                                     .module = &w->module,
                                     .vocabulary = w->vocabulary,
                                     .begin = begin,
                                     .read = read_on,
                                     .reorder = reorder,
                                     .end = end};
    wg_generation texts[TEXTS] = {{.generator = {.seed = 7}}, {.generator = {.seed = 8}}};
    int status = 0;
    for (int i = 0; i < count; i++)
        if (wg_tokenizer_encode(letters, prompts[i], -1, NULL, &texts[i].tokens) < 0)
            status = -1;
    if (status == 0)
        status = wg_language_model_generate(
            &model, count, texts,
            &(wg_generation_options){.sampling = {.temperature = 0.5}, .max_tokens = TOKENS});
    for (int i = 0; i < count; i++) {
        char *text = status == 0 ? wg_tokenizer_decode(letters, texts[i].tokens.ids,
                                                       texts[i].tokens.count, NULL)
                                 : NULL;
        snprintf(written[i], sizeof written[i], "%s", text ? text : "");
        wg_text_free(text);
        wg_token_list_free(&texts[i].tokens);
    }
    return status;
}

int main(int argc, char **argv) {
    const char *book = argc > 1 ? argv[1] : "corpus/books/alice-in-wonderland.txt";
    const int64_t steps = argc > 2 ? atoll(argv[2]) : 300;
    static char together[TEXTS][1024], alone[TEXTS][1024];
    wg_scope scope;
    wg_set_threads(1); /* positions are sequential, so more threads gain little */
    wg_scope_begin(&scope);
    wg_tokenizer *letters = wg_char_train_files(1, &book, NULL);
    wg_dataset *text =
        wg_dataset_load(1, &book, letters, &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    writer *w = text ? writer_new(wg_tokenizer_size(letters)) : NULL;
    if (w) {
        printf("by frequency: %.3f\n", wg_dataset_unigram_loss(text, NULL, text));
        printf("trained: %.3f\n", train(w, text, steps));
        if (write_texts(w, letters, TEXTS, together) == 0 &&
            write_texts(w, letters, 1, alone) == 0) {
            printf("text 1: %s\ntext 2: %s\n", together[0], together[1]);
            printf("text 1 alone: %s\n",
                   strcmp(together[0], alone[0]) == 0 ? "the same" : "another");
        }
        wg_module_free(&w->module);
    }
    wg_dataset_free(text);
    wg_tokenizer_free(letters);
    wg_scope_end(&scope, NULL);
    if (!wg_error_pending())
        return 0;
    fprintf(stderr, "char_lstm: %s\n", wg_error_pending()->message);
    return 1;
}
