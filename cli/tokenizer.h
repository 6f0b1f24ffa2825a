/* What the jobs of `wengert tokenizer' share. */
#ifndef WG_CLI_TOKENIZER_H
#define WG_CLI_TOKENIZER_H

#define WG__TOKENIZER_DOC                                                                          \
    "TOKENIZER is what `wengert tokenizer train' wrote, a checkpoint, or a published file: "       \
    "vocab.txt, vocab.json (with merges.txt beside it), tokenizer.json, tokenizer.model, "         \
    "llama2.c's tokenizer.bin, or a folder with one of these."

int wg__tokenizer_pack(int argc, char **argv);

#endif
