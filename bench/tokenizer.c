/* How fast a tokenizer encodes a file, on one core.
 *
 *     bench/tokenizer TOKENIZER FILE [SECONDS]
 *     bench/tokenizer ../shared/data/tokenizers/gpt2 ../shared/data/wikitext-2/wiki.train.tokens
 *
 * The file is encoded as one text, again and again, and then line by line. Prints the best of the
 * runs in MB/s (10^6 bytes), and bytes a token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <wengert/wengert.h>

/* Time of this thread, so that other programs do not count. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static char *read_file(const char *path, int64_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    char *text = malloc((size_t)*length + 1);
    if (text)
        *length = (int64_t)fread(text, 1, (size_t)*length, file);
    fclose(file);
    return text;
}

static int encode_whole(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                        wg_token_list *list) {
    return wg_tokenizer_encode(tokenizer, text, length, NULL, list);
}

static int encode_lines(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                        wg_token_list *list) {
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline + 1 : end;
        if (wg_tokenizer_encode(tokenizer, text, stop - text, NULL, list) < 0)
            return -1;
        text = stop;
    }
    return 0;
}

static int measure(const char *name, const wg_tokenizer *tokenizer, const char *text,
                   int64_t length, double seconds,
                   int (*encode)(const wg_tokenizer *, const char *, int64_t, wg_token_list *)) {
    wg_token_list list = {0};
    double best = 0, begin = now();
    do {
        double start = now();
        list.count = 0;
        if (encode(tokenizer, text, length, &list) < 0)
            break;
        double speed = (double)length / (now() - start) / 1e6;
        best = speed > best ? speed : best;
    } while (now() - begin < seconds);
    if (!wg_error_pending())
        printf("%s: %.1f MB/s, %.2f bytes a token\n", name, best,
               (double)length / (double)(list.count ? list.count : 1));
    wg_token_list_free(&list);
    return wg_error_pending() ? -1 : 0;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench/tokenizer TOKENIZER FILE [SECONDS]\n");
        return 2;
    }
    int64_t length = 0;
    char *text = read_file(argv[2], &length);
    wg_tokenizer *tokenizer = text ? wg_tokenizer_load(argv[1]) : NULL;
    double seconds = argc > 3 ? atof(argv[3]) : 3;
    int status = -1;
    if (tokenizer && measure("whole", tokenizer, text, length, seconds, encode_whole) == 0)
        status = measure("by line", tokenizer, text, length, seconds, encode_lines);
    if (status < 0)
        fprintf(stderr, "bench/tokenizer: %s\n",
                wg_error_pending() ? wg_error_pending()->message : "cannot read the file");
    wg_tokenizer_free(tokenizer);
    free(text);
    return status < 0;
}
