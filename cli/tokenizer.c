/* wengert tokenizer train|encode|decode|pack: learns a vocabulary, converts text to ids and back,
 * and tokenises texts into a token file. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/internal.h"
#include "cli/decoding.h"
#include "cli/output.h"
#include "data/internal.h"

#define TOKENIZER_DOC                                                                              \
    "TOKENIZER is what `wengert tokenizer train' wrote, a checkpoint, or a published file: "       \
    "vocab.txt, vocab.json (with merges.txt beside it), tokenizer.json, tokenizer.model, "         \
    "llama2.c's tokenizer.bin, or a folder with one of these."

/* ---- train ---- */

typedef struct training {
    wg_setting_list corpus;
    const char *out;
    int kind; /* of wg__learner_name */
    const wg__learner *learner;
    wg__learning learning;
    bool json;
} training;

#define TRAINING(member) offsetof(training, member)

static const wg_setting train_rows[] = {
    {"corpus", WG_SETTING_TEXTS, TRAINING(corpus), .word = true, .argument = "FILE...",
     .help = "Learn from these text files"},
    {"out", WG_SETTING_TEXT, TRAINING(out), .missing = "missing --out FILE", .argument = "FILE",
     .help = "The file to write: JSON, or a vocab.txt for WordPiece if the name ends in .txt, or "
             "SentencePiece's file for its two kinds if it ends in .model; into an existing "
             "folder, the formats of other programs"},
    {"kind", WG_SETTING_CHOICE, TRAINING(kind), .choice = wg__learner_name,
     .standard = "\"wordpiece\"", .argument = "KIND", .help = WG__LEARNER_NAMES},
    {"vocab-size", WG_SETTING_INTEGER, TRAINING(learning.vocab_size), .low = 1, .high = INT32_MAX,
     .argument = "N", .help = "WordPiece, BPE, SentencePiece: the largest number of tokens (4096)"},
    {"min-frequency", WG_SETTING_INTEGER, TRAINING(learning.min_frequency), .low = 1,
     .high = INFINITY, .argument = "N",
     .help = "WordPiece and both BPE: join only pairs of pieces that occur at least N times (2)"},
    {"cased", WG_SETTING_FLAG, TRAINING(learning.cased),
     .help = "WordPiece: keep capitals and accents"},
    {"alphabet", WG_SETTING_INTEGER, TRAINING(learning.alphabet), .low = 1, .high = INFINITY,
     .argument = "N",
     .help = "WordPiece, SentencePiece: keep only the N most frequent characters (99.95 % of the "
             "text, of WordPiece at least 1000)"},
    {"byte-fallback", WG_SETTING_FLAG, TRAINING(learning.byte_fallback),
     .help =
         "SentencePiece: characters that are no pieces become their bytes, as LLaMA's, not <unk>"},
    {"unknown", WG_SETTING_FLAG, TRAINING(learning.unknown),
     .help = "Characters: add a token <unk> for characters that the text does not have"},
    WG__ROW_JSON(training),
};

/* Refuses options of another kind. */
static void check_train(const void *values) {
    const training *t = values;
    const wg__learner *kind = wg__learner_of(wg__learner_name(t->kind));
    const wg__learning *l = &t->learning;
    const struct {
        const char *name;
        bool applies;
        const void *member;
    } options[] = {
        {"vocab-size", kind->vocab_size, &l->vocab_size},
        {"min-frequency", kind->min_frequency, &l->min_frequency},
        {"cased", kind->cased, &l->cased},
        {"alphabet", kind->alphabet, &l->alphabet},
        {"byte-fallback", kind->byte_fallback, &l->byte_fallback},
        {"unknown", kind->unknown, &l->unknown},
    };
    if (t->corpus.count == 0 && kind->corpus)
        wg__cli_misuse("missing --corpus FILE");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (!options[i].applies && wg__cli_given(options[i].member))
            wg__cli_misuse("--%s does not apply to --kind %s", options[i].name, kind->name);
}

static int learn(training *t) {
    const wg_wordpiece_report *wordpiece = &t->learning.report;
    struct stat status;
    bool published;
    wg_tokenizer *tokenizer = wg__learn(t->learner, &t->learning);
    if (!tokenizer)
        return wg__cli_fail_pending();
    const char *kind = wg_tokenizer_kind(tokenizer);
    const long long size = wg_tokenizer_size(tokenizer);
    const int result = stat(t->out, &status) == 0 && S_ISDIR(status.st_mode)
                           ? wg_tokenizer_export(tokenizer, t->out, &published)
                       : strcmp(kind, "wordpiece") == 0 && wg__ends_with(t->out, ".txt")
                           ? wg__wordpiece_save(tokenizer, t->out)
                       : strcmp(kind, "sentencepiece") == 0 && wg__ends_with(t->out, ".model")
                           ? wg__sentencepiece_save(tokenizer, t->out)
                           : wg_tokenizer_save(tokenizer, t->out);
    wg_tokenizer_free(tokenizer);
    if (result < 0)
        return wg__cli_fail_pending();
    if (!t->json) {
        printf("%s: %lld tokens\n", t->out, size);
        return 0;
    }
    json_t *report = json_pack("{s:s, s:s, s:I}", "out", t->out, "kind", t->learner->name,
                               "vocab_size", (json_int_t)size);
    if (wordpiece->tokens > 0)
        json_object_update_new(
            report,
            json_pack("{s:b, s:I, s:o}", "lower_case", !t->learning.cased, "alphabet",
                      (json_int_t)wordpiece->alphabet, "unknown_share",
                      wg__json_number((double)wordpiece->unknown / (double)wordpiece->tokens)));
    wg__print_json(JSON_INDENT(2), report);
    return 0;
}

static int run_train(int argc, char **argv) {
    static training t;
    const wg__usage usage = {
        .lines = "--corpus FILE... --out FILE",
        .doc = "Learns a vocabulary from text: BERT's WordPiece, GPT-2's byte-level BPE, "
               "SentencePiece's BPE and unigram model, or the characters of the text; the 256 "
               "bytes need no text.\v"
               "A vocab.txt does not tell whether it is cased: give --cased again when using it.",
        .parts = {WG__PART(train_rows, t)},
        .check = check_train,
    };
    wg__cli_read(&usage, argc, argv);
    t.learner = wg__learner_of(wg__learner_name(t.kind));
    t.learning.count = (int)t.corpus.count;
    t.learning.paths = t.corpus.items;
    return wg__cli_check_distinct(t.out, t.corpus.count, t.corpus.items) != 0 ? EXIT_FAILURE
                                                                              : learn(&t);
}

/* ---- encode and decode ---- */

typedef struct use {
    const char *path;      /* of the tokenizer */
    wg_setting_list texts; /* none: the lines of stdin */
    bool cased, tokens, json;
    wg_encode_options encode;
    wg_decode_options decode;
    wg_tokenizer *tokenizer;
    json_t *results; /* for --json; NULL: they are printed */
} use;

#define USE(member) offsetof(use, member)
#define ROWS_USE                                                                                   \
    {"tokenizer",       WG_SETTING_TEXT, USE(path), .word = true, .missing = "missing TOKENIZER",  \
     .argument = "FILE"},                                                                          \
        {"texts", WG_SETTING_TEXTS, USE(texts), .word = true}, WG__ROW_JSON(use)

/* Loads the tokenizer and calls `work`, which returns 0 or -1, for every text. */
static int run_use(use *u, int (*work)(const use *u, const char *text)) {
    u->tokenizer = u->cased ? wg__wordpiece_load(u->path, &(wg_wordpiece_options){.cased = true})
                            : wg_tokenizer_load(u->path);
    if (!u->tokenizer)
        return wg__cli_fail_pending();
    u->results = u->json ? json_array() : NULL;
    int result = 0;
    for (int64_t i = 0; result == 0 && i < u->texts.count; i++)
        result = work(u, u->texts.items[i]);
    char *line = NULL;
    size_t size = 0;
    while (u->texts.count == 0 && result == 0 && getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        result = work(u, line);
    }
    if (result == 0 && u->texts.count == 0 && ferror(stdin))
        result =
            wg_fail(WG_ERROR_IO, "tokenizer", "cannot read standard input: %s", strerror(errno));
    free(line);
    wg_tokenizer_free(u->tokenizer);
    if (result == 0 && u->json)
        wg__print_json(JSON_INDENT(2), json_pack("{s:O}", "texts", u->results));
    json_decref(u->results);
    return result < 0 ? wg__cli_fail_pending() : 0;
}

static int encode(const use *u, const char *text) {
    wg_token_list list = {0};
    const int result = wg_tokenizer_encode(u->tokenizer, text, -1, &u->encode, &list);
    json_t *ids = u->results ? json_array() : NULL, *tokens = u->results ? json_array() : NULL;
    for (int64_t i = 0; result == 0 && i < list.count; i++) {
        const char *token = wg_tokenizer_token(u->tokenizer, list.ids[i]);
        if (u->results) {
            json_array_append_new(ids, json_integer(list.ids[i]));
            json_array_append_new(tokens, json_string(token));
        } else if (u->tokens) {
            printf("%s%s", i > 0 ? " " : "", token);
        } else {
            printf("%s%d", i > 0 ? " " : "", list.ids[i]);
        }
    }
    if (result == 0 && !u->results)
        putchar('\n');
    if (u->results)
        json_array_append_new(u->results, json_pack("{s:o, s:o}", "ids", ids, "tokens", tokens));
    wg_token_list_free(&list);
    return result;
}

static int decode(const use *u, const char *ids) {
    static const char blanks[] = " \t,";
    wg_token_list list = {0};
    char *text = NULL, *end;
    int result = 0;
    for (ids += strspn(ids, blanks); *ids && result == 0; ids = end + strspn(end, blanks)) {
        errno = 0;
        const long id = strtol(ids, &end, 10);
        const size_t length = strcspn(ids, blanks);
        if (end != ids + length || errno == ERANGE || id < 0 || id > INT32_MAX)
            result = wg_fail(WG_ERROR_FORMAT, "decode", "'%.*s' is not an id",
                             (int)(length < 100 ? length : 100), ids);
        else
            result = wg_token_list_append(&list, (int32_t)id);
    }
    if (result == 0)
        text = wg_tokenizer_decode(u->tokenizer, list.ids, list.count, &u->decode);
    if (text && u->results)
        json_array_append_new(u->results, json_string(text));
    else if (text)
        puts(text);
    result = text ? 0 : -1;
    wg_text_free(text);
    wg_token_list_free(&list);
    return result;
}

static int run_encode(int argc, char **argv) {
    static const wg_setting rows[] = {
        {"tokens", WG_SETTING_FLAG, USE(tokens), .help = "Print the tokens instead of their ids"},
        {"special", WG_SETTING_FLAG, USE(encode.special_tokens),
         .help = "Treat [MASK] and the like in the text as special tokens"},
        {"cased", WG_SETTING_FLAG, USE(cased), .help = "The vocab.txt is cased"},
        ROWS_USE,
    };
    static use u;
    const wg__usage usage = {
        .lines = "TOKENIZER [TEXT...]",
        .doc = "Prints the ids of each text, one text a line.\v" TOKENIZER_DOC
               " Without TEXT, each line of standard input is a text.",
        .parts = {WG__PART(rows, u)},
    };
    wg__cli_read(&usage, argc, argv);
    return run_use(&u, encode);
}

static int run_decode(int argc, char **argv) {
    static const wg_setting rows[] = {
        {"skip-special", WG_SETTING_FLAG, USE(decode.skip_special), .help = "Omit special tokens"},
        ROWS_USE,
    };
    static use u;
    const wg__usage usage = {
        .lines = "TOKENIZER [\"ID...\"...]",
        .doc = "Prints the text of each list of ids, one list a line.\v" TOKENIZER_DOC
               " Without a list, each line of standard input is one.",
        .parts = {WG__PART(rows, u)},
    };
    wg__cli_read(&usage, argc, argv);
    return run_use(&u, decode);
}

/* ---- pack ---- */

typedef struct packing {
    const char *tokenizer, *out;
    wg_setting_list texts;
    bool sentences, pairs, json;
    double hold_out;
} packing;

#define PACKING(member) offsetof(packing, member)

static const wg_setting pack_rows[] = {
    {"tokenizer", WG_SETTING_TEXT, PACKING(tokenizer), .word = true,
     .missing = "missing TOKENIZER or TEXT", .argument = "FILE"},
    {"texts", WG_SETTING_TEXTS, PACKING(texts), .word = true,
     .missing = "missing TOKENIZER or TEXT", .argument = "FILE"},
    {"out", WG_SETTING_TEXT, PACKING(out), .missing = "missing --out FILE.h5",
     .argument = "FILE.h5", .help = "The token file to write or to update"},
    {"sentences", WG_SETTING_FLAG, PACKING(sentences), .excludes = "pairs",
     .help = "Split the text into documents of sentences, for BERT, ModernBERT and GLM (default: "
             "one stream, for GPT, LLaMA and T5)"},
    {"pairs", WG_SETTING_FLAG, PACKING(pairs), .excludes = "sentences",
     .help = "The texts are pairs of files, SOURCE TARGET..., parallel line by line, for a "
             "Transformer that translates"},
    /* The default is the share that `pretrain' holds out. */
    {"hold-out", WG_SETTING_NUMBER, PACKING(hold_out), .high = 0.99, .standard = "0.1",
     .argument = "X",
     .help = "Hold out this share of each file at its end; 0: nothing, then pretrain needs --eval"},
    WG__ROW_JSON(packing),
};

static void check_pack(const void *values) {
    const packing *p = values;
    if ((p->sentences || p->pairs) && wg__cli_given(&p->hold_out))
        wg__cli_misuse(
            "--hold-out does not apply to --%s: training holds out %s of this file itself",
            p->sentences ? "sentences" : "pairs", p->sentences ? "documents" : "pairs");
}

static int run_pack(int argc, char **argv) {
    static packing p;
    const wg__usage usage = {
        .lines = "TOKENIZER TEXT... --out FILE.h5",
        .doc = "Tokenises texts of any size into a file for --corpus.\v" TOKENIZER_DOC
               " The token file holds the tokenizer, too.",
        .parts = {WG__PART(pack_rows, p)},
        .check = check_pack,
    };
    wg__cli_read(&usage, argc, argv);
    const wg_token_storage storage = {.path = p.out, .note = wg__note_tokens};
    const wg_dataset_options options = {.kind = p.sentences ? WG_TEXT_SENTENCES
                                                : p.pairs   ? WG_TEXT_PAIRS
                                                            : WG_TEXT_STREAM,
                                        .storage = &storage};
    const double share = options.kind == WG_TEXT_STREAM ? p.hold_out : 0;
    const int count = (int)p.texts.count;
    wg_dataset *training = NULL, *held_out = NULL;
    wg_tokenizer *tokenizer = wg_tokenizer_load(p.tokenizer);
    if (tokenizer && share > 0)
        wg_dataset_load_split(count, p.texts.items, tokenizer, share, &options, &training,
                              &held_out);
    else if (tokenizer)
        training = wg_dataset_load(count, p.texts.items, tokenizer, &options);
    wg_tokenizer_free(tokenizer);
    if (!training)
        return wg__cli_fail_pending();
    const long long documents = wg__dataset_documents(training) + wg__dataset_documents(held_out),
                    tokens = wg_dataset_tokens(training) + wg_dataset_tokens(held_out);
    wg_dataset_free(training);
    wg_dataset_free(held_out);
    if (p.json)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:s, s:I, s:I}", "out", p.out, "documents",
                                 (json_int_t)documents, "tokens", (json_int_t)tokens));
    else
        printf("%s: %lld documents, %lld tokens\n", p.out, documents, tokens);
    return 0;
}

int wg__verb_tokenizer(int argc, char **argv) {
    static const wg__verb jobs[] = {{"train", "learn a vocabulary", run_train, false},
                                    {"encode", "text to ids", run_encode, false},
                                    {"decode", "ids to text", run_decode, false},
                                    {"pack", "texts to a token file", run_pack, false},
                                    {NULL, NULL, NULL, false}};
    static const wg__verb_table table = {
        .prefix = "wengert tokenizer",
        .noun = "job",
        .title = "Jobs",
        .args_doc = "JOB [ARGUMENT...]",
        .doc = "Learns a vocabulary, and converts text to ids and back.",
        .verbs = jobs,
    };
    const wg__verb *job = wg__cli_verb(&argc, &argv, &table);
    return job->run(argc, argv);
}

/* ---- The kinds of tokenizer that are learnt from text ---- */

/* Characters that are no pieces become bytes in LLaMA's vocabularies, <unk> in T5's. */
static const wg__learner learners[] = {
    {"wordpiece", "wordpiece", WG__LEARN_WORDPIECE, .corpus = true, .vocab_size = true,
     .min_frequency = true, .alphabet = true, .cased = true},
    {"bpe", "bpe", WG__LEARN_BPE, .corpus = true, .vocab_size = true, .min_frequency = true},
    {"sentencepiece-bpe", "sentencepiece", WG__LEARN_SENTENCEPIECE_BPE, .bytes_usual = true,
     .corpus = true, .vocab_size = true, .min_frequency = true, .alphabet = true,
     .byte_fallback = true},
    {"sentencepiece-unigram", "sentencepiece", WG__LEARN_SENTENCEPIECE_UNIGRAM, .corpus = true,
     .vocab_size = true, .alphabet = true, .byte_fallback = true},
    {"char", "char", WG__LEARN_CHARACTERS, .corpus = true, .unknown = true},
    {"byte", "byte", .kind = WG__LEARN_BYTES},
};

wg_tokenizer *wg__learn_quietly(const wg__learner *learner, wg__learning *l) {
    switch (learner->kind) {
    case WG__LEARN_WORDPIECE:
        return wg_wordpiece_train_files(l->count, l->paths,
                                        &(wg_wordpiece_training){.vocabulary_size = l->vocab_size,
                                                                 .min_frequency = l->min_frequency,
                                                                 .alphabet_limit = l->alphabet,
                                                                 .options.cased = l->cased,
                                                                 .report = &l->report});
    case WG__LEARN_BPE:
        return wg_bpe_train_files(l->count, l->paths,
                                  &(wg_bpe_training){.vocabulary_size = l->vocab_size,
                                                     .min_frequency = l->min_frequency});
    case WG__LEARN_SENTENCEPIECE_BPE:
    case WG__LEARN_SENTENCEPIECE_UNIGRAM:
        return wg_sentencepiece_train_files(
            l->count, l->paths,
            &(wg_sentencepiece_training){.unigram =
                                             learner->kind == WG__LEARN_SENTENCEPIECE_UNIGRAM,
                                         .vocabulary_size = l->vocab_size,
                                         .min_frequency = l->min_frequency,
                                         .alphabet_limit = l->alphabet,
                                         .byte_fallback = l->byte_fallback});
    case WG__LEARN_CHARACTERS:
        return wg_char_train_files(l->count, l->paths, &(wg_char_training){.unknown = l->unknown});
    case WG__LEARN_BYTES:
        return wg_byte_new();
    }
    return NULL;
}

const wg__learner *wg__learner_of(const char *name) {
    for (size_t i = 0; i < sizeof learners / sizeof learners[0]; i++)
        if (strcmp(name, learners[i].name) == 0)
            return &learners[i];
    return NULL;
}

const char *wg__learner_name(int index) {
    return index < (int)(sizeof learners / sizeof learners[0]) ? learners[index].name : NULL;
}

wg_tokenizer *wg__learn(const wg__learner *learner, wg__learning *learning) {
    wg_tokenizer *tokenizer = wg__learn_quietly(learner, learning);
    const wg_wordpiece_report *report = &learning->report;
    if (!tokenizer || report->tokens == 0)
        return tokenizer;
    wg__cli_note("%.3f %% of the text's %lld tokens are [UNK]; the vocabulary has %lld characters",
                 100 * ((double)report->unknown / (double)report->tokens),
                 (long long)report->tokens, (long long)report->alphabet);
    if (report->wanted_alphabet > report->alphabet)
        wg__cli_note("the vocabulary is too small for the %lld characters that make up 99.95 %% of "
                     "the text; one of %lld tokens can hold them",
                     (long long)report->wanted_alphabet, (long long)report->wanted_vocabulary);
    return tokenizer;
}
