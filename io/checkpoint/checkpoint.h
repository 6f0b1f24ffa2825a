/* Checkpoints: one HDF5 file that h5ls, h5dump and h5py read unaided.
 *
 *     /model/...           groups mirror the module tree, a dataset for each parameter
 *     /config              the model's published JSON keys, a string
 *     /objective           the name of the objective that trained it, a string
 *     /tokenizer           the whole tokenizer, a JSON string
 *     /optimizer/<slot>/<parameter path>
 *     /train               step, schedule, data position, random counters, metric history
 *
 * Saving is atomic: a file is written as PATH.tmp, synced and renamed over the old one. If the
 * process is killed, the old or the new file is whole, and the next save reuses PATH.tmp.
 * Everything in a file has a checksum: a truncated file is refused when it is opened, an altered
 * one when the altered part is read, with the reason.
 *
 * Threads may use different checkpoints at the same time; a lock serializes the calls of HDF5,
 * since Debian's build of HDF5 is not thread-safe. A program that calls HDF5 itself must not do so
 * while another thread uses a checkpoint. */
#ifndef WG_IO_CHECKPOINT_CHECKPOINT_H
#define WG_IO_CHECKPOINT_CHECKPOINT_H

#include "../../nn/module.h"
#include "../../optim/optimizer.h"
#include "../../base/alloc.h"

WG_BEGIN_DECLS

typedef struct wg_checkpoint wg_checkpoint;

/* ---- Writing: create, put, commit. After an error every put fails, and commit removes the new
 * file; the old file is untouched. ---- */

/* Begins a file that will replace `path` (or the file that `path` links to) and keep its mode. NULL
 * while an error is pending, and with [NOT_FOUND for a missing folder; IO, also when the file is
 * being written already; MEMORY] */
WG_API wg_checkpoint *wg_checkpoint_create(const char *path);

/* Values at "/group/.../name"; missing groups are created. A tensor may have any strides; bool is
 * h5py's enum, bf16 is u16 with the attribute dtype = "bf16". Numbers and texts are scalar
 * datasets; a text is UTF-8, and its attribute "crc32" is zlib's. [IO: disk full and so on;
 * ARGUMENT for a name taken; STATE after a failure] */
WG_API int wg_checkpoint_put_tensor(wg_checkpoint *file, const char *name, const wg_tensor *x);
WG_API int wg_checkpoint_put_text(wg_checkpoint *file, const char *name, const char *text);
WG_API int wg_checkpoint_put_integer(wg_checkpoint *file, const char *name, int64_t value);

/* Puts every slot below `module` under `group` ("/model"), with a group for each dot of its path;
 * tied weights once, under the name of the slot that owns them. */
WG_API int wg_checkpoint_put_module(wg_checkpoint *file, const char *group, wg_module *module);

/* Puts the step count, "/optimizer/steps", and the state of every parameter. */
WG_API int wg_checkpoint_put_optimizer(wg_checkpoint *file, const wg_optimizer *optimizer);

/* Syncs the file, renames it over its path, syncs the folder, and frees `file` in every case. If an
 * error is pending or anything fails, the new file is removed and the old file stays.
 * [IO; STATE after a put that failed] */
WG_API int wg_checkpoint_commit(wg_checkpoint *file);

/* Removes the new file and frees `file`; the old file stays. NULL is allowed. */
WG_API void wg_checkpoint_abort(wg_checkpoint *file);

/* ---- Reading ---- */

/* Opens a file for reading; a save may replace it while it is open. Closed with
 * wg_checkpoint_close. NULL with [NOT_FOUND, IO, MEMORY; FORMAT for a file that is no HDF5 file or
 * is truncated] */
WG_API wg_checkpoint *wg_checkpoint_open(const char *path);

/* Closes a file that was opened for reading; NULL is allowed. */
WG_API void wg_checkpoint_close(wg_checkpoint *file);

/* True if the file has a value or a group of that name. False with [IO] if that cannot be read. */
WG_API bool wg_checkpoint_has(const wg_checkpoint *file, const char *name);

/* The value of that name. Texts are the caller's, freed with wg_text_free. Memory is only allocated
 * for shapes that the file has bytes for. Tensors: [scope]. -1 or NULL with [NOT_FOUND;
 * IO; FORMAT for a value that is damaged or of another kind] */
WG_API wg_tensor *wg_checkpoint_get_tensor(wg_checkpoint *file, const char *name);
WG_API char *wg_checkpoint_get_text(wg_checkpoint *file, const char *name);
WG_API int wg_checkpoint_get_integer(wg_checkpoint *file, const char *name, int64_t *value);

/* Fills every slot below `module` from `group`; floating dtypes are cast. Strict and transactional:
 * every missing, unexpected and misshapen name is listed in one error, and after any error nothing
 * has changed. The optimizer likewise, with its step count.
 * [NOT_FOUND if names are missing; FORMAT, IO] */
WG_API int wg_checkpoint_get_module(wg_checkpoint *file, const char *group, wg_module *module);
WG_API int wg_checkpoint_get_optimizer(wg_checkpoint *file, wg_optimizer *optimizer);

/* Writes a model to `out`: the mean of the weights of `count` checkpoints, with the configuration
 * and the tokenizer of the first, if it has them: a program's own model needs none. [ARGUMENT for
 * no files; STATE for models of other configurations, and with LoRA adapters; FORMAT for a file
 * without a model; as wg__checkpoint_average and wg_checkpoint_commit] */
WG_API int wg_checkpoint_average_files(int count, const char *const *paths, const char *out);

typedef int (*wg_checkpoint_visitor)(const char *name, const wg_spec *spec, void *context);

/* Calls `visit` for every dataset of a file, by name within each group, with its spec: a
 * number has ndim 0, and a text too, of dtype u8. `visit` may read from the file. If it
 * returns a negative number, the walk stops and returns that number. [FORMAT, MEMORY] */
WG_API int wg_checkpoint_each(wg_checkpoint *file, wg_checkpoint_visitor visit, void *context);

WG_END_DECLS

#endif
