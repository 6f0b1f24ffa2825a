/* Functions of io/ that are internal to the library: kinds of files, differences of tensors, JSON
 * of configurations, metric logs, event files, and parts of checkpoints, adapters and weights. */
#ifndef WG_IO_INTERNAL_H
#define WG_IO_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/internal.h"
#include "io/config.h"
#include "tensor/tensor.h"
#include "io/checkpoint/checkpoint.h"
#include "io/weights/adapter.h"
#include "io/weights/weights.h"

/* ---- Kinds of files and folders, for messages about a file of the wrong kind. The first bytes of
 * a file, or the names in a folder, decide the kind. ---- */

/* Writes the kind of the file `path` and advice, to follow "PATH is": "a file of safetensors, no
 * checkpoint; `wengert convert PATH model.h5' makes one of it". Returns `text`. NULL for a file
 * that begins as HDF5 does, and for a file that cannot be read. */
const char *wg__file_kind(const char *path, char *text, size_t size);

/* True for a regular file that begins like HDF5 files: checkpoints and token files. False with IO
 * if a read failed; without an error if the file cannot be opened, or is a pipe. */
bool wg__is_hdf5_file(const char *path);

/* False for NULL, too. */
bool wg__is_file(const char *path);
bool wg__is_folder(const char *path);

/* The path of the first of these files that a folder has, freed with wg__free; and of the weights
 * of a published model. NULL: none, or with [MEMORY] */
char *wg__find_in_folder(const char *folder, int count, const char *const *names);
char *wg__find_weights(const char *folder);

/* ---- Differences between the tensors of a module and of a file, listed in one error ---- */

/* One kind of difference, with the names that fit: "3 missing (a, b, ...)". */
typedef struct wg__difference {
    int64_t count;
    int64_t biases; /* how many of them end in "bias" */
    char names[288];
    bool is_full;
} wg__difference;

typedef struct wg__differences {
    wg__difference missing, unexpected, misshapen, transposed;
} wg__differences;

void wg__note_difference(wg__difference *difference, const char *name);

/* Notes the tensor as misshapen if its shape differs, or its dtype does and one is not floating; a
 * matrix whose sizes are exchanged as transposed. True if it was noted. */
bool wg__note_spec(wg__differences *differences, const char *name, const wg_spec *found,
                   const wg_spec *wanted);

/* 0 if there are none; else -1 with NOT_FOUND if any is missing, else FORMAT. */
int wg__check_differences(const wg__differences *differences, const char *path, const char *where);

/* ---- Lists and objects in a wg_config, and the JSON behind it ---- */

/* An integer, or the first of a list of integers (tokens that end a text). -1 with [FORMAT] */
int wg__config_first_integer(wg_config *config, const char *key, int64_t *value);

/* The object at a key as a configuration, named by the key in messages. Freed with
 * wg__config_free. NULL if the key is missing, or with [FORMAT, MEMORY] */
wg_config *wg__config_part(wg_config *config, const char *key);

/* Sets a key to a copy of an object. -1 with [MEMORY] */
int wg__config_set_part(wg_config *config, const char *key, const wg_config *part);

/* The name that messages give a configuration. */
const char *wg__config_name(const wg_config *config);

/* The value of a key, borrowed; NULL if the key is not there or null. The key then counts as read
 * (wg__config_check). */
WG__COMMAND json_t *wg__config_value(wg_config *config, const char *key);

/* True if the key exists with the value null. */
bool wg__config_is_null(const wg_config *config, const char *key);

/* Refuses a value: "NAME: "key" is VALUE; wanted WANTED". Returns -1 with [FORMAT] */
int wg__config_refuse_value(const wg_config *config, const char *key, const json_t *value,
                            const char *wanted);

/* Sets a key; `value` is taken over, NULL is an allocation that failed. -1 with [MEMORY] */
int wg__config_set(wg_config *config, const char *key, json_t *value);

/* ---- Metric logs, one JSON object a line, appended to a file. ----
 *
 *     wg__metric_log *log = wg__metric_log_open("run.jsonl");
 *     wg__metric_log_integer(log, "step", 7);
 *     wg__metric_log_number(log, "loss", 6.5);
 *     if (wg__metric_log_end_line(log) < 0)        {"step": 7, "loss": 6.5}
 *         ...
 *     wg__metric_log_close(log);
 *
 * A line is written whole when it is ended, or not at all. */

typedef struct wg__metric_log wg__metric_log;

/* Opens a file for appending, and creates it if it does not exist. If its last line was cut off,
 * a newline ends that line first. NULL with [IO, NOT_FOUND for a folder that is not there,
 * MEMORY] */
wg__metric_log *wg__metric_log_open(const char *path);

/* Closes the file; a line that was not ended is dropped. NULL is allowed. */
void wg__metric_log_close(wg__metric_log *log);

/* Adds a member to the current line. A number that is not finite becomes null. -1 with [MEMORY] */
int wg__metric_log_integer(wg__metric_log *log, const char *name, int64_t value);
int wg__metric_log_number(wg__metric_log *log, const char *name, double value);

/* Writes the line and begins an empty one. After a failure the file is as it was before the line,
 * which is dropped. -1 with [IO: disk full and so on; MEMORY], or when an error was pending. */
int wg__metric_log_end_line(wg__metric_log *log);

/* ---- Event files that TensorBoard reads: scalars and texts of a run, with their step and time.
 *
 *     wg_event_file *events = wg__event_file_open("runs/a", time);   a new file in the folder
 *     wg__event_file_scalar(events, "train/loss", 6.5);
 *     wg__event_file_scalar(events, "train/lr", 1e-3);
 *     if (wg__event_file_end(events, step, time) < 0)                  one event with both
 *         ...
 *     wg__event_file_close(events);
 *
 * A file is a row of records, TFRecord's: the length as u64, its checksum, the bytes of a protocol
 * buffer (tensorflow.Event), and their checksum; numbers are little-endian, and a checksum is
 * CRC32C, rotated right by 15 bits plus 0xa282ead8. An event is written whole when it is ended, or
 * not at all. ---- */

typedef struct wg_event_file wg_event_file;

/* Makes a file with a new name in a folder, and the folder if it does not exist. Times are
 * seconds since 1970. NULL with [IO, NOT_FOUND for a folder above that is not there; MEMORY] */
WG__COMMAND wg_event_file *wg__event_file_open(const char *folder, double time);

/* Closes the file; an event that was not ended is dropped. NULL is allowed. */
WG__COMMAND void wg__event_file_close(wg_event_file *file);

/* The path of the file, borrowed. */
const char *wg__event_file_path(const wg_event_file *file);

/* Adds to the current event a number, or a text, which TensorBoard shows as Markdown. [MEMORY] */
WG__COMMAND int wg__event_file_scalar(wg_event_file *file, const char *tag, double value);
WG__COMMAND int wg__event_file_text(wg_event_file *file, const char *tag, const char *text);

/* Writes the event and begins an empty one. After a failure the file is as it was before the event,
 * which is dropped. -1 with [IO: disk full and so on; MEMORY], or when an error was pending. */
WG__COMMAND int wg__event_file_end(wg_event_file *file, int64_t step, double time);

/* ---- Checkpoints ---- */

/* The version of the HDF5 library in use, "1.10.8". */
WG__COMMAND const char *wg__checkpoint_library(void);

/* As wg_checkpoint_put_integer. */
int wg__checkpoint_put_number(wg_checkpoint *file, const char *name, double value);

/* Fills `module` with the mean of the tensors of `count` files below `group`   (Vaswani et al.
 * 2017, section 6.1: the last 5 checkpoints). Slots that are not f32 or f64 get the last file's
 * values. After an error these slots have the values read last, and f32 and f64 slots are
 * unchanged. [ARGUMENT for no files; as wg_checkpoint_open and wg_checkpoint_get_module] */
int wg__checkpoint_average(int count, const char *const *paths, const char *group,
                           wg_module *module);

/* ---- Adapters ---- */

/* The configuration of the adapters below the root `module` as JSON; the caller frees it with
 * wg_text_free. NULL without an error if there are none; with [MEMORY] */
char *wg__lora_config_json(wg_module *module);

/* Attaches adapters by the LoRA configuration `json`, named `name` in messages; as wg_lora_attach
 * otherwise. [FORMAT for a text that is no LoRA configuration, or of an unsupported kind: DoRA,
 * biases, ranks that differ between layers] */
WG__COMMAND int64_t wg__lora_attach_config(wg_module *module, const char *json, const char *name);

/* ---- Files of weights ---- */

/* "hdf5", "safetensors"...; borrowed. */
WG__COMMAND const char *wg__weights_format_name(const wg_weights *file);

/* The spec of tensor `index` as it is read (f16 and quantized blocks as f32); borrowed, NULL
 * outside. */
WG__COMMAND const wg_spec *wg__weights_spec(const wg_weights *file, int64_t index);

/* The stored dtype of a tensor ("f16", "q8_0"; borrowed), and its bytes in the file; NULL and 0
 * outside. */
WG__COMMAND const char *wg__weights_stored(const wg_weights *file, int64_t index);
WG__COMMAND int64_t wg__weights_stored_bytes(const wg_weights *file, int64_t index);

/* The bytes of the file, or of all files if there are several. */
WG__COMMAND int64_t wg__weights_file_bytes(const wg_weights *file);

/* The model's configuration as JSON of the published keys, or the tokenizer as
 * wg_tokenizer_from_json reads it; borrowed. NULL where the file has none. */
const char *wg__weights_config(const wg_weights *file);
const char *wg__weights_tokenizer(const wg_weights *file);

/* The remaining keys of the header of safetensors or GGUF, a JSON object; a long list is replaced
 * by its length. Borrowed; NULL: there are none. */
WG__COMMAND const char *wg__weights_metadata(const wg_weights *file);

/* Fills the slots below `module` that the file has, tied slots once, and leaves all other slots
 * unchanged, for instance to read an encoder from a file with another head. A slot's name in the
 * file is `prefix`, which may be "" or NULL, and then its path below `module`; tensors outside of
 * the prefix are ignored. Floating dtypes are cast. Returns the number of slots filled, which may
 * be 0. Unless NULL, *left_out lists the tensors and slots that were not used; it is freed with
 * wg__left_out_free. Transactional: after an error (-1, with *left_out empty) nothing has changed.
 * [FORMAT, IO, MEMORY] */
int64_t wg__weights_get_module_partial(wg_weights *file, const char *prefix, wg_module *module,
                                       wg_left_out *left_out);

/* Frees the lists; NULL is allowed. */
void wg__left_out_free(wg_left_out *left_out);

#endif
