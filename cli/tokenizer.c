/* wengert tokenizer train|encode|decode|pack: learns a vocabulary, converts text to ids and back,
 * and tokenises texts into a token file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/learners.h"
#include "cli/output.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/sentencepiece_train.h"

#define USUAL_HOLD_OUT 0.1 /* of each file of a stream, as `pretrain' holds out */

enum {
    KEY_CORPUS = WG__KEY_OWN,
    KEY_OUT,
    KEY_KIND,
    KEY_VOCAB_SIZE,
    KEY_CASED,
    KEY_MIN_FREQUENCY,
    KEY_ALPHABET,
    KEY_UNKNOWN,
    KEY_BYTE_FALLBACK,
    KEY_SPECIAL,
    KEY_TOKENS,
    KEY_SKIP_SPECIAL,
    KEY_SENTENCES,
    KEY_PAIRS,
    KEY_HOLD_OUT,
};

#define TOKENIZER_DOC                                                                              \
    "TOKENIZER is what `wengert tokenizer train' wrote, a checkpoint, or a published file: "       \
    "vocab.txt, vocab.json (with merges.txt beside it), tokenizer.json, tokenizer.model, "         \
    "llama2.c's tokenizer.bin, or a folder with one of these."

/* ---- train ---- */

typedef struct training {
    const char **corpus; /* room for all arguments */
    const char *out;
    const wg__learner *learner;
    wg__learning learning;
    bool json;
} training;

static const struct argp_option train_options[] = {
    {"corpus", KEY_CORPUS, "FILE...", 0, "Learn from these text files", 0},
    {"out", KEY_OUT, "FILE", 0,
     "The file to write: JSON, or a vocab.txt for WordPiece if the name ends in .txt, or "
     "SentencePiece's file for its two kinds if it ends in .model; into an existing "
     "folder, the formats of other programs",
     0},
    {"kind", KEY_KIND, "KIND", 0, WG__LEARNER_NAMES "; wordpiece is the default", 0},
    {"vocab-size", KEY_VOCAB_SIZE, "N", 0,
     "WordPiece, BPE, SentencePiece: the largest number of tokens (4096)", 0},
    {"min-frequency", KEY_MIN_FREQUENCY, "N", 0,
     "WordPiece and both BPE: join only pairs of pieces that occur at least N times (2)", 0},
    {"cased", KEY_CASED, NULL, 0, "WordPiece: keep capitals and accents", 0},
    {"alphabet", KEY_ALPHABET, "N", 0,
     "WordPiece, SentencePiece: keep only the N most frequent characters (as many as make up 99.95 "
     "% of the text, of WordPiece at least 1000)",
     0},
    {"byte-fallback", KEY_BYTE_FALLBACK, NULL, 0,
     "SentencePiece: characters that are no pieces become their bytes, as LLaMA's, not <unk>", 0},
    {"unknown", KEY_UNKNOWN, NULL, 0,
     "Characters: add a token <unk> for characters that the text does not have", 0},
    WG__OPTION_JSON,
    {0},
};

static const wg__learner *learner_of(struct argp_state *state, const char *name) {
    const wg__learner *learner = wg__learner_of(name);
    char suggestion[96];
    if (!learner)
        argp_error(state, "--kind is '%s'; it must be " WG__LEARNER_NAMES "%s", name,
                   wg__cli_suggestion(suggestion, sizeof suggestion, name, wg__learner_name));
    return learner;
}

/* Reports missing options, and options of another kind. */
static void check_train(struct argp_state *state, const training *t) {
    const wg__learner *kind = t->learner;
    const wg__learning *l = &t->learning;
    const struct {
        const char *name;
        bool applies, given;
    } options[] = {
        {"vocab-size", kind->vocab_size, l->vocab_size > 0},
        {"min-frequency", kind->min_frequency, l->min_frequency > 0},
        {"cased", kind->cased, l->cased},
        {"alphabet", kind->alphabet, l->alphabet > 0},
        {"byte-fallback", kind->byte_fallback, l->byte_fallback},
        {"unknown", kind->unknown, l->unknown},
    };
    if (l->count == 0 && kind->corpus)
        argp_error(state, "missing --corpus FILE");
    if (!t->out)
        argp_error(state, "missing --out FILE");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].given && !options[i].applies)
            argp_error(state, "--%s does not apply to --kind %s", options[i].name, kind->name);
}

static error_t parse_train(int key, char *text, struct argp_state *state) {
    training *t = state->input;
    wg__learning *l = &t->learning;
    switch (key) {
    case KEY_CORPUS:
    case ARGP_KEY_ARG: /* more files after --corpus, expanded by a shell */
        t->corpus[l->count++] = text;
        return 0;
    case KEY_OUT:
        t->out = text;
        return 0;
    case KEY_KIND:
        t->learner = learner_of(state, text);
        return 0;
    case KEY_VOCAB_SIZE:
        l->vocab_size = wg__cli_integer(state, "vocab-size", text, 1, INT32_MAX);
        return 0;
    case KEY_CASED:
        l->cased = true;
        return 0;
    case KEY_MIN_FREQUENCY:
        l->min_frequency = wg__cli_integer(state, "min-frequency", text, 1, INT64_MAX);
        return 0;
    case KEY_ALPHABET:
        l->alphabet = wg__cli_integer(state, "alphabet", text, 1, INT64_MAX);
        return 0;
    case KEY_UNKNOWN:
        l->unknown = true;
        return 0;
    case KEY_BYTE_FALLBACK:
        l->byte_fallback = true;
        return 0;
    case WG__KEY_JSON:
        t->json = true;
        return 0;
    case ARGP_KEY_END:
        check_train(state, t);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int save(const training *t, const wg_tokenizer *tokenizer) {
    struct stat status;
    bool published;
    if (stat(t->out, &status) == 0 && S_ISDIR(status.st_mode))
        return wg_tokenizer_export(tokenizer, t->out, &published);
    const char *kind = wg_tokenizer_kind(tokenizer);
    if (strcmp(kind, "wordpiece") == 0 && ends_in(t->out, ".txt"))
        return wg_wordpiece_save(tokenizer, t->out);
    if (strcmp(kind, "sentencepiece") == 0 && ends_in(t->out, ".model"))
        return wg_sentencepiece_save(tokenizer, t->out);
    return wg_tokenizer_save(tokenizer, t->out);
}

static json_t *report_of(const training *t, long long size) {
    const wg_wordpiece_report *wordpiece = &t->learning.report;
    json_t *report = json_pack("{s:s, s:s, s:I}", "out", t->out, "kind", t->learner->name,
                               "vocab_size", (json_int_t)size);
    if (wordpiece->tokens > 0) {
        json_object_set_new(report, "lower_case", json_boolean(!t->learning.cased));
        json_object_set_new(report, "alphabet", json_integer(wordpiece->alphabet));
        json_object_set_new(report, "unknown_share", wg__json_number(wg__unknown_share(wordpiece)));
    }
    return report;
}

static int learn(training *t) {
    wg_tokenizer *tokenizer = wg__learn(t->learner, &t->learning);
    const int result = tokenizer ? save(t, tokenizer) : -1;
    const long long size = wg_tokenizer_size(tokenizer);
    wg_tokenizer_free(tokenizer);
    if (result < 0)
        return wg__cli_fail_pending();
    if (t->json)
        wg__print_json(report_of(t, size));
    else
        printf("%s: %lld tokens\n", t->out, size);
    return 0;
}

static int run_train(int argc, char **argv) {
    static const struct argp parser = {
        .options = train_options,
        .parser = parse_train,
        .args_doc = "--corpus FILE... --out FILE",
        .doc = "Learns a vocabulary from text: BERT's WordPiece, GPT-2's byte-level BPE, "
               "SentencePiece's BPE and unigram model, or the characters of the text; the 256 "
               "bytes need no text.\v"
               "A vocab.txt does not tell whether it is cased: give --cased again when using it.",
    };
    training t = {.learner = wg__learner_of("wordpiece")};
    t.corpus = calloc((size_t)argc + 1, sizeof *t.corpus);
    if (!t.corpus)
        return wg__cli_fail("no memory");
    t.learning.paths = t.corpus;
    wg__cli_parse(&parser, argc, argv, &t);
    int code = wg__cli_check_apart(t.out, t.learning.count, t.corpus);
    if (code == 0)
        code = learn(&t);
    free(t.corpus);
    return code;
}

/* ---- encode and decode ---- */

typedef struct use {
    const char *path; /* of the tokenizer */
    char **texts;     /* NULL: the lines of stdin */
    int text_count;
    bool cased, tokens, json;
    wg_encode_options encode;
    wg_decode_options decode;
    wg_tokenizer *tokenizer;
    json_t *results; /* for --json; NULL: they are printed */
} use;

static error_t parse_use(int key, char *text, struct argp_state *state) {
    use *u = state->input;
    switch (key) {
    case KEY_CASED:
        u->cased = true;
        return 0;
    case KEY_SPECIAL:
        u->encode.special_tokens = true;
        return 0;
    case KEY_TOKENS:
        u->tokens = true;
        return 0;
    case KEY_SKIP_SPECIAL:
        u->decode.skip_special = true;
        return 0;
    case WG__KEY_JSON:
        u->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (u->path)
            return ARGP_ERR_UNKNOWN; /* the rest comes as ARGP_KEY_ARGS */
        u->path = text;
        return 0;
    case ARGP_KEY_ARGS:
        u->texts = state->argv + state->next;
        u->text_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (!u->path)
            argp_error(state, "missing TOKENIZER");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Loads the tokenizer and calls `work`, which returns 0 or -1, for every text. */
static int run_use(use *u, int (*work)(const use *u, const char *text)) {
    u->tokenizer = u->cased ? wg_wordpiece_load(u->path, &(wg_wordpiece_options){.cased = true})
                            : wg_tokenizer_load(u->path);
    if (!u->tokenizer)
        return wg__cli_fail_pending();
    u->results = u->json ? json_array() : NULL;
    int result = 0;
    for (int i = 0; result == 0 && i < u->text_count; i++)
        result = work(u, u->texts[i]);
    char *line = NULL;
    size_t size = 0;
    while (!u->texts && result == 0 && getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        result = work(u, line);
    }
    if (result == 0 && !u->texts && ferror(stdin))
        result =
            wg_fail(WG_ERROR_IO, "tokenizer", "cannot read standard input: %s", strerror(errno));
    free(line);
    wg_tokenizer_free(u->tokenizer);
    if (result == 0 && u->json)
        wg__print_json(json_pack("{s:O}", "texts", u->results));
    json_decref(u->results);
    return result < 0 ? wg__cli_fail_pending() : 0;
}

static json_t *list_json(const use *u, const wg_token_list *list) {
    json_t *ids = json_array(), *tokens = json_array();
    for (int64_t i = 0; i < list->count; i++) {
        json_array_append_new(ids, json_integer(list->ids[i]));
        json_array_append_new(tokens, json_string(wg_tokenizer_token(u->tokenizer, list->ids[i])));
    }
    return json_pack("{s:o, s:o}", "ids", ids, "tokens", tokens);
}

static int encode(const use *u, const char *text) {
    wg_token_list list = {0};
    int result = wg_tokenizer_encode(u->tokenizer, text, -1, &u->encode, &list);
    if (result == 0 && u->results)
        json_array_append_new(u->results, list_json(u, &list));
    for (int64_t i = 0; result == 0 && !u->results && i < list.count; i++) {
        if (i > 0)
            putchar(' ');
        if (u->tokens)
            fputs(wg_tokenizer_token(u->tokenizer, list.ids[i]), stdout);
        else
            printf("%d", list.ids[i]);
    }
    if (result == 0 && !u->results)
        putchar('\n');
    wg_token_list_free(&list);
    return result;
}

static int read_ids(const char *text, wg_token_list *list) {
    const char *const blanks = " \t,";
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        char *end;
        errno = 0;
        long id = strtol(text, &end, 10);
        size_t length = strcspn(text, blanks);
        if (end != text + length || errno == ERANGE || id < 0 || id > INT32_MAX)
            return wg_fail(WG_ERROR_FORMAT, "decode", "'%.*s' is not an id",
                           (int)(length < 100 ? length : 100), text);
        if (wg_token_list_append(list, (int32_t)id) < 0)
            return -1;
        text = end;
    }
    return 0;
}

static int decode(const use *u, const char *ids) {
    wg_token_list list = {0};
    char *text = NULL;
    if (read_ids(ids, &list) == 0)
        text = wg_tokenizer_decode(u->tokenizer, list.ids, list.count, &u->decode);
    if (text && u->results)
        json_array_append_new(u->results, json_string(text));
    else if (text)
        puts(text);
    int result = text ? 0 : -1;
    wg_text_free(text);
    wg_token_list_free(&list);
    return result;
}

static int run_encode(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"tokens", KEY_TOKENS, NULL, 0, "Print the tokens instead of their ids", 0},
        {"special", KEY_SPECIAL, NULL, 0, "Treat [MASK] and the like in the text as special tokens",
         0},
        {"cased", KEY_CASED, NULL, 0, "The vocab.txt is cased", 0},
        WG__OPTION_JSON,
        {0},
    };
    static const struct argp parser = {
        .options = options,
        .parser = parse_use,
        .args_doc = "TOKENIZER [TEXT...]",
        .doc = "Prints the ids of each text, one text a line.\v" TOKENIZER_DOC
               " Without TEXT, each line of standard input is a text.",
    };
    use u = {0};
    wg__cli_parse(&parser, argc, argv, &u);
    return run_use(&u, encode);
}

static int run_decode(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"skip-special", KEY_SKIP_SPECIAL, NULL, 0, "Omit special tokens", 0},
        WG__OPTION_JSON,
        {0},
    };
    static const struct argp parser = {
        .options = options,
        .parser = parse_use,
        .args_doc = "TOKENIZER [\"ID...\"...]",
        .doc = "Prints the text of each list of ids, one list a line.\v" TOKENIZER_DOC
               " Without a list, each line of standard input is one.",
    };
    use u = {0};
    wg__cli_parse(&parser, argc, argv, &u);
    return run_use(&u, decode);
}

/* ---- pack ---- */

typedef struct packing {
    const char *tokenizer, *out;
    const char **texts; /* room for all arguments */
    int text_count;
    bool sentences, pairs, json;
    double hold_out; /* negative: not given */
} packing;

static error_t parse_pack(int key, char *text, struct argp_state *state) {
    packing *p = state->input;
    switch (key) {
    case KEY_OUT:
        p->out = text;
        return 0;
    case KEY_SENTENCES:
        p->sentences = true;
        return 0;
    case KEY_PAIRS:
        p->pairs = true;
        return 0;
    case KEY_HOLD_OUT:
        p->hold_out = wg__cli_number(state, "hold-out", text, 0, 0.99);
        return 0;
    case WG__KEY_JSON:
        p->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (p->tokenizer)
            p->texts[p->text_count++] = text;
        else
            p->tokenizer = text;
        return 0;
    case ARGP_KEY_END:
        if (!p->tokenizer || p->text_count == 0)
            argp_error(state, "missing TOKENIZER or TEXT");
        if (!p->out)
            argp_error(state, "missing --out FILE.h5");
        if (p->sentences && p->pairs)
            argp_error(state, "--sentences and --pairs exclude each other");
        if ((p->sentences || p->pairs) && p->hold_out >= 0)
            argp_error(state,
                       "--hold-out does not apply to --%s: training holds out %s of such a file",
                       p->sentences ? "sentences" : "pairs", p->sentences ? "documents" : "pairs");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int print_packing(const packing *p, const wg_dataset *training, const wg_dataset *held_out) {
    const long long documents = wg_dataset_documents(training) + wg_dataset_documents(held_out),
                    tokens = wg_dataset_tokens(training) + wg_dataset_tokens(held_out);
    if (p->json)
        wg__print_json(json_pack("{s:s, s:I, s:I}", "out", p->out, "documents",
                                 (json_int_t)documents, "tokens", (json_int_t)tokens));
    else
        printf("%s: %lld documents, %lld tokens\n", p->out, documents, tokens);
    return 0;
}

static int pack_texts(const packing *p, const wg_tokenizer *tokenizer,
                      const wg_dataset_options *options) {
    const double share = options->kind != WG_TEXT_STREAM ? 0
                         : p->hold_out < 0               ? USUAL_HOLD_OUT
                                                         : p->hold_out;
    wg_dataset *training = NULL, *held_out = NULL;
    if (share > 0)
        wg_dataset_load_split(p->text_count, p->texts, tokenizer, share, options, &training,
                              &held_out);
    else
        training = wg_dataset_load(p->text_count, p->texts, tokenizer, options);
    const int result = training ? print_packing(p, training, held_out) : -1;
    wg_dataset_free(training);
    wg_dataset_free(held_out);
    return result;
}

static int pack(const packing *p) {
    const wg_token_storage storage = {.path = p->out, .note = wg__note_tokens};
    wg_tokenizer *tokenizer = wg_tokenizer_load(p->tokenizer);
    const wg_dataset_options options = {.kind = p->sentences ? WG_TEXT_SENTENCES
                                                : p->pairs   ? WG_TEXT_PAIRS
                                                             : WG_TEXT_STREAM,
                                        .storage = &storage};
    const int result = tokenizer ? pack_texts(p, tokenizer, &options) : -1;
    wg_tokenizer_free(tokenizer);
    return result < 0 ? wg__cli_fail_pending() : 0;
}

static int run_pack(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"out", KEY_OUT, "FILE.h5", 0, "The token file to write or to update", 0},
        {"sentences", KEY_SENTENCES, NULL, 0,
         "Split the text into documents of sentences, for BERT, ModernBERT and GLM (default: one "
         "stream, for "
         "GPT, LLaMA and T5)",
         0},
        {"pairs", KEY_PAIRS, NULL, 0,
         "The texts are pairs of files, SOURCE TARGET..., parallel line by line, for a "
         "Transformer that translates",
         0},
        {"hold-out", KEY_HOLD_OUT, "X", 0,
         "Hold out this share of each file at its end (0.1); 0: nothing, then pretrain needs "
         "--eval",
         0},
        WG__OPTION_JSON,
        {0},
    };
    static const struct argp parser = {
        .options = options,
        .parser = parse_pack,
        .args_doc = "TOKENIZER TEXT... --out FILE.h5",
        .doc = "Tokenises texts of any size into a file for --corpus.\v" TOKENIZER_DOC
               " The token file holds the tokenizer, too.",
    };
    packing p = {.hold_out = -1};
    p.texts = calloc((size_t)argc + 1, sizeof *p.texts);
    if (!p.texts)
        return wg__cli_fail("no memory");
    wg__cli_parse(&parser, argc, argv, &p);
    const int code = pack(&p);
    free(p.texts);
    return code;
}

/* ---- The verb ---- */

static const struct job {
    const char *name;
    int (*run)(int argc, char **argv);
} jobs[] = {
    {"train", run_train}, {"encode", run_encode}, {"decode", run_decode}, {"pack", run_pack}};

typedef struct choice {
    const struct job *job;
    int argc; /* of the job's own arguments, with the job first */
    char **argv;
} choice;

static const char *job_name(const void *context, int index) {
    (void)context;
    return (size_t)index < sizeof jobs / sizeof jobs[0] ? jobs[index].name : NULL;
}

static error_t parse_choice(int key, char *text, struct argp_state *state) {
    choice *c = state->input;
    char suggestion[96];
    if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "missing job: train, encode, decode or pack");
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        if (strcmp(jobs[i].name, text) == 0)
            c->job = &jobs[i];
    if (!c->job)
        argp_error(state, "the job is '%s'; it must be train, encode, decode or pack%s", text,
                   wg_suggestion(suggestion, sizeof suggestion, text, job_name, NULL));
    c->argc = state->argc - state->next + 1;
    c->argv = state->argv + state->next - 1;
    state->next = state->argc;
    return 0;
}

int wg__verb_tokenizer(int argc, char **argv) {
    static const struct argp parser = {
        .parser = parse_choice,
        .args_doc = "train --corpus FILE... --out FILE\nencode TOKENIZER [TEXT...]\n"
                    "decode TOKENIZER [\"ID...\"...]\npack TOKENIZER TEXT... --out FILE.h5",
        .doc = "Learns a vocabulary, and converts text to ids and back.\v"
               "`wengert tokenizer train --help' and so on describe each job.",
    };
    choice c = {0};
    wg__cli_look_at_options(&parser, argc, argv, job_name, NULL);
    argp_err_exit_status = 2;
    wg__cli_argp(&parser, argc, argv, ARGP_IN_ORDER, &c);
    char name[64];
    snprintf(name, sizeof name, "wengert tokenizer %s", c.job->name);
    c.argv[0] = name;
    return c.job->run(c.argc, c.argv);
}
