/* Differences between operating systems. No other file of the library and the command names Linux.
 * On a system that lacks a facility, a hint does nothing, and a query returns the value named in
 * its comment.
 * The command is linked to the public names alone and compiles system.c once more, so system.c
 * calls no function of the library. */
#ifndef WG_BASE_SYSTEM_H
#define WG_BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- Memory. The addresses and sizes of hints are whole pages. ---- */

/* A hint: huge pages make this memory faster. */
void wg__prefer_huge_pages(void *memory, size_t bytes);

/* A hint: a file that is mapped there is read from its beginning to its end. */
void wg__read_in_order(void *mapping, size_t bytes);

/* Gives the memory of pages back to the system and keeps their addresses. At the next access the
 * system reads the page of a file again; any other page may have lost its content. */
void wg__release_pages(void *memory, size_t bytes);

/* Bytes of the process that are mapped, and bytes that are in memory; -1: unknown. */
int64_t wg__mapped_bytes(void);
int64_t wg__resident_bytes(void);

/* How many bytes the system can still give the process; INT64_MAX: unknown. `reserved` is how many
 * bytes of addresses the allocator has mapped and not yet used: ulimit counts them as used. */
int64_t wg__memory_left(int64_t reserved);

/* How the system is set to give out huge pages: "always", "madvise", "never" or "unknown". */
const char *wg__huge_pages_mode(void);

/* The shell command that allows huge pages; it needs root. */
#define WG__ALLOW_HUGE_PAGES "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled"

/* ---- Processors ---- */

/* Sets allowed[i] to 1 if this process may run on processor number i, and to 0 if not, for i <
 * most. Returns how many it may run on; at least 1. */
int wg__allowed_processors(int most, int *allowed);

static inline int wg__processors(void) {
    return wg__allowed_processors(0, NULL);
}

/* How many processors a container may use at a time, by its quota; 0: it has none. */
double wg__processor_quota(void);

/* The model name of the processor; on arm64 the numbers of its maker and model; or its
 * architecture. */
void wg__processor_name(char *name, size_t size);

/* Whether the system lists a feature of the processor, by Linux's name; false: unknown. */
bool wg__processor_has(const char *feature);

/* Asks for the tile registers of AMX, for all threads of the process; false: they are not granted.
 */
bool wg__system_grants_tiles(void);

/* ---- Files ---- */

/* When a file was modified, in nanoseconds since 1970. */
int64_t wg__modified(const struct stat *status);

/* A path for posix_spawnp that runs this program again. */
const char *wg__own_path(void);

/* ---- Numbers ---- */

/* Between these calls numbers that this thread prints and reads have a decimal point, whatever the
 * locale of the program. The end takes the result of the beginning. */
void *wg__begin_plain_numbers(void);
void wg__end_plain_numbers(void *before);

/* strtod with a decimal point. */
double wg__parse_number(const char *text, char **end);

/* ---- Calls ---- */

/* The return addresses of the calls that led here, the innermost first. Returns how many there are,
 * at most `most`; 0: unknown. */
int wg__return_addresses(int most, void **addresses);

/* Whether an object was linked for a fixed address, and whether it is the program, no shared
 * library; false: unknown. `object` is the load address that dladdr returns. */
bool wg__is_fixed(const void *object);
bool wg__is_program(const void *object);

#endif
