/* What an earlier write of the same model left beside it: shards of other numbers and an index, as
 * transformers' save_pretrained removes them. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/weights/file.h"
#include "tensor/internal.h"

#define SUFFIX ".safetensors"

size_t wg__shard_stem(const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    const size_t length = strlen(*name), suffix = strlen(SUFFIX);
    const bool has_suffix = length >= suffix && strcmp(*name + length - suffix, SUFFIX) == 0;
    return has_suffix ? length - suffix : length;
}

/* NAME-00001-of-00003.safetensors, of whatever numbers. */
static bool is_shard(const char *file, const char *stem, size_t length) {
    static const char pattern[] = "-00000-of-00000" SUFFIX;
    if (strncmp(file, stem, length) != 0 || strlen(file) != length + strlen(pattern))
        return false;
    for (size_t i = 0; pattern[i]; i++) {
        const char c = file[length + i];
        if (pattern[i] == '0' ? !isdigit((unsigned char)c) : c != pattern[i])
            return false;
    }
    return true;
}

static bool is_among(const char *file, int64_t count, char *const *names) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(file, names[i]) == 0)
            return true;
    return false;
}

static void remove_index(DIR *folder, const char *stem, size_t length) {
    const size_t size = length + sizeof SUFFIX ".index.json";
    char *name = wg__try_alloc(size);
    if (name) {
        snprintf(name, size, "%.*s%s", (int)length, stem, SUFFIX ".index.json");
        unlinkat(dirfd(folder), name, 0);
    }
    wg__free(name);
}

void wg__remove_stale_shards(const char *path, int64_t count, char *const *names) {
    const char *stem;
    const size_t length = wg__shard_stem(path, &stem), size = (size_t)(stem - path) + 2;
    char *folder_path = wg__try_alloc(size);
    if (!folder_path)
        return;
    snprintf(folder_path, size, "%.*s.", (int)(stem - path), path);
    DIR *folder = opendir(folder_path);
    wg__free(folder_path);
    if (!folder)
        return;
    if (count == 0)
        remove_index(folder, stem, length);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (is_shard(entry->d_name, stem, length) && !is_among(entry->d_name, count, names))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}
