/* Files as bytes: see files.h. */
#include "tests/support/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

bytes read_bytes(const char *path) {
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    fseek(stream, 0, SEEK_END);
    bytes file = {.count = (size_t)ftell(stream)};
    rewind(stream);
    file.data = malloc(file.count + 1);
    ck_assert_uint_eq(fread(file.data, 1, file.count, stream), file.count);
    file.data[file.count] = '\0';
    fclose(stream);
    return file;
}

int files_in(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}
