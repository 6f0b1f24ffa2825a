/* Fuzzes the readers of data: texts, tables, questions, tagged words, arrays. The first byte picks
 * the reader, the rest is the file:
 *
 *     s, t       sentences, a stream       l, m, r    a table with labels, several labels, numbers
 *     p          pairs: two texts with     x          lines or pairs for contrastive learning
 *                a NUL between them        q          questions in SQuAD's format
 *     c          `wengert corpus check'    w, u       tagged words in columns, in CoNLL-U
 *     n          a .npy file
 *
 * What could be read is used once: batches are made, answers looked up. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/internal.h"
#include "data/dataset/dataset.h"
#include "data/dataset/examples.h"
#include "tensor/npy.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/tensor.h"
#include "tests/fuzz/weights.h"

static wg_tokenizer *tokenizer;

static bool use_dataset(wg_dataset *dataset) {
    wg_dataset *training = NULL, *held_out = NULL;
    wg_dataset_split(dataset, 0.25, &training, &held_out);
    wg_error_clear();
    wg_dataset_free(training);
    wg_dataset_free(held_out);
    wg_dataset_free(dataset);
    return dataset != NULL;
}

static bool read_text(const char *bytes, int64_t length, wg_dataset_kind kind) {
    const wg_dataset_options options = {.kind = kind};
    const char *target = NULL;
    if (kind == WG_TEXT_PAIRS) {
        target = memchr(bytes, '\0', (size_t)length);
        target = target ? target + 1 : bytes;
    }
    wg_dataset *dataset = wg_dataset_from_text(bytes, kind == WG_TEXT_PAIRS ? -1 : length, target,
                                               tokenizer, &options);
    return dataset ? use_dataset(dataset) : false;
}

static bool read_table(const char *path, char reader) {
    wg__labels labels = {0};
    const wg__labelled_text_options options = {.several = reader == 'm',
                                               .columns.lists = reader == 'm'};
    wg__labelled_text *text =
        wg__labelled_text_load(path, tokenizer, reader == 'r' ? NULL : &labels, &options);
    wg_pair_frame frame;
    if (text && wg__pair_frame_of(tokenizer, 32, &frame) == 0) {
        const int64_t last = text->base.count - 1;
        wg__example_batch batch;
        if (wg__example_batch_read(&text->base, &frame, 2, (const int64_t[]){0, last}, &batch) < 0)
            abort();
    }
    const bool read = text != NULL;
    wg__examples_free((wg__examples *)text);
    wg__labels_free(&labels);
    return read;
}

static bool read_questions(const char *path) {
    const wg__squad_options options = {.sequence = 32, .stride = 8, .query = 8};
    wg__squad *squad = wg__squad_load(path, tokenizer, &options);
    for (int64_t i = 0; i < wg__squad_questions(squad); i++)
        for (int64_t k = 0; k < wg__squad_answers(squad, i); k++)
            if (!wg__squad_answer(squad, i, k))
                abort();
    const bool read = squad != NULL;
    wg__examples_free((wg__examples *)squad);
    return read;
}

static bool read_words(const char *path, const char *tags) {
    wg__labels labels = {0};
    const wg__tagged_words_options options = {.tag_column = tags, .room = 16};
    wg__tagged_words *words = wg__tagged_words_load(path, tokenizer, &labels, &options);
    for (int64_t i = 0; words && i < words->count; i++)
        if (!words->texts.bytes[words->words[i].text] || words->words[i].tag >= labels.count)
            abort();
    const bool read = words != NULL;
    wg__examples_free((wg__examples *)words);
    wg__labels_free(&labels);
    return read;
}

static bool read_lines(const char *path) {
    wg__text_lines lines = {0};
    wg__text_lines_are_scored(path);
    const bool read = wg__text_lines_load(path, tokenizer, &lines) == 0;
    for (int64_t i = 0; read && i < lines.count; i++)
        if (wg__text_lines_get(&lines, i, 1).first_count < 1)
            abort();
    wg__text_lines_free(&lines);
    return read;
}

static bool check_corpus(const char *path) {
    const wg_corpus_check_options options = {.held_out = path, .tokenizer = tokenizer};
    wg_corpus_report report;
    return wg__corpus_check(1, &path, &options, &report) == 0;
}

/* False if the file could not be read. */
static bool read_as(char reader, const char *path, const char *bytes, int64_t length) {
    switch (reader) {
    case 's':
        return read_text(bytes, length, WG_TEXT_SENTENCES);
    case 't':
        return read_text(bytes, length, WG_TEXT_STREAM);
    case 'p':
        return read_text(bytes, length, WG_TEXT_PAIRS);
    case 'l':
    case 'm':
    case 'r':
        return read_table(path, reader);
    case 'x':
        return read_lines(path);
    case 'q':
        return read_questions(path);
    case 'w':
        return read_words(path, NULL);
    case 'u':
        return read_words(path, "UPOS");
    case 'c':
        return check_corpus(path);
    case 'n':
        return wg_npy_load(path) != NULL;
    default:
        return true;
    }
}

void wg__fuzz_data(const uint8_t *bytes, size_t count) {
    if (count < 1)
        return;
    static const char learnt[] = "The quick brown fox. A man plays the flute, and a dog runs.";
    char *text = calloc(count, 1); /* ended by a NUL */
    tokenizer =
        wg__wordpiece_train(learnt, sizeof learnt - 1,
                            &(wg_wordpiece_training){.vocabulary_size = 200, .min_frequency = 1});
    if (!tokenizer)
        abort();
    memcpy(text, bytes + 1, count - 1);
    const char *path = wg__fuzz_file("data", bytes + 1, count - 1);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (!read_as((char)bytes[0], path, text, (int64_t)count - 1) && !wg_error_pending())
        abort(); /* it failed without an error */
    wg_error_clear();
    wg_scope_end(&scope, NULL);
    wg_tokenizer_free(tokenizer);
    free(text);
}

#ifdef WG_FUZZ_DATA
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    wg__fuzz_data(bytes, count);
    return 0;
}
#endif
