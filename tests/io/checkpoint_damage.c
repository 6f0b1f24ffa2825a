/* Checkpoints that are damaged, that other programs wrote, and whose writing failed or was
 * killed. */
#include "io/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hdf5.h>

#include "io/checkpoint/file.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "tests/support/damage.h"
#include "tests/io/toy.h"

/* ---- Damage. The places in a file are shared out among PARTS tests, each with a time limit of its
 * own: HDF5 opens and reads the file 20000 times. ---- */

enum { PARTS = 8 };

static const char *part_name(int part) {
    static const char *const names[PARTS] = {"1 of 8", "2 of 8", "3 of 8", "4 of 8",
                                             "5 of 8", "6 of 8", "7 of 8", "8 of 8"};
    return names[part];
}

typedef struct reading {
    wg_checkpoint *file;
    uint8_t *out;
    size_t count;
} reading;

/* Appends the name, the spec and the value of a dataset. */
static int read_value(const char *name, const wg_spec *spec, void *context) {
    reading *all = context;
    all->count += (size_t)sprintf((char *)all->out + all->count, "%s", name);
    memcpy(all->out + all->count, spec, sizeof *spec);
    memset(all->out + all->count + offsetof(wg_spec, shape) + (size_t)spec->ndim * sizeof(int64_t),
           0, (size_t)(WG_MAX_DIMS - spec->ndim) * sizeof(int64_t));
    all->count += sizeof *spec;
    if (strcmp(name, "/config") == 0) {
        char *text = wg_checkpoint_get_text(all->file, name);
        if (!text)
            return -1;
        all->count += (size_t)sprintf((char *)all->out + all->count, "%s", text);
        wg_text_free(text);
        return 0;
    }
    wg_tensor *x = wg_checkpoint_get_tensor(all->file, name);
    if (!x)
        return -1;
    wg_to_array(x, all->out + all->count);
    all->count += (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
    return 0;
}

/* Reads everything in a file into `out`; returns the count, or 0 with an error pending. */
static size_t read_all(const char *path, uint8_t *out) {
    wg_scope scope;
    wg_scope_begin(&scope);
    reading all = {.file = wg_checkpoint_open(path), .out = out};
    int status = all.file ? wg_checkpoint_each(all.file, read_value, &all) : -1;
    wg_checkpoint_close(all.file);
    wg_scope_end(&scope, NULL);
    return status < 0 ? 0 : all.count;
}

static uint8_t expected[65536], found[65536];

/* Fails unless the file is an error or holds exactly what was saved. True if it is an error. */
static bool refused_or_whole(const char *path, size_t count, const char *damage, size_t at) {
    size_t read = read_all(path, found);
    if (read == 0) {
        const wg_error *error = wg_error_pending();
        ck_assert_ptr_nonnull(error);
        ck_assert_msg(error->code == WG_ERROR_FORMAT || error->code == WG_ERROR_NOT_FOUND ||
                          error->code == WG_ERROR_SHAPE,
                      "%s at %zu: %s", damage, at, error->message);
        ck_assert_msg(strlen(error->message) > 10, "%s at %zu: %s", damage, at, error->message);
        wg_error_clear();
        return true;
    }
    ck_assert_msg(read == count && memcmp(found, expected, count) == 0,
                  "%s at %zu was not noticed, and the contents are others", damage, at);
    return false;
}

/* An intact file to damage: its contents are in `expected`, `count` bytes of them. */
typedef struct patient {
    const char *path;
    int descriptor;
    bytes file;
    size_t count;
} patient;

static patient make_patient(void) {
    pass_over_leaks_of_hdf5();
    patient patient = {.path = in_scratch("damaged.h5")};
    save_sampler(patient.path);
    patient.count = read_all(patient.path, expected);
    ck_assert_uint_gt(patient.count, 0);
    patient.file = read_bytes(patient.path);
    patient.descriptor = open(patient.path, O_RDWR);
    return patient;
}

static void free_patient(patient *patient) {
    close(patient->descriptor);
    free(patient->file.data);
}

/* Overwrites bytes of the file, reads it, and restores it. True if it was refused. */
static bool damage(const patient *patient, size_t at, const uint8_t *others, size_t size,
                   const char *kind) {
    ck_assert_int_eq(pwrite(patient->descriptor, others, size, (off_t)at), size);
    bool refused = refused_or_whole(patient->path, patient->count, kind, at);
    ck_assert_int_eq(pwrite(patient->descriptor, patient->file.data + at, size, (off_t)at), size);
    return refused;
}

TEST_OF_EACH(a_byte_altered_anywhere_is_refused_or_changes_nothing, PARTS, part_name) {
    patient patient = make_patient();
    size_t refused = 0, tried = 0;
    for (size_t at = (size_t)_i; at < patient.file.count; at += PARTS, tried++) {
        const uint8_t inverse = patient.file.data[at] ^ 0xff;
        const uint8_t flipped = patient.file.data[at] ^ (uint8_t)(1 << at % 8);
        refused += damage(&patient, at, &inverse, 1, "an inverted byte");
        refused += damage(&patient, at, &flipped, 1, "a flipped bit");
    }
    printf("# %zu of %zu alterations were refused\n", refused, 2 * tried);
    ck_assert_uint_gt(refused, tried);
    free_patient(&patient);
}

TEST_OF_EACH(parts_exchanged_or_zeroed_are_refused_or_change_nothing, PARTS, part_name) {
    patient patient = make_patient();
    const uint8_t zeros[16] = {0};
    size_t last = patient.file.count - sizeof zeros;
    for (size_t at = 7 * (size_t)_i; at <= last; at += 7 * PARTS) {
        damage(&patient, at, zeros, sizeof zeros, "zeros");
        const uint8_t *other = patient.file.data + (at + patient.file.count / 2) % last;
        damage(&patient, at, other, sizeof zeros, "an exchange");
    }
    free_patient(&patient);
}

TEST_OF_EACH(a_file_cut_short_anywhere_is_refused, PARTS, part_name) {
    patient patient = make_patient();
    for (int64_t length = (int64_t)patient.file.count - 1 - _i; length >= 0; length -= PARTS) {
        ck_assert_int_eq(ftruncate(patient.descriptor, (off_t)length), 0);
        ck_assert_msg(refused_or_whole(patient.path, patient.count, "the cut", (size_t)length),
                      "%lld instead of %zu bytes were taken", (long long)length,
                      patient.file.count);
    }
    free_patient(&patient);
}

/* Takes from an open checkpoint the right to read its file: reading fails with EBADF, as from a
 * disk that fails. */
static void break_reading(const wg_checkpoint *file, const char *path) {
    const int writing = open(path, O_WRONLY);
    ck_assert_int_ge(dup2(writing, file->disk.descriptor), 0);
    close(writing);
}

TEST(a_disk_that_cannot_be_read_is_told_and_not_taken_for_missing_names) {
    const char *path = in_scratch("toy.h5");
    toy *model = saved_toy(path);
    wg_checkpoint *file = owned(wg_checkpoint_open(path));
    break_reading(file, path);
    assert_fails(wg_checkpoint_get_module(file, "/model", &model->module), WG_ERROR_IO,
                 "Bad file descriptor");
    ck_assert(!wg_checkpoint_has(file, "/model/bert/layer/0/weight"));
    assert_error(WG_ERROR_IO, "Bad file descriptor");
}

TEST(a_damaged_weight_leaves_the_module_as_it_was) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2), *before = toy_new(4, 2);
    bytes file = read_bytes(path);
    float numbers[16];
    wg_to_array(model->weight, numbers);
    uint8_t *at = memmem(file.data, file.count, numbers, sizeof numbers);
    ck_assert_ptr_nonnull(at);
    at[21] ^= 4;
    write_file(path, file.data, file.count);
    assert_fails(load_toy(path, other), WG_ERROR_FORMAT,
                 "t.h5: /model/bert/layer/0/weight is damaged");
    assert_same_toys(other, before);
    free(file.data);
}

/* Neither the library nor HDF5 prints anything, not even when the program ends. */
TEST(nothing_is_printed_about_a_damaged_file) {
    const char *path = in_scratch("t.h5"), *printed = in_scratch("stderr");
    save_sampler(path);
    bytes file = read_bytes(path);
    file.data[54] ^= 1; /* in the header of the root group, which follows the superblock */
    write_file(path, file.data, file.count);
    free(file.data);
    wg_scope_clear_root();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int descriptor = open(printed, O_WRONLY | O_CREAT, 0666);
        dup2(descriptor, STDOUT_FILENO);
        dup2(descriptor, STDERR_FILENO);
        size_t count = read_all(path, found);
        wg_error_clear();
        exit(count == 0 ? 7 : 8);
    }
    int status;
    waitpid(child, &status, 0);
    bytes text = read_bytes(printed);
    ck_assert_msg(text.count == 0, "%.*s", (int)text.count, (const char *)text.data);
    ck_assert_int_eq(WEXITSTATUS(status), 7);
    free(text.data);
}

/* ---- Files that others made ---- */

/* Fails unless a dataset "/x" of that type and layout is refused; closes the space. */
static void refuse_foreign(hid_t type, hid_t space, hid_t creation, wg_error_code code,
                           const char *reason) {
    const char *path = in_scratch("t.h5");
    hid_t made = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t dataset = H5Dcreate2(made, "x", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    ck_assert_int_ge(dataset, 0);
    H5Dclose(dataset);
    H5Fclose(made);
    H5Sclose(space);
    wg_checkpoint *file = wg_checkpoint_open(path);
    ck_assert_ptr_nonnull(file);
    assert_fails(wg_checkpoint_get_tensor(file, "/x"), code, reason);
    wg_checkpoint_close(file);
}

TEST(a_shape_beyond_the_data_asks_for_no_memory) {
    const hsize_t huge[] = {(hsize_t)1 << 36}, chunk[] = {1 << 20};
    const hsize_t beyond[] = {(hsize_t)1 << 40, (hsize_t)1 << 40}, small[] = {1024, 1024};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    refuse_foreign(H5T_IEEE_F32LE, H5Screate_simple(1, huge, NULL), H5P_DEFAULT, WG_ERROR_FORMAT,
                   "less data than its shape");
    H5Pset_chunk(creation, 1, chunk);
    refuse_foreign(H5T_IEEE_F32LE, H5Screate_simple(1, huge, NULL), creation, WG_ERROR_FORMAT,
                   "less data than its shape");
    H5Pset_chunk(creation, 2, small);
    refuse_foreign(H5T_IEEE_F32LE, H5Screate_simple(2, beyond, NULL), creation, WG_ERROR_SHAPE, "");
    H5Pclose(creation);
}

TEST(what_no_tensor_has_is_refused) {
    const char *secret = write_text("secret", "0123456789abcdef");
    const hsize_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, four[] = {4};
    hid_t text = H5Tcopy(H5T_C_S1), elsewhere = H5Pcreate(H5P_DATASET_CREATE);
    H5Tset_size(text, H5T_VARIABLE);
    H5Pset_external(elsewhere, secret, 0, 16);
    const struct {
        hid_t type, space, creation;
        const char *reason;
    } cases[] = {
        {H5T_IEEE_F32LE, H5Screate_simple(9, nine, NULL), H5P_DEFAULT, "rank"},
        {H5T_IEEE_F32LE, H5Screate(H5S_NULL), H5P_DEFAULT, "rank"},
        {H5T_STD_U16LE, H5Screate(H5S_SCALAR), H5P_DEFAULT, "no dtype"},
        {text, H5Screate(H5S_SCALAR), H5P_DEFAULT, "is a text of variable length"},
        {H5T_IEEE_F32LE, H5Screate_simple(1, four, NULL), elsewhere, "another file"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        refuse_foreign(cases[i].type, cases[i].space, cases[i].creation, WG_ERROR_FORMAT,
                       cases[i].reason);
    H5Tclose(text);
    H5Pclose(elsewhere);
}

/* ---- The program that wrote, and the disk that was written to, fail ---- */

TEST(a_limit_on_the_file_is_one_error_and_leaves_nothing) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2);
    bytes file = read_bytes(path);
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (size_t length = 0; length < file.count; length += 97) {
        limit = old;
        limit.rlim_cur = length;
        setrlimit(RLIMIT_FSIZE, &limit);
        save_toy(path, other);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_error(WG_ERROR_IO, "t.h5: File too large");
        ck_assert_int_eq(files_in(scratch()), 1);
    }
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(load_toy(path, other), 0);
    assert_same_toys(model, other);
    free(file.data);
}

/* Mounts a file system of 256 KiB in the scratch folder; false if that is not possible. */
static bool mount_small_disk(const char *path) {
    mkdir(path, 0777);
    if (mount("tmpfs", path, "tmpfs", 0, "size=256k") == 0)
        return true;
    printf("# no small disk can be mounted here (%s); skipped\n", strerror(errno));
    return false;
}

TEST(a_full_disk_is_one_error_that_names_it_and_leaves_nothing) {
    char folder[700], path[800];
    snprintf(folder, sizeof folder, "%s/disk", scratch());
    snprintf(path, sizeof path, "%s/t.h5", folder);
    if (!mount_small_disk(folder))
        return;
    toy *model = saved_toy(path), *other = toy_new(4, 2);
    wg_tensor *big = wg_ones(WG_F32, WG_DIMS(100000));
    wg_checkpoint *file = wg_checkpoint_create(path);
    int put = wg_checkpoint_put_tensor(file, "/model/big", big);
    int committed = wg_checkpoint_commit(file);
    int left = files_in(folder);
    const wg_error *error = wg_error_pending();
    bool clear = error && error->code == WG_ERROR_IO &&
                 strstr(error->message, "disk/t.h5: No space left on device");
    wg_error_clear();
    int loaded = load_toy(path, other);
    umount(folder); /* before any assertion: a failure would leave it mounted */
    ck_assert_int_eq(put, -1);
    ck_assert_int_eq(committed, -1);
    ck_assert(clear);
    ck_assert_int_eq(left, 1);
    ck_assert_int_eq(loaded, 0);
    assert_same_toys(model, other);
}

/* Saves toys of growing seeds for ever, and writes a byte to the pipe after each. */
static void save_for_ever(const char *path, int pipe) {
    for (uint64_t seed = 1;; seed++) {
        toy *model = toy_new(4, seed);
        save_toy(path, model);
        if (write(pipe, "", 1) < 0)
            exit(1);
    }
}

static int64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Runs the above in a child, kills it at a random moment of its second save or soon after, and
 * returns how many saves were finished. */
static int64_t kill_a_writer(const char *path, wg_generator *generator) {
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    fcntl(ends[0], F_SETFL, 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        save_for_ever(path, ends[1]);
    close(ends[1]);
    char byte;
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    int64_t begin = microseconds();
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    int64_t saving = microseconds() - begin;
    usleep((useconds_t)wg_random_below(generator, (uint64_t)(2 * saving) + 1));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    int64_t count = 2;
    while (read(ends[0], &byte, 1) == 1)
        count++;
    close(ends[0]);
    return count;
}

TEST(a_writer_killed_at_any_moment_leaves_a_whole_file) {
    const char *path = in_scratch("t.h5");
    wg_generator generator = {.seed = 9};
    int left_behind = 0;
    for (int round = 0; round < 40; round++) {
        int64_t saved = kill_a_writer(path, &generator);
        toy *model = toy_new(4, 1);
        ck_assert_int_eq(load_toy(path, model), 0);
        int64_t found = wg_optimizer_steps(model->optimizer);
        ck_assert_msg(found == saved || found == saved + 1, "save %lld of %lld is there",
                      (long long)found, (long long)saved);
        toy *same = toy_new(4, (uint64_t)found);
        assert_same_toys(model, same);
        ck_assert_int_le(files_in(scratch()), 2);
        left_behind += files_in(scratch()) - 1;
    }
    printf("# %d of 40 died in the middle of a save\n", left_behind);
    toy *last = toy_new(4, 77);
    save_toy(path, last);
    assert_no_error();
    ck_assert_int_eq(files_in(scratch()), 1);
}
