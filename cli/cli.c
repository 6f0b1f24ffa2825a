/* Functions that the verbs share: see cli.h. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "base/error.h"
#include "base/internal.h"
#include "base/array.h"

static const char *name_by_index(const void *name, int index) {
    return (*(const char *(*const *)(int))name)(index);
}

const char *wg__cli_suggestion(char *text, size_t size, const char *typed,
                               const char *(*name)(int index)) {
    return wg__suggestion(text, size, typed, name_by_index, &name);
}

const char *wg__cli_names(char *list, size_t size, const char *(*name)(int index)) {
    size_t length = 0;
    list[0] = '\0';
    for (int i = 0; name(i) && length < size; i++)
        length += (size_t)snprintf(list + length, size - length, "%s%s", i ? ", " : "", name(i));
    return list;
}

wg_group *wg__cli_group;
static char held_failure[900]; /* of this rank, until wg__cli_check prints it */

int wg__cli_join(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    const char *rank = NULL;
    wg__cli_group = wg_group_join();
    if (wg__cli_group)
        return 0;
    /* Under the mpirun of another MPI each process sees the same error; only the first prints it.
     */
    for (size_t i = 0; i < sizeof variables / sizeof *variables && !rank; i++)
        rank = getenv(variables[i]);
    if (wg_error_pending() && wg_error_pending()->code == WG_ERROR_STATE && rank &&
        atoi(rank) > 0) {
        wg_error_clear();
        return EXIT_FAILURE;
    }
    return wg__cli_fail_pending();
}

void wg__cli_use_threads(int threads) {
    const int share = threads ? threads : wg__group_threads(wg__cli_group);
    if (share)
        wg_set_threads(share);
}

bool wg__cli_leads(void) {
    return wg_group_rank(wg__cli_group) == 0;
}

int wg__cli_check(int code) {
    static const char from[] = "wengert: ";
    if (wg_group_size(wg__cli_group) == 1)
        return code;
    const bool failed = code == EXIT_FAILURE;
    if (failed)
        wg_fail(WG_ERROR_STATE, "wengert", "%s", held_failure);
    held_failure[0] = '\0';
    if (wg_group_check(wg__cli_group, failed ? -1 : 0) == 0)
        return code;
    /* "wengert: MESSAGE" or "rank 1 on HOST: wengert: MESSAGE". An empty message has been printed
     * before. */
    const char *message = wg_error_pending()->message, *own = strstr(message, from);
    const char *text = own ? own + strlen(from) : message;
    if (wg__cli_leads()) {
        fflush(stdout);
        if (*text)
            fprintf(stderr, "%s%.*s%s\n", from, own ? (int)(own - message) : 0, message, text);
    }
    wg_error_clear();
    return code != 0 ? code : EXIT_FAILURE;
}

void wg__cli_leave(void) {
    wg_group_leave(wg__cli_group);
    wg__cli_group = NULL;
}

int wg__cli_agree(int argc, char **argv) {
    uint64_t found = WG__HASH_BEGIN;
    char text[256] = "";
    if (wg_group_size(wg__cli_group) == 1)
        return 0;
    for (int i = 0; i < argc; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", argv[i]);
        found = wg__hash(found, argv[i], strlen(argv[i]) + 1);
    }
    if (wg__group_agree(wg__cli_group, "the version of Wengert", wg_version()) < 0 ||
        wg__group_agree(wg__cli_group, "the command", text) < 0)
        return -1;
    snprintf(text, sizeof text, "fingerprint %016llx", (unsigned long long)found);
    return wg__group_agree(wg__cli_group, "the command's latter part", text);
}

int wg__cli_agree_on_file(const char *path) {
    static char bytes[1 << 16];
    char text[96], what[160];
    if (wg_group_size(wg__cli_group) == 1)
        return 0;
    uint64_t found = WG__HASH_BEGIN;
    int64_t length = 0;
    FILE *file = fopen(path, "rb");
    for (size_t got = 1; file && got > 0; length += (int64_t)got) {
        got = fread(bytes, 1, sizeof bytes, file);
        found = wg__hash(found, bytes, got);
    }
    const int reason = !file || ferror(file) ? errno : 0;
    if (file)
        fclose(file);
    if (reason)
        wg_fail(reason == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, "wengert",
                "cannot read %s: %s", path, strerror(reason));
    if (wg_group_check(wg__cli_group, reason ? -1 : 0) < 0)
        return -1;
    snprintf(text, sizeof text, "%lld bytes, fingerprint %016llx", (long long)length,
             (unsigned long long)found);
    snprintf(what, sizeof what, "the contents of %.128s", path);
    return wg__group_agree(wg__cli_group, what, text);
}

int wg__cli_agree_on_files(const char *first, const wg_setting_list *others) {
    int status = wg__cli_agree_on_file(first);
    for (int64_t i = 0; status == 0 && i < others->count; i++)
        status = wg__cli_agree_on_file(others->items[i]);
    return status;
}

bool wg__cli_work_begun, wg__cli_memory_lacked;

/* Holds back the parser's output until all ranks have parsed; rank 0 prints it once. */
static struct reading {
    bool is_on;
    FILE *out, *err; /* the real stdout and stderr, while these are memory streams */
    char *out_text, *err_text;
    size_t out_size, err_size;
} reading;

static void end_reading(void) {
    fclose(stdout);
    fclose(stderr);
    stdout = reading.out;
    stderr = reading.err;
    reading.is_on = false;
}

/* Tells all ranks whether this one leaves. Returns whether any rank does. */
static bool share_leaving(bool leaves) {
    double any = leaves;
    wg_error_clear();
    if (leaves && reading.err_size > 0)
        wg_fail(WG_ERROR_STATE, "wengert", "%s", reading.err_text);
    if (wg_group_check(wg__cli_group, leaves && reading.err_size > 0 ? -1 : 0) < 0) {
        const char *message = wg_error_pending()->message, *own = strstr(message, "wengert: ");
        const int named = own ? (int)(own - message) : 0;
        if (wg__cli_leads())
            fprintf(stderr, "%s%.*s%s", named ? "wengert: " : "", named, message,
                    own ? own + strlen("wengert: ") : message);
        wg_error_clear();
        return true;
    }
    if (wg__group_max(wg__cli_group, WG_GROUP_F64, 1, &any) < 0)
        wg_error_clear();
    return any > 0;
}

/* At the end of the process: the parser has left it, after --help or wrong usage. */
static void leave_in_reading(void) {
    if (!reading.is_on)
        return;
    end_reading();
    share_leaving(true);
    if (wg__cli_leads() && reading.err_size == 0)
        fwrite(reading.out_text, 1, reading.out_size, stdout);
    wg__cli_leave();
}

void wg__cli_begin_reading(void) {
    static bool is_registered;
    if (wg_group_size(wg__cli_group) == 1)
        return;
    FILE *out = open_memstream(&reading.out_text, &reading.out_size);
    FILE *err = open_memstream(&reading.err_text, &reading.err_size);
    if (!out || !err || (!is_registered && atexit(leave_in_reading) != 0))
        wg_group_abort(wg__cli_group, "there is no memory to read the arguments");
    is_registered = true;
    reading.out = stdout;
    reading.err = stderr;
    stdout = out;
    stderr = err;
    reading.is_on = true;
}

void wg__cli_end_reading(void) {
    if (!reading.is_on)
        return;
    end_reading();
    const bool leave = share_leaving(false);
    fwrite(reading.out_text, 1, reading.out_size, stdout);
    fwrite(reading.err_text, 1, reading.err_size, stderr);
    free(reading.out_text);
    free(reading.err_text);
    if (leave) {
        wg__cli_leave();
        exit(WG__EXIT_USAGE);
    }
}

void *wg__cli_calloc(size_t count, size_t size) {
    void *block = calloc(count ? count : 1, size);
    if (!block)
        exit(wg__cli_fail("no memory is left for %zu x %zu bytes", count, size));
    return block;
}

void wg__replace_controls(char *text) {
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
        else if ((unsigned char)c[0] == 0xc2 && (unsigned char)c[1] >= 0x80 &&
                 (unsigned char)c[1] < 0xa0) /* U+0080 to U+009F */
            c[0] = c[1] = '?';
}

/* Prints a message. It takes no memory, since the message may be that there is none. */
static void print_message(const char *kind, const char *format, va_list arguments) {
    char text[1 << 14];
    fflush(stdout);
    vsnprintf(text, sizeof text, format, arguments);
    wg__replace_controls(text);
    fprintf(stderr, "wengert: %s%s\n", kind, text);
}

int wg__cli_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (wg_group_size(wg__cli_group) > 1) {
        vsnprintf(held_failure, sizeof held_failure, format, arguments);
        wg__replace_controls(held_failure);
    } else {
        print_message("", format, arguments);
    }
    va_end(arguments);
    return EXIT_FAILURE;
}

int wg__cli_fail_pending(void) {
    const wg_error *error = wg_error_pending();
    wg__cli_fail("%s", error ? error->message : "it failed without saying why");
    wg_error_clear();
    return EXIT_FAILURE;
}

void wg__cli_note(const char *format, ...) {
    va_list arguments;
    if (!wg__cli_leads())
        return;
    va_start(arguments, format);
    print_message("note: ", format, arguments);
    va_end(arguments);
}

int wg__cli_read_lines(const char *verb, const char *path, int64_t limit,
                       int (*take)(void *context, const char *path, int64_t line, const char *text),
                       void *context) {
    FILE *file = fopen(path, "r");
    if (!file)
        return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, verb,
                       "cannot read %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    int64_t taken = 0;
    int status = 0;
    for (int64_t line = 1; status == 0 && (limit == 0 || taken < limit) &&
                           (length = getline(&text, &size, file)) >= 0;
         line++) {
        if ((ssize_t)strlen(text) < length) {
            status = wg_fail(WG_ERROR_FORMAT, verb, "%s, line %lld: it has a NUL, and is no text",
                             path, (long long)line);
            break;
        }
        text[strcspn(text, "\r\n")] = '\0';
        if (text[strspn(text, " \t")] == '\0')
            continue;
        status = take(context, path, line, text);
        taken++;
    }
    if (status == 0 && ferror(file))
        status = wg_fail(WG_ERROR_IO, verb, "cannot read %s: %s", path, strerror(errno));
    else if (status == 0 && taken == 0)
        status = wg_fail(WG_ERROR_FORMAT, verb, "%s: the file is empty", path);
    free(text);
    fclose(file);
    return status;
}

int wg__cli_check_distinct(const char *out, int64_t count, const char *const *inputs) {
    struct stat to, from;
    if (!out || stat(out, &to) < 0)
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (inputs[i] && stat(inputs[i], &from) == 0 && from.st_dev == to.st_dev &&
            from.st_ino == to.st_ino)
            return wg__cli_fail("%s is read and would be replaced; give the output another name",
                                out);
    return 0;
}

int wg__cli_write_file(const char *path, const void *bytes, size_t size) {
    char *beside = NULL;
    if (asprintf(&beside, "%s.tmp", path) < 0)
        return wg__cli_fail("no memory for a path");
    const int descriptor = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    const bool locked = descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    bool written = locked && ftruncate(descriptor, 0) == 0;
    for (size_t at = 0; written && at < size;) {
        const ssize_t count = write(descriptor, (const char *)bytes + at, size - at);
        written = count >= 0 || errno == EINTR;
        at += count > 0 ? (size_t)count : 0;
    }
    written = written && fsync(descriptor) == 0 && rename(beside, path) == 0;
    int code = 0;
    if (descriptor >= 0 && !locked && errno == EWOULDBLOCK)
        code = wg__cli_fail("%s: another process writes it", path);
    else if (!written)
        code = wg__cli_fail("%s: %s", path, strerror(errno));
    if (locked && !written)
        unlink(beside);
    if (descriptor >= 0)
        close(descriptor);
    free(beside);
    return code;
}
