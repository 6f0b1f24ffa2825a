/* How much memory the process can still be given, so that what cannot fit is refused before it is
 * begun: Linux hands out addresses without memory, and ends a process that then uses them.
 *
 *     system           /proc/meminfo       MemAvailable + SwapFree
 *     control group    memory.max          less what the group holds, without its file cache
 *     process          ulimit -v           less all that is mapped, but for addresses that the
 *                                          allocator has reserved and not yet used            */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/internal.h"

/* The number behind `key` in a file of lines "key number"; -1 if it is not there. */
static int64_t number_of(const char *path, const char *key) {
    FILE *file = fopen(path, "re");
    char line[256];
    int64_t found = -1;
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (wg__starts_with(line, key))
            found = (int64_t)strtoll(line + strlen(key), NULL, 10);
    if (file)
        fclose(file);
    return found;
}

static int64_t of_system(void) {
    const int64_t free_kib = number_of("/proc/meminfo", "MemAvailable:");
    const int64_t swap_kib = number_of("/proc/meminfo", "SwapFree:");
    return free_kib < 0 ? INT64_MAX : (free_kib + wg__larger(swap_kib, 0)) * 1024;
}

/* What a group's folder says; INT64_MAX: it has no limit. */
static int64_t of_folder(const char *folder) {
    char path[600];
    snprintf(path, sizeof path, "%s/memory.max", folder);
    FILE *file = fopen(path, "re");
    char text[64] = "max";
    const bool is_limited = file && fgets(text, sizeof text, file) && text[0] != 'm';
    if (file)
        fclose(file);
    if (!is_limited)
        return INT64_MAX;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    const int64_t held = number_of(path, "anon ");
    return wg__larger((int64_t)strtoll(text, NULL, 10) - wg__larger(held, 0), 0);
}

/* The least of the process's group and all groups around it (version 2 of control groups). */
static int64_t of_groups(void) {
    static const char root[] = "/sys/fs/cgroup";
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[256] = "", folder[512];
    while (file && fgets(line, sizeof line, file) && !wg__starts_with(line, "0::"))
        continue;
    if (file)
        fclose(file);
    if (!wg__starts_with(line, "0::"))
        return INT64_MAX;
    line[strcspn(line, "\n")] = '\0';
    snprintf(folder, sizeof folder, "%s%s", root, line + 3);
    int64_t least = INT64_MAX;
    while (strlen(folder) >= strlen(root)) {
        least = wg__smaller(least, of_folder(folder));
        *strrchr(folder, '/') = '\0';
    }
    return least;
}

static int64_t of_process(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur >= INT64_MAX)
        return INT64_MAX;
    const int64_t mapped = wg__larger(number_of("/proc/self/status", "VmSize:"), 0) * 1024;
    return wg__larger((int64_t)limit.rlim_cur - mapped + wg__alloc_reserved(), 0);
}

int64_t wg_memory_available(void) {
    int64_t least = wg__smaller(of_system(), of_groups());
    least = wg__smaller(least, of_process());
    return least == INT64_MAX ? least : least + wg_alloc_get_stats().cached_bytes;
}
