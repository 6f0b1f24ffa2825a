/* Ops in a shared library of the user's: see op_library.h. */
#include "cli/op_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool wg__is_op_library(const char *argument) {
    return strchr(argument, '/') || ends_in(argument, ".so");
}

/* Its ops have to run on the very library that checks them. */
static bool shares_library(void *handle) {
    void *symbol = dlsym(handle, "wg_op_count");
    int (*theirs)(void);
    memcpy(&theirs, &symbol, sizeof theirs);
    return theirs == wg_op_count;
}

static const wg_op_library *find_ops(void *handle, const char *path, char *reason, size_t size) {
    const wg_op_library *library = dlsym(handle, "wengert_ops");
    if (!shares_library(handle))
        snprintf(
            reason, size,
            "%s runs on another copy of libwengert than this command: link it with the library "
            "that the command is linked with (a command built with --disable-shared can load "
            "no ops)",
            path);
    else if (!library)
        snprintf(reason, size,
                 "%s exports no ops: it needs WG_EXPORT_OPS(&op, ...) outside of its "
                 "functions",
                 path);
    else if (library->op_size != sizeof(wg_op) || library->call_size != sizeof(wg_call) ||
             library->sample_size != sizeof(wg_sample))
        snprintf(
            reason, size,
            "%s was compiled against the headers of another version of wengert: compile it anew",
            path);
    else
        return library;
    return NULL;
}

const wg_op *const *wg__op_library_open(const char *path, char *reason, size_t size) {
    char with_slash[4096]; /* without one, dlopen would search the system's folders */
    snprintf(with_slash, sizeof with_slash, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (access(with_slash, R_OK) < 0) {
        snprintf(reason, size, "%s cannot be read", path);
        return NULL;
    }
    void *handle = dlopen(with_slash, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(
            reason, size,
            "%s is no shared library that can be opened: %s; compile it as in cc -shared -fPIC "
            "my_op.c -o my_op.so $(pkg-config --cflags --libs wengert)",
            path, dlerror());
        return NULL;
    }
    const wg_op_library *library = find_ops(handle, path, reason, size);
    if (!library)
        dlclose(handle);
    return library ? library->ops : NULL;
}
