/* wengert doctor: reports the machine's features and settings, with advice.
 *
 *     {"wengert": {...}, "processor": {...}, "kernels": {...}, "threads": {...}, "memory": {...},
 *      "files": {...}, "advice": ["...", ...]} */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/system.h"
#include "cli/options.h"
#include "cli/output.h"
#include "tensor/kernels.h"
#include "base/internal.h"
#include "io/internal.h"
#include "tensor/internal.h"

#define GIB 0x1p30

static void WG_PRINTF(2, 3) advise(json_t *advice, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(advice, json_string(text));
}

/* The features of the processor that kernels use. */
static json_t *features(void) {
    static const char *const known[] = {
        "sse4_2",   "avx",      "f16c",     "fma",      "bmi2",        "avx2",
        "avx512f",  "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
        "amx_tile", "amx_bf16", "amx_int8", "asimd",    "asimddp",     "sve"};
    char text[256] = "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (wg__processor_has(known[i]))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "",
                     known[i]);
    return json_string(text);
}

static json_t *processor(json_t *advice) {
    char model[256];
    const int online = (int)sysconf(_SC_NPROCESSORS_ONLN), allowed = wg__processors();
    const double quota = wg__processor_quota();
    wg__processor_name(model, sizeof model);
    json_t *object = json_pack("{s:s, s:i, s:i, s:o}", "model", model, "online", online, "allowed",
                               allowed, "features", features());
    if (quota > 0)
        json_object_set_new(object, "quota", json_real(quota));
    if (allowed < online)
        advise(advice,
               "only %d of %d processors may be used: taskset, a batch system or a container "
               "limits this process",
               allowed, online);
    return object;
}

static json_t *kernels(json_t *advice) {
    const wg_kernels used = wg__kernels_in_use();
    if (strcmp(used.vectors, "base") == 0)
        advise(advice,
               "kernels for any processor are in use, a fraction as fast as those for AVX2 and "
               "FMA; a virtual machine may hide these from its guests (QEMU: -cpu host)");
    if (strcmp(used.blis_family, "generic") == 0)
        advise(advice,
               "BLIS %s has no kernels for this processor in this build; one that is built with "
               "`./configure auto' has, and configure takes it by --with-blis=PREFIX",
               used.blis);
    if (wg__processor_has("amx_bf16") && strcmp(used.tiles, "in use") != 0)
        advise(advice,
               "the processor has AMX, and products in bf16 go without: %s (Linux grants it since "
               "5.16; please report a wrong product)",
               used.tiles);
    if (!used.lapack_at_once)
        advise(advice,
               "%s is not known to allow calls of several threads at a time, so the matrices of a "
               "batch are decomposed in sequence; the reference LAPACK takes all threads: install "
               "liblapack3 and libblis4-serial, and choose them by update-alternatives",
               used.lapack_file);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "vectors", used.vectors,
                     "products in bf16", used.bf16, "tiles", used.tiles, "weights in 8 and 4 bits",
                     used.blocks, "blis", used.blis, "blis kernels", used.blis_family, "lapack",
                     used.lapack, "lapack file", used.lapack_file, "calls of lapack",
                     used.lapack_at_once ? "several threads at a time" : "one after the other");
}

static json_t *threads(json_t *advice) {
    const char *number = getenv("OMP_NUM_THREADS");
    const int used = wg_threads(), allowed = wg__processors();
    const double quota = wg__processor_quota();
    double load = 0;
    getloadavg(&load, 1);
    if (used < allowed)
        advise(advice, "%d of %d processors compute; %s or --threads %d takes all", used, allowed,
               number ? "unset OMP_NUM_THREADS" : "OMP_NUM_THREADS", allowed);
    if (used > allowed)
        advise(advice,
               "%d threads share %d processors and wait for each other; set OMP_NUM_THREADS=%d",
               used, allowed, allowed);
    else if (quota > 0 && used > quota + 0.5)
        advise(advice,
               "the container gives %.2g processors to %d threads and stops them by turns; set "
               "OMP_NUM_THREADS=%d",
               quota, used, quota < 1 ? 1 : (int)quota);
    return json_pack("{s:i, s:s, s:f}", "threads", used, "OMP_NUM_THREADS",
                     number ? number : "unset", "load", load);
}

static json_t *memory(json_t *advice) {
    const char *pages = wg__huge_pages_mode();
    const double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE),
                 available = fmin((double)wg__memory_available(), total);
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &limit);
    if (strcmp(pages, "never") == 0)
        advise(
            advice,
            "huge pages are off, which makes large tensors slower; as root: " WG__ALLOW_HUGE_PAGES);
    if (available < GIB)
        advise(
            advice,
            "%s of memory are free; a small BERT is trained in about 300 MiB, GPT-2 124M in 3 GiB",
            wg__bytes(available).text);
    if (limit.rlim_cur != RLIM_INFINITY)
        advise(advice, "`ulimit -v' limits this process to %s",
               wg__bytes((double)limit.rlim_cur).text);
    return json_pack("{s:f, s:f, s:s}", "total GiB", total / GIB, "available GiB", available / GIB,
                     "huge pages", pages);
}

static json_t *files(json_t *advice) {
    const char *folder = getenv("TMPDIR");
    struct statvfs disk;
    folder = folder && *folder ? folder : "/tmp";
    const double room =
        statvfs(folder, &disk) == 0 ? (double)disk.f_bavail * (double)disk.f_frsize : -1;
    const char *path = getenv("PATH");
    char place[4096];
    bool plots = false;
    for (size_t length; path && *path; path += length + (path[length] == ':')) {
        length = strcspn(path, ":");
        snprintf(place, sizeof place, "%.*s/gnuplot", (int)length, path);
        plots |= access(place, X_OK) == 0;
    }
    if (room < 0)
        advise(advice, "TMPDIR is %s, which is no folder; the tokens of a corpus are kept there",
               folder);
    else if (room < GIB)
        advise(advice,
               "%s are free in %s, where the tokens of a corpus are kept; set TMPDIR to another "
               "folder",
               wg__bytes(room).text, folder);
    if (!plots)
        advise(advice,
               "there is no gnuplot, which `wengert plot' runs (Debian package gnuplot-nox)");
    return json_pack("{s:s, s:s, s:f, s:b}", "hdf5", wg__checkpoint_library(), "temporary folder",
                     folder, "free GiB there", room < 0 ? 0 : room / GIB, "gnuplot", plots);
}

typedef struct arguments {
    bool json;
} arguments;

static const wg_setting options[] = {WG__ROW_JSON(arguments)};

int wg__verb_doctor(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .doc = "Tells what this machine gives the library (processor, kernels, threads, memory, "
               "files), and what to change about it.\v"
               "Kernels are named after the instructions that they use: base (any processor), v3 "
               "(AVX2 and FMA), v4 (AVX-512), vnni and bf16 (AVX-512's extensions); neon and "
               "dotprod on arm64. Advice is no failure: the exit code is 0. `wengert bench' "
               "measures the machine.",
        .parts = {WG__PART(options, a)},
    };
    wg__cli_read(&usage, argc, argv);
    json_t *advice = json_array(), *part, *value;
    json_t *report = json_pack("{s:{s:s}}", "wengert", "version", wg_version());
    json_object_set_new(report, "processor", processor(advice));
    json_object_set_new(report, "kernels", kernels(advice));
    json_object_set_new(report, "threads", threads(advice));
    json_object_set_new(report, "memory", memory(advice));
    json_object_set_new(report, "files", files(advice));
    json_object_set_new(report, "advice", advice);
    if (a.json) {
        wg__print_json(JSON_INDENT(2), report);
        return 0;
    }
    const char *title, *key;
    size_t i;
    json_object_foreach(report, title, part) {
        if (json_is_object(part))
            puts(title);
        json_object_foreach(part, key, value) {
            printf("    %-26s ", strcmp(key, "total GiB") == 0        ? "total"
                                 : strcmp(key, "available GiB") == 0  ? "available"
                                 : strcmp(key, "free GiB there") == 0 ? "free there"
                                                                      : key);
            if (json_is_string(value))
                puts(json_string_value(value));
            else if (json_is_boolean(value))
                puts(json_is_true(value) ? "yes" : "no");
            else if (strstr(key, "GiB"))
                puts(wg__bytes(GIB * json_number_value(value)).text);
            else
                printf("%.4g\n", json_number_value(value));
        }
    }
    puts(json_array_size(advice) ? "to change" : "nothing is to change");
    json_array_foreach(advice, i, value) {
        printf("    %s\n", json_string_value(value));
    }
    json_decref(report);
    return 0;
}
