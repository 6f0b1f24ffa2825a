/* Differences between systems: see system.h. Macros of headers or of configure say which functions
 * a system has; Linux's files in /proc and /sys are opened on every system. */
#include "base/system.h"

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/internal.h"
#include "config.h"

#ifdef HAVE_EXECINFO_H
#include <execinfo.h>
#endif
#ifdef HAVE_LINK_H
#include <link.h>
#endif
#ifdef HAVE_SYS_AUXV_H
#include <sys/auxv.h>
#endif
#ifdef HAVE_XLOCALE_H
#include <xlocale.h>
#endif
#ifdef WG_SIMD_AMX
#include <sys/syscall.h>
#endif

enum { LONGEST_LINE = 4096 };

/* The text behind `key` in the first line that begins with it; NULL without it. */
static const char *read_line(const char *path, const char *key, char line[LONGEST_LINE]) {
    FILE *file = fopen(path, "re");
    const char *found = NULL;
    while (file && !found && fgets(line, LONGEST_LINE, file))
        found = wg__starts_with(line, key) ? line + strlen(key) : NULL;
    if (file)
        fclose(file);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found;
}

/* The value of the line "key : value" about the first processor, or NULL. */
static const char *read_processor(const char *key, char line[LONGEST_LINE]) {
    const char *value = read_line("/proc/cpuinfo", key, line);
    value = value ? strchr(value, ':') : NULL;
    return value ? value + 1 + strspn(value + 1, " \t") : NULL;
}

/* The number behind `key`, times its unit; -1 if it is not there. */
static int64_t read_number(const char *path, const char *key, int64_t unit) {
    char line[LONGEST_LINE];
    const char *value = read_line(path, key, line);
    return value ? (int64_t)strtoll(value, NULL, 10) * unit : -1;
}

void wg__prefer_huge_pages(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

void wg__read_in_order(void *mapping, size_t bytes) {
    madvise(mapping, bytes, MADV_SEQUENTIAL);
}

void wg__release_pages(void *memory, size_t bytes) {
    madvise(memory, bytes, MADV_DONTNEED);
}

int64_t wg__mapped_bytes(void) {
    return read_number("/proc/self/status", "VmSize:", 1024);
}

int64_t wg__resident_bytes(void) {
    return read_number("/proc/self/status", "VmRSS:", 1024);
}

/* The file has "always [madvise] never". */
const char *wg__huge_pages_mode(void) {
    static const char *const modes[] = {"always", "madvise", "never"};
    char line[LONGEST_LINE];
    const char *set = read_line("/sys/kernel/mm/transparent_hugepage/enabled", "", line);
    set = set ? strchr(set, '[') : NULL;
    for (size_t i = 0; set && i < sizeof modes / sizeof *modes; i++)
        if (wg__starts_with(set + 1, modes[i]))
            return modes[i];
    return "unknown";
}

/* ---- The memory that the process can still get. Callers refuse a task that does not fit before
 * it begins: Linux gives out addresses without memory, and kills a process that then uses them.
 *
 *     system           /proc/meminfo       MemAvailable + SwapFree
 *     control group    memory.max          less the group's memory without its file cache
 *     process          ulimit -v           less the mapped bytes, but for `reserved'      */

int64_t wg__memory_left(int64_t reserved) {
    int64_t least = INT64_MAX;

    /* The control group of the process and all groups around it (version 2 of control groups). */
    static const char root[] = "/sys/fs/cgroup";
    char line[LONGEST_LINE], folder[512] = "", path[600];
    const char *group = read_line("/proc/self/cgroup", "0::", line);
    if (group)
        snprintf(folder, sizeof folder, "%s%.400s", root, group);
    for (; strlen(folder) >= strlen(root); *strrchr(folder, '/') = '\0') {
        snprintf(path, sizeof path, "%s/memory.max", folder);
        const char *limit = read_line(path, "", line);
        if (!limit || *limit == 'm')
            continue;
        const int64_t most = strtoll(limit, NULL, 10);
        snprintf(path, sizeof path, "%s/memory.stat", folder);
        const int64_t held = read_number(path, "anon ", 1);
        least = wg__smaller(least, wg__larger(most - wg__larger(held, 0), 0));
    }

    /* The system, and the process. */
    const int64_t available = read_number("/proc/meminfo", "MemAvailable:", 1024);
    const int64_t swap = read_number("/proc/meminfo", "SwapFree:", 1024);
    if (available >= 0)
        least = wg__smaller(least, available + wg__larger(swap, 0));
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < INT64_MAX) {
        const int64_t mapped = wg__larger(wg__mapped_bytes(), 0);
        least = wg__smaller(least, wg__larger((int64_t)limit.rlim_cur - mapped + reserved, 0));
    }
    return least;
}

/* ---- Processors ---- */

int wg__allowed_processors(int most, int *allowed) {
    int count = 0;
#ifdef CPU_ALLOC
    enum { MOST = 4096 };
    cpu_set_t *set = CPU_ALLOC(MOST);
    const size_t size = CPU_ALLOC_SIZE(MOST);
    if (set && sched_getaffinity(0, size, set) == 0) {
        count = CPU_COUNT_S(size, set);
        for (int i = 0; i < most; i++)
            allowed[i] = i < MOST && CPU_ISSET_S((size_t)i, size, set);
    }
    if (set)
        CPU_FREE(set);
#endif
    if (count > 0)
        return count;
    count = (int)wg__larger(sysconf(_SC_NPROCESSORS_ONLN), 1);
    for (int i = 0; i < most; i++)
        allowed[i] = i < count;
    return count;
}

double wg__processor_quota(void) {
    char line[LONGEST_LINE], *end;
    if (!read_line("/sys/fs/cgroup/cpu.max", "", line))
        return 0;
    const double quota = wg__parse_number(line, &end), period = wg__parse_number(end, NULL);
    return period > 0 ? quota / period : 0;
}

void wg__processor_name(char *name, size_t size) {
    struct utsname system = {.machine = "unknown"};
    char line[LONGEST_LINE], other[LONGEST_LINE];
    const char *model = read_processor("model name", line);
    const char *maker = model ? NULL : read_processor("CPU implementer", line);
    const char *part = maker ? read_processor("CPU part", other) : NULL;
    uname(&system);
    if (part)
        snprintf(name, size, "%s, implementer %s, part %s", system.machine, maker, part);
    else
        snprintf(name, size, "%s", model ? model : system.machine);
}

bool wg__processor_has(const char *feature) {
#ifdef HWCAP_ASIMDDP /* arm64; under an emulator /proc/cpuinfo describes the host's processor */
    static const struct {
        const char *name;
        unsigned long bit;
    } known[] = {{"asimd", HWCAP_ASIMD}, {"asimddp", HWCAP_ASIMDDP}, {"sve", HWCAP_SVE}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(feature, known[i].name) == 0)
            return getauxval(AT_HWCAP) & known[i].bit;
    return false;
#else /* The features are one line, of words with a blank between them. */
    char line[LONGEST_LINE];
    const size_t length = strlen(feature);
    const char *at = read_processor("flags", line);
    for (; at && (at = strstr(at, feature)); at += length)
        if ((at[-1] == ' ' || at[-1] == '\t') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
#endif
}

/* Linux grants the tiles to a process that asks for them (Documentation/arch/x86/xstate.rst). */
bool wg__system_grants_tiles(void) {
#ifdef SYS_arch_prctl
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}

int64_t wg__modified(const struct stat *status) {
#ifdef HAVE_STRUCT_STAT_ST_MTIM
    return status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec;
#else
    return status->st_mtime * INT64_C(1000000000);
#endif
}

const char *wg__own_path(void) {
    static const char own[] = "/proc/self/exe";
    return access(own, X_OK) == 0 ? own : "wengert";
}

static locale_t plain;

static void make_plain(void) {
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

void *wg__begin_plain_numbers(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return (void *)uselocale(plain);
}

void wg__end_plain_numbers(void *before) {
    uselocale((locale_t)before);
}

double wg__parse_number(const char *text, char **end) {
    void *before = wg__begin_plain_numbers();
    const double number = strtod(text, end);
    wg__end_plain_numbers(before);
    return number;
}

int wg__return_addresses(int most, void **addresses) {
#ifdef HAVE_EXECINFO_H
    return backtrace(addresses, most);
#else
    (void)most, (void)addresses;
    return 0;
#endif
}

bool wg__is_fixed(const void *object) {
#ifdef HAVE_LINK_H
    return ((const ElfW(Ehdr) *)object)->e_type == ET_EXEC;
#else
    return object == NULL;
#endif
}

bool wg__is_program(const void *object) {
    Dl_info program = {0};
#ifdef HAVE_GETAUXVAL
    dladdr((const void *)getauxval(AT_PHDR), &program);
#endif
    return object && program.dli_fbase == object;
}
