/* The rows of pretrain's and finetune's settings: see run.h. An objective's file has its own rows.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/decoding.h"
#include "cli/run.h"
#include "models/internal.h"

static const char *schedule_name(int kind) {
    return kind < WG_SCHEDULE_OWN ? wg__schedule_name((wg_schedule_kind)kind) : NULL;
}

#define TEXT(member) offsetof(wg__text_settings, member)
#define TUNING(member) offsetof(wg__tuning_settings, member)
#define TRAINING(member) offsetof(wg__training_settings, member)

static const wg_setting text_rows[] = {
    {"corpus", WG_SETTING_FILES, TEXT(corpus), .word = true,
     .heading = "Text:", .argument = "FILE...",
     .help = "Train on these text files, or token files of `wengert tokenizer pack'; models that "
             "translate on a source and its target, line by line (or several pairs of files)"},
    {"corpus-weights", WG_SETTING_NUMBERS, TEXT(corpus_weights), .low = 1e-9, .high = 1e9,
     .fixed = true, .argument = "X,X...",
     .help = "Take from each of these files (of pairs: each two) in proportion to these weights, "
             "whatever their sizes"},
    {"tokens", WG_SETTING_FILE, TEXT(tokens), .argument = "FILE.h5",
     .help = "Keep the corpus's tokens in this file, and use them again while texts and tokenizer "
             "are the same (default: a temporary file in $TMPDIR)"},
    {"eval", WG_SETTING_FILE, TEXT(eval), .argument = "FILE",
     .help = "Measure on this text, of pairs SOURCE TARGET (default: hold out a twentieth of the "
             "documents of prose, the last twentieth of the pairs, the last tenth of each file of "
             "other texts)"},
    {.name = "eval-target", .kind = WG_SETTING_FILE, .offset = TEXT(eval_target)},
    {"tokenizer", WG_SETTING_TEXT, TEXT(tokenizer), .fixed = true, .choice = wg__learner_name,
     .argument = "KIND|FILE",
     .help = "Learn a vocabulary from the corpus: " WG__LEARNER_NAMES
             "; or read one: what `wengert tokenizer train' wrote, or a published file"},
    {"vocab-size", WG_SETTING_INTEGER, TEXT(vocab_size), .low = 1, .high = INT32_MAX, .fixed = true,
     .argument = "N", .help = "Learn a vocabulary of N tokens (4096)"},
    {"alphabet", WG_SETTING_INTEGER, TEXT(alphabet), .low = 1, .high = INT32_MAX, .fixed = true,
     .argument = "N",
     .help = "WordPiece, SentencePiece: keep only the N most frequent characters (99.95 % of the "
             "text, of WordPiece at least 1000)"},
    {"preset", WG_SETTING_TEXT, TEXT(preset), .fixed = true, .excludes = "config",
     .choice = wg__model_preset_name, .heading = "Model:", .argument = "NAME",
     .help = "A published or small configuration"},
    {"config", WG_SETTING_FILE, TEXT(config), .fixed = true, .excludes = "preset",
     .argument = "FILE.json", .help = "A published configuration instead of a preset"},
    {"init", WG_SETTING_FILE, TEXT(init), .argument = "FILE.h5",
     .help = "Begin with the weights, the sizes and the tokenizer of a checkpoint, for example of "
             "a converted published model"},
    {"extend-vocab", WG_SETTING_INTEGER, TEXT(extend_vocab), .low = 1, .high = INT32_MAX,
     .fixed = true, .argument = "N",
     .help = "Add up to N tokens to the vocabulary of --init, learnt from the corpus by merging "
             "on; each begins as the mean of its pieces"},
};

static const wg_setting tuning_rows[] = {
    {.name = "model",
     .kind = WG_SETTING_FILE,
     .offset = TUNING(model),
     .word = true,
     .argument = "RUN.h5"},
    {"train", WG_SETTING_FILE, TUNING(train), .heading = "Task:", .argument = "FILE",
     .help = "Train on this file: a text (or two) and its label a line, with tabs between them, or "
             "a first line that names columns, or JSON lines; for tokens CoNLL's columns, a word "
             "and its tag a line; for squad JSON as of SQuAD 1.1"},
    {"eval", WG_SETTING_FILE, TUNING(eval), .argument = "FILE",
     .help = "Measure on this file of the same form"},
    {"epochs", WG_SETTING_NUMBER, TUNING(epochs), .excludes = "steps", .high = 1e9, .above = true,
     .argument = "X", .help = "Go through the file X times"},
};

static const wg_setting training_rows[] = {
    {"steps", WG_SETTING_INTEGER, TRAINING(trainer.steps), .low = 1, .high = INFINITY,
     .excludes = "epochs", .standard = "1000", .heading = "Training:", .argument = "N",
     .help = "Train for N steps; finetune: as --epochs says"},
    {"batch", WG_SETTING_INTEGER, TRAINING(setup.batch), .low = 1, .high = INT32_MAX, .fixed = true,
     .standard = "32", .argument = "N",
     .help = "Sequences in a batch; of pairs tokens of a side with their padding"},
    {"accumulate", WG_SETTING_INTEGER, TRAINING(trainer.accumulate), .low = 1, .high = INT32_MAX,
     .fixed = true, .argument = "N", .help = "Step by N batches as by one of them all (1)"},
    {"accumulate-ramp", WG_SETTING_INTEGER, TRAINING(trainer.accumulate_ramp), .high = INT32_MAX,
     .fixed = true, .argument = "N",
     .help = "Begin with one batch in a step, and rise to --accumulate batches in N steps (0)"},
    {"seq", WG_SETTING_INTEGER, TRAINING(setup.sequence), .low = 8, .high = INT32_MAX,
     .fixed = true, .standard = "128", .argument = "N",
     .help = "Tokens in a sequence; a preset of a decoder gets this number of positions, and "
             "models that translate are not trained on longer sentences"},
    {"seq-ramp", WG_SETTING_INTEGER, TRAINING(seq_ramp), .high = INT32_MAX, .fixed = true,
     .argument = "N",
     .help = "Begin with short sequences: cut into four in the first N / 2 steps, and into two in "
             "the next N / 2 (0)"},
    {"lr", WG_SETTING_NUMBER, TRAINING(trainer.schedule.peak), .high = 1000, .fixed = true,
     .standard = "0.001", .argument = "X", .help = "Learning rate at its peak"},
    {"schedule", WG_SETTING_CHOICE, TRAINING(trainer.schedule.kind), .fixed = true,
     .choice = schedule_name, .argument = "NAME",
     .help = "How the rate goes on after the warm-up: linear and cosine fall to the last step, "
             "constant stays, wsd stays and falls in the last steps, noam falls as 1 / sqrt(step), "
             "inverse-sqrt too, but is at its peak from the first step"},
    {"warmup", WG_SETTING_INTEGER, TRAINING(trainer.schedule.warmup_steps), .high = INFINITY,
     .fixed = true, .argument = "N", .help = "Steps of rising rate (a tenth of all steps)"},
    {"longest-warmup", WG_SETTING_INTEGER, TRAINING(longest_warmup), .high = INFINITY,
     .fixed = true},
    {"final", WG_SETTING_NUMBER, TRAINING(trainer.schedule.final), .high = 1, .fixed = true,
     .argument = "X", .help = "Where linear, cosine and wsd end, as a fraction of the peak (0)"},
    {"decay-steps", WG_SETTING_INTEGER, TRAINING(trainer.schedule.decay_steps), .low = 1,
     .high = INFINITY, .fixed = true, .argument = "N",
     .help = "Steps of falling rate of wsd (a tenth of all, at least 1)"},
    {"optimizer", WG_SETTING_CHOICE, TRAINING(optimizer), .fixed = true, .standard = "\"adamw\"",
     .choice = wg__optimizer_name, .argument = "NAME",
     .help = "adamw, adam, adafactor, sgd, lion, or muon: matrices but embeddings by Muon, scaled "
             "to the rate of AdamW, which steps all other parameters"},
    {"momentum", WG_SETTING_NUMBER, TRAINING(momentum), .high = 1, .optional = true, .fixed = true,
     .argument = "X", .help = "Momentum of sgd (0.9, Nesterov's; 0: plain SGD) and muon (0.95)"},
    {"beta1", WG_SETTING_NUMBER, TRAINING(beta1), .high = 1, .optional = true, .fixed = true,
     .argument = "X", .help = "First decay of adam, adamw, muon's AdamW and lion (0.9)"},
    {"beta2", WG_SETTING_NUMBER, TRAINING(beta2), .high = 1, .optional = true, .fixed = true,
     .argument = "X", .help = "The second (0.999; lion 0.99)"},
    {"weight-decay", WG_SETTING_NUMBER, TRAINING(weight_decay), .high = 1000, .fixed = true,
     .argument = "X", .help = "Weight decay (0)"},
    {"clip", WG_SETTING_NUMBER, TRAINING(trainer.clip), .high = 1e9, .fixed = true,
     .standard = "1.0", .argument = "X", .help = "Greatest norm of the gradient; 0 does not clip"},
    {"seed", WG_SETTING_INTEGER, TRAINING(setup.seed), .high = INFINITY, .fixed = true,
     .standard = "0", .argument = "N", .help = "Seed of weights, dropout and batches"},
    {"ema", WG_SETTING_NUMBER, TRAINING(trainer.average_decay), .high = 1, .fixed = true,
     .argument = "X",
     .help = "Measure and keep as the model the exponential average of the weights, of decay X "
             "(0.999 looks back about 1000 steps); 0 keeps the weights themselves"},
    {"dtype", WG_SETTING_CHOICE, TRAINING(dtype), .fixed = true, .standard = "\"f32\"",
     .choice = wg__product_dtype_name, .argument = "TYPE",
     .help = "f32, or bf16: mixed precision: matrix products take bf16 and sum in f32; weights, "
             "optimizer, norms and losses stay f32"},
    {"recompute", WG_SETTING_FLAG, TRAINING(recompute),
     .help = "Keep of each layer only its input, and run the layer once more in backward: less "
             "memory, more time, the same run bit for bit"},
    {"step-in-backward", WG_SETTING_FLAG, TRAINING(trainer.step_in_backward),
     .help = "With --clip 0: step each weight as soon as backward has its gradient, which is then "
             "freed: less memory, the same run bit for bit; but a gradient that is not finite ends "
             "the run when some weights have moved"},
    {"deterministic", WG_SETTING_FLAG, TRAINING(deterministic), .fixed = true,
     .help = "The same bits on every x86-64 processor with AVX2: use the kernels for AVX2 alone, "
             "and none of BLIS"},
    {"zero", WG_SETTING_INTEGER, TRAINING(zero), .high = 2, .argument = "STAGE",
     .help = "Under mpirun: each rank has a share of the optimizer's state (1), and of the "
             "gradients (2), instead of all (0)"},
    {"communication-dtype", WG_SETTING_CHOICE, TRAINING(communication_dtype),
     .choice = wg__product_dtype_name, .argument = "TYPE",
     .help = "Under mpirun: send gradients as bf16, half the bytes, and add them up in f32 (f32)"},
    {"lora", WG_SETTING_INTEGER, TRAINING(lora), .low = 1, .high = INT32_MAX, .fixed = true,
     .heading = "LoRA:", .argument = "R",
     .help = "Keep the weights as they are and train a change of rank R to some of them; with "
             "finetune a new head, too. RUN.h5 has both, and other verbs use their sum"},
    {"lora-alpha", WG_SETTING_NUMBER, TRAINING(lora_alpha), .high = 1e9, .above = true,
     .fixed = true, .argument = "X", .help = "Scale the change by X / R (R, which scales by 1)"},
    {"lora-targets", WG_SETTING_TEXT, TRAINING(lora_targets), .fixed = true,
     .argument = "NAME,NAME...",
     .help = "Change the linear layers whose names end so, or all-linear: all but the head's "
             "(queries and values, as in the PEFT library)"},
    {"lora-dropout", WG_SETTING_NUMBER, TRAINING(lora_dropout), .high = 1, .below = true,
     .fixed = true, .argument = "X", .help = "Dropout of the change's input (0)"},
    {"save-every", WG_SETTING_INTEGER, TRAINING(trainer.save_every), .low = 1, .high = INFINITY,
     .heading = "The run:", .argument = "N", .help = "Save every N steps, beside once a minute"},
    {"eval-every", WG_SETTING_INTEGER, TRAINING(trainer.evaluate_every), .low = 1, .high = INFINITY,
     .standard = "100", .argument = "N", .help = "Measure on held-out text every N steps"},
    {"patience", WG_SETTING_INTEGER, TRAINING(trainer.patience), .high = INFINITY, .argument = "N",
     .help = "Stop after N measurements on held-out text without a new lowest loss (0: never)"},
    {"keep-best", WG_SETTING_FLAG, TRAINING(keep_best),
     .help = "Keep the run as it was at the lowest loss on held-out text, too, in RUN.best.h5"},
    {"keep-every", WG_SETTING_INTEGER, TRAINING(trainer.keep_every), .low = 1, .high = INFINITY,
     .argument = "N",
     .help = "Keep the run as it was after every N steps, too, in RUN.STEP.h5, as `wengert "
             "average' takes them"},
};

#define TABLE(rows, type)                                                                          \
    { "settings", sizeof(type), sizeof(rows) / sizeof(rows)[0], rows }
const wg_setting_table wg__text_rows = TABLE(text_rows, wg__text_settings),
                       wg__tuning_rows = TABLE(tuning_rows, wg__tuning_settings),
                       wg__training_rows = TABLE(training_rows, wg__training_settings);
