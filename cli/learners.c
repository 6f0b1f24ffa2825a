/* The kinds of tokenizer that are learnt from text. See learners.h. */
#include <string.h>

#include "cli/cli.h"
#include "cli/learners.h"
#include "data/tokenizer/tokenizer.h"

static wg_tokenizer *learn_wordpiece(wg__learning *l) {
    return wg_wordpiece_train_files(l->count, l->paths,
                                    &(wg_wordpiece_training){.vocabulary_size = l->vocab_size,
                                                             .min_frequency = l->min_frequency,
                                                             .alphabet_limit = l->alphabet,
                                                             .options.cased = l->cased,
                                                             .report = &l->report});
}

static wg_tokenizer *learn_bpe(wg__learning *l) {
    return wg_bpe_train_files(
        l->count, l->paths,
        &(wg_bpe_training){.vocabulary_size = l->vocab_size, .min_frequency = l->min_frequency});
}

static wg_tokenizer *learn_sentencepiece(const wg__learning *l, bool unigram) {
    return wg_sentencepiece_train_files(
        l->count, l->paths,
        &(wg_sentencepiece_training){.unigram = unigram,
                                     .vocabulary_size = l->vocab_size,
                                     .min_frequency = l->min_frequency,
                                     .alphabet_limit = l->alphabet,
                                     .byte_fallback = l->byte_fallback});
}

static wg_tokenizer *learn_sentencepiece_bpe(wg__learning *l) {
    return learn_sentencepiece(l, false);
}

static wg_tokenizer *learn_sentencepiece_unigram(wg__learning *l) {
    return learn_sentencepiece(l, true);
}

static wg_tokenizer *learn_characters(wg__learning *l) {
    return wg_char_train_files(l->count, l->paths, &(wg_char_training){.unknown = l->unknown});
}

static wg_tokenizer *learn_bytes(wg__learning *l) {
    (void)l;
    return wg_byte_new();
}

/* Characters that are no pieces become bytes in LLaMA's vocabularies, <unk> in T5's. */
static const wg__learner learners[] = {
    {"wordpiece", "wordpiece", .corpus = true, .vocab_size = true, .min_frequency = true,
     .alphabet = true, .cased = true, .learn = learn_wordpiece},
    {"bpe", "bpe", .corpus = true, .vocab_size = true, .min_frequency = true, .learn = learn_bpe},
    {"sentencepiece-bpe", "sentencepiece", .bytes_usual = true, .corpus = true, .vocab_size = true,
     .min_frequency = true, .alphabet = true, .byte_fallback = true,
     .learn = learn_sentencepiece_bpe},
    {"sentencepiece-unigram", "sentencepiece", .corpus = true, .vocab_size = true, .alphabet = true,
     .byte_fallback = true, .learn = learn_sentencepiece_unigram},
    {"char", "char", .corpus = true, .unknown = true, .learn = learn_characters},
    {"byte", "byte", .learn = learn_bytes},
};

const wg__learner *wg__learner_of(const char *name) {
    for (size_t i = 0; i < sizeof learners / sizeof learners[0]; i++)
        if (strcmp(name, learners[i].name) == 0)
            return &learners[i];
    return NULL;
}

const char *wg__learner_name(int index) {
    return index < (int)(sizeof learners / sizeof learners[0]) ? learners[index].name : NULL;
}

double wg__unknown_share(const wg_wordpiece_report *report) {
    return report->tokens > 0 ? (double)report->unknown / (double)report->tokens : 0;
}

wg_tokenizer *wg__learn(const wg__learner *learner, wg__learning *learning) {
    wg_tokenizer *tokenizer = learner->learn(learning);
    const wg_wordpiece_report *report = &learning->report;
    if (!tokenizer || report->tokens == 0)
        return tokenizer;
    wg__cli_note("%.3f %% of the text's %lld tokens are [UNK]; the vocabulary has %lld characters",
                 100 * wg__unknown_share(report), (long long)report->tokens,
                 (long long)report->alphabet);
    if (report->wanted_alphabet > report->alphabet)
        wg__cli_note("the vocabulary is too small for the %lld characters that make up 99.95 %% of "
                     "the text; one of %lld tokens can hold them",
                     (long long)report->wanted_alphabet, (long long)report->wanted_vocabulary);
    return tokenizer;
}
