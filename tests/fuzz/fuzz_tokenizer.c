/* Fuzzes all readers of tokenizers: the first byte picks the reader, the rest is the file. A
 * tokenizer that could be read also has to encode and decode, and to survive our own JSON.
 *
 * Without libFuzzer this is a program that reads the files named to it, once each: make check gives
 * it the seeds (seeds.sh). run.sh fuzzes. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/kind.h"
#include "tensor/internal.h"

#define ENCODED 256 /* bytes of a file that are also encoded */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static wg_tokenizer *read_json(const char *bytes, int64_t length,
                               wg_tokenizer *(*read)(const json_t *)) {
    json_t *root = wg__json_parse(bytes, length, "fuzz");
    wg_tokenizer *tokenizer = root ? read(root) : NULL;
    json_decref(root);
    return tokenizer;
}

static wg_tokenizer *read_huggingface(const json_t *root) {
    return wg__huggingface_read(root, "fuzz");
}

/* vocab.json, a NUL, merges.txt. */
static wg_tokenizer *read_bpe(const char *bytes, int64_t length) {
    const char *nul = memchr(bytes, '\0', (size_t)length);
    int64_t json_length = nul ? nul - bytes : length;
    int64_t merges_length = nul ? length - json_length - 1 : 0;
    json_t *vocabulary = wg__json_parse(bytes, json_length, "fuzz");
    char *merges = calloc((size_t)merges_length + 1, 1);
    if (nul && merges)
        memcpy(merges, nul + 1, (size_t)merges_length);
    wg_tokenizer *tokenizer = vocabulary && merges
                                  ? wg__bpe_read(vocabulary, "fuzz", merges, merges_length, "fuzz")
                                  : NULL;
    free(merges);
    json_decref(vocabulary);
    return tokenizer;
}

static wg_tokenizer *read_tokenizer(int reader, const char *bytes, int64_t length) {
    switch (reader) {
    case 's':
        return wg__sentencepiece_read(bytes, length, "fuzz");
    case 'l':
        return wg__llama2c_read(bytes, length, "fuzz");
    case 'h':
        return read_json(bytes, length, read_huggingface);
    case 'j':
        return read_json(bytes, length, wg__tokenizer_of_json);
    case 'g':
        return read_bpe(bytes, length);
    default:
        return NULL;
    }
}

static void use(const wg_tokenizer *tokenizer, const char *bytes, int64_t length) {
    static const char text[] = "the <s>[MASK]\xEF\xBC\xA1\xC2\xBD e\xCC\x81  \xF0\x9F\x91\xA9 ab\0";
    wg_encode_options options = {.special_tokens = true};
    wg_token_list list = {0};
    wg_tokenizer_encode(tokenizer, text, sizeof text - 1, &options, &list);
    wg_tokenizer_encode(tokenizer, bytes, length < ENCODED ? length : ENCODED, NULL, &list);
    for (int32_t id = 0; id < 300 && id < wg_tokenizer_size(tokenizer); id++)
        wg_token_list_append(&list, id);
    wg_text_free(wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL));
    wg_token_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    int64_t length = (int64_t)size - 1;
    char *bytes = calloc(size, 1); /* readers of text rely on a NUL behind it */
    memcpy(bytes, data + 1, size - 1);
    wg_tokenizer *tokenizer = read_tokenizer(data[0], bytes, length);
    if (tokenizer) {
        use(tokenizer, bytes, length);
        wg_error_clear();
        char *json = wg_tokenizer_to_json(tokenizer);
        wg_tokenizer *again = wg_tokenizer_from_json(json);
        if (!again) /* what was written could not be read */
            abort();
        wg_text_free(json);
        wg_tokenizer_free(again);
        wg_tokenizer_free(tokenizer);
    }
    wg_error_clear();
    free(bytes);
    return 0;
}

#ifndef WG_LIBFUZZER
int main(int argc, char **argv) {
    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        static uint8_t bytes[1 << 20];
        size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (file)
            fclose(file);
        LLVMFuzzerTestOneInput(bytes, size);
        printf("%sok %d - %s\n", file ? "" : "not ", i, argv[i]);
    }
    return 0;
}
#endif
