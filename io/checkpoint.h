/* Checkpoints: one HDF5 file that h5ls, h5dump and h5py read unaided.
 *
 *     /model/...           groups mirror the module tree, a dataset for each parameter
 *     /config              the model's published JSON keys, a string
 *     /tokenizer           all that is needed to encode and decode, a JSON string
 *     /optimizer/<slot>/<parameter path>
 *     /train               step, schedule, data position, random counters, metric history
 *
 * A file is written beside its name, synced and renamed over the old one, with a checksum on every
 * chunk: whatever kills the process, the old or the new file is there, whole. A file that is cut
 * short or altered is refused with its reason. */
#ifndef WG_IO_CHECKPOINT_H
#define WG_IO_CHECKPOINT_H

#include "../nn/module.h"
#include "../optim/optimizer.h"
#include "text.h"

typedef struct wg_checkpoint wg_checkpoint;

/* ---- Writing: create, put, commit. After an error every put refuses, and commit removes what was
 * begun; the old file is untouched. ---- */

/* Begins a file that will become `path`. NULL with IO, MEMORY. */
WG_API wg_checkpoint *wg_checkpoint_create(const char *path);

/* Values at "/group/.../name"; groups on the way are made. Numbers and texts are scalar datasets.
 * [IO: disk full and so on; ARGUMENT for a name taken] */
WG_API int wg_checkpoint_put_tensor(wg_checkpoint *file, const char *name, const wg_tensor *x);
WG_API int wg_checkpoint_put_text(wg_checkpoint *file, const char *name, const char *text);
WG_API int wg_checkpoint_put_integer(wg_checkpoint *file, const char *name, int64_t value);
WG_API int wg_checkpoint_put_number(wg_checkpoint *file, const char *name, double value);
WG_API int wg_checkpoint_put_numbers(wg_checkpoint *file, const char *name, int64_t count,
                                     const double *values);

/* Every slot below `module` under `group` ("/model"), dots of the path as groups; tied weights
 * once.
 */
WG_API int wg_checkpoint_put_module(wg_checkpoint *file, const char *group, wg_module *module);

/* The step count and the state of every parameter, under "/optimizer". */
WG_API int wg_checkpoint_put_optimizer(wg_checkpoint *file, const wg_optimizer *optimizer);

/* Syncs the file, renames it over its path, syncs the directory, and frees `file` in every case. */
WG_API int wg_checkpoint_commit(wg_checkpoint *file);

/* Gives up: removes what was begun and frees `file`. NULL is allowed. */
WG_API void wg_checkpoint_abort(wg_checkpoint *file);

/* ---- Reading ---- */

/* Opens a file and verifies that it is whole. Closed with wg_checkpoint_close. NULL with NOT_FOUND,
 * IO, FORMAT. */
WG_API wg_checkpoint *wg_checkpoint_open(const char *path);
WG_API void wg_checkpoint_close(wg_checkpoint *file);

/* True if there is anything of that name. */
WG_API bool wg_checkpoint_has(const wg_checkpoint *file, const char *name);

/* The value of that name. Texts are the caller's, freed with wg_text_free. -1 or NULL with
 * NOT_FOUND, FORMAT. Tensors: [scope]. */
WG_API wg_tensor *wg_checkpoint_get_tensor(wg_checkpoint *file, const char *name);
WG_API char *wg_checkpoint_get_text(wg_checkpoint *file, const char *name);
WG_API int wg_checkpoint_get_integer(wg_checkpoint *file, const char *name, int64_t *value);
WG_API int wg_checkpoint_get_number(wg_checkpoint *file, const char *name, double *value);

/* f64 [n]; [scope] */
WG_API wg_tensor *wg_checkpoint_get_numbers(wg_checkpoint *file, const char *name);

/* Fills every slot below `module` from `group`. Strict and transactional: every missing, unexpected
 * and misshapen name is listed in one error, and then nothing has changed. [NOT_FOUND, FORMAT] */
WG_API int wg_checkpoint_get_module(wg_checkpoint *file, const char *group, wg_module *module);
WG_API int wg_checkpoint_get_optimizer(wg_checkpoint *file, wg_optimizer *optimizer);

/* What a file holds: calls `visit` for every dataset in order of name, with its spec (a text or a
 * number has ndim 0). A negative answer of `visit` stops the walk and is returned. */
typedef int (*wg_checkpoint_visitor)(const char *name, const wg_spec *spec, void *context);
WG_API int wg_checkpoint_each(wg_checkpoint *file, wg_checkpoint_visitor visit, void *context);

#endif
