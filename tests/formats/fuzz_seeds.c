/* The seeds of the fuzzers (tests/fuzz/) and the inputs that once failed, each read once. A case is
 * a format. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/weights.h"
#include "tests/support/testing.h"

static const struct {
    const char *format, *name;
} formats[] = {{"safetensors", "x.safetensors"},
               {"llama2c", "x.bin"},
               {"pytorch", "x.pt"},
               {"gguf", "x.gguf"},
               {"hdf5", "x.h5"},
               {"index", "x.safetensors.index.json"},
               {"data", NULL}};

static const char *format_name(int index) {
    return formats[index].format;
}

static void run_seed(const char *path, const char *name) {
    const bytes seed = read_bytes(path);
    if (name)
        wg__fuzz_weights(name, seed.data, seed.count);
    else
        wg__fuzz_data(seed.data, seed.count);
    free(seed.data);
}

TEST_OF_EACH(seeds_are_read_or_refused, WG_COUNT(formats), format_name) {
    char folder[1024], path[2048];
    snprintf(folder, sizeof folder, "%s/../fuzz/seeds/%s", fixture(""), formats[_i].format);
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        run_seed(path, formats[_i].name);
        count++;
    }
    closedir(directory);
    ck_assert_int_gt(count, 0);
}
