/* A corpus whose words are numbered: see word_corpus.h. */
#include "tests/support/word_corpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/tokenizer/tokenizer.h"
#include "tests/support/testing.h"
#include "data/internal.h"

wg_tokenizer *words_tokenizer(const char *letter, int64_t first, int64_t count) {
    static const char *const specials[SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    char *texts = malloc((size_t)count * 16);
    const char **tokens = malloc((size_t)(SPECIALS + count) * sizeof *tokens);
    memcpy(tokens, specials, sizeof specials);
    for (int64_t i = 0; i < count; i++) {
        snprintf(texts + i * 16, 16, "%s%d", letter, (int)(first + i));
        tokens[SPECIALS + i] = texts + i * 16;
    }
    wg_tokenizer *tokenizer = wg__wordpiece_new(SPECIALS + count, tokens, NULL);
    free(tokens);
    free(texts);
    return tokenizer;
}

word_corpus word_corpus_of(int documents, int sentences, int longest) {
    char *text = malloc((size_t)documents * (size_t)sentences * (size_t)longest * 10);
    size_t used = 0;
    int64_t word = 0;
    for (int d = 0; d < documents; d++) {
        for (int s = 0; s < sentences; s++) {
            for (int i = 0; i < 1 + s % longest; i++)
                used += (size_t)sprintf(text + used, "w%lld ", (long long)word++);
            text[used++] = '\n';
        }
        text[used++] = '\n';
    }
    word_corpus w = {.tokenizer = words_tokenizer("w", 0, word), .words = word};
    w.corpus = wg_dataset_from_text(text, (int64_t)used, NULL, w.tokenizer,
                                    &(wg_dataset_options){.format = WG_SENTENCES_BY_LINE});
    free(text);
    assert_no_error();
    ck_assert_int_eq(wg__dataset_documents(w.corpus), documents);
    ck_assert_int_eq(wg_dataset_tokens(w.corpus), word);
    return w;
}

void word_corpus_free(word_corpus w) {
    wg_dataset_free(w.corpus);
    wg_tokenizer_free(w.tokenizer);
}

int64_t side_of_pair(const wg_dataset *pairs, wg_side side, int64_t pair, int32_t *ids) {
    const int64_t first = wg__dataset_sentence_start(pairs, 2 * pair + side);
    const int64_t count = wg__dataset_sentence_start(pairs, 2 * pair + side + 1) - first;
    if (ids)
        ck_assert_int_eq(wg__dataset_read(pairs, first, count, ids), 0);
    return count;
}

void assert_share(int64_t count, int64_t total, double share) {
    double deviation = sqrt(share * (1 - share) * (double)total);
    ck_assert_msg(fabs((double)count - share * (double)total) < 4 * deviation,
                  "%lld of %lld; wanted %g of them", (long long)count, (long long)total, share);
}

char noted[600];

static void note(void *context, const char *line) {
    (void)context;
    snprintf(noted, sizeof noted, "%s", line);
}

wg_dataset *load_as(wg_dataset_kind kind, int count, const char *const *paths,
                    const wg_tokenizer *tokenizer) {
    return owned(wg_dataset_load(count, paths, tokenizer, &(wg_dataset_options){.kind = kind}));
}

wg_dataset *load_kept(wg_dataset_kind kind, int count, const char *const *paths, const char *kept,
                      const wg_tokenizer *tokenizer) {
    const wg_token_storage storage = {.path = kept, .note = note};
    noted[0] = '\0';
    return owned(wg_dataset_load(count, paths, tokenizer,
                                 &(wg_dataset_options){.kind = kind, .storage = &storage}));
}

void split_dataset(const wg_dataset *all, double share, wg_dataset **training,
                   wg_dataset **held_out) {
    ck_assert_int_eq(wg_dataset_split(all, share, training, held_out), 0);
    owned(*training);
    owned(*held_out);
}

uint64_t file_number(const char *path) {
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_ino;
}

uint64_t hash_of_tensors(int count, wg_tensor *const *tensors) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int k = 0; k < count; k++) {
        const bool flags = wg_tensor_dtype(tensors[k]) == WG_BOOL;
        ck_assert(flags || wg_tensor_dtype(tensors[k]) == WG_I64);
        const void *values = wg_tensor_data(tensors[k]);
        for (int64_t i = 0; i < wg_tensor_count(tensors[k]); i++) {
            const int64_t value = flags ? ((const bool *)values)[i] : ((const int64_t *)values)[i];
            hash = (hash ^ (uint64_t)value) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

/* ---- Tokenizers ---- */

const char *tokens_of(const wg_tokenizer *tokenizer, const char *text,
                      const wg_encode_options *options) {
    static char joined[4096];
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, -1, options, &list), 0);
    joined[0] = '\0';
    for (int64_t i = 0; i < list.count; i++) {
        strcat(joined, i ? " " : "");
        strcat(joined, wg_tokenizer_token(tokenizer, list.ids[i]));
    }
    wg_token_list_free(&list);
    return joined;
}

char *json_of(const wg_tokenizer *tokenizer) {
    char *json = owned(wg_tokenizer_to_json(tokenizer));
    assert_no_error();
    return json;
}

char *text_of_ids(const wg_tokenizer *tokenizer, int64_t count, const int32_t *ids,
                  const wg_decode_options *options) {
    char *text = owned(wg_tokenizer_decode(tokenizer, ids, count, options));
    assert_no_error();
    return text;
}

void assert_comes_back(const wg_tokenizer *tokenizer, const char *text,
                       const wg_encode_options *options) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, -1, options, &list), 0);
    ck_assert_str_eq(text_of_ids(tokenizer, list.count, list.ids, NULL), text);
    wg_token_list_free(&list);
}

void assert_same_tokenizer(const wg_tokenizer *a, const wg_tokenizer *b) {
    ck_assert_int_eq(wg_tokenizer_size(a), wg_tokenizer_size(b));
    for (int32_t i = 0; i < wg_tokenizer_size(a); i++)
        ck_assert_str_eq(wg_tokenizer_token(a, i), wg_tokenizer_token(b, i));
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++)
        ck_assert_int_eq(wg_tokenizer_special(a, i), wg_tokenizer_special(b, i));
}
