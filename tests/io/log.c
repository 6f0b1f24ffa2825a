/* Metric logs: whole lines of JSON, appended whatever happens between them. */
#include "io/internal.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/testing.h"

/* The text of the file; a static buffer. */
static const char *read_file(const char *path) {
    static char text[65536];
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    fclose(stream);
    return text;
}

static int write_step(wg__metric_log *log, int64_t step) {
    wg__metric_log_integer(log, "step", step);
    wg__metric_log_number(log, "loss", 1.0 / (double)step);
    return wg__metric_log_end_line(log);
}

TEST(each_line_is_one_object_in_the_order_given) {
    const char *path = in_scratch("run.jsonl");
    wg__metric_log *log = wg__metric_log_open(path);
    wg__metric_log_integer(log, "step", 1);
    wg__metric_log_number(log, "loss", 6.5);
    wg__metric_log_number(log, "lr", 1e-4);
    ck_assert_int_eq(wg__metric_log_end_line(log), 0);
    wg__metric_log_number(log, "a", NAN);
    wg__metric_log_number(log, "b", -INFINITY);
    ck_assert_int_eq(wg__metric_log_end_line(log), 0);
    ck_assert_str_eq(read_file(path), "{\"step\": 1, \"loss\": 6.5, \"lr\": 0.0001}\n"
                                      "{\"a\": null, \"b\": null}\n");
    wg__metric_log_close(log);
}

TEST(a_line_is_on_disk_as_soon_as_it_is_ended) {
    const char *path = in_scratch("run.jsonl");
    wg__metric_log *log = wg__metric_log_open(path);
    wg__metric_log_integer(log, "step", 1);
    ck_assert_str_eq(read_file(path), "");
    ck_assert_int_eq(wg__metric_log_end_line(log), 0);
    ck_assert_str_eq(read_file(path), "{\"step\": 1}\n");
    wg__metric_log_integer(log, "step", 2);
    wg__metric_log_close(log);
    ck_assert_str_eq(read_file(path), "{\"step\": 1}\n");
}

/* After a line that was cut off the next one begins on its own. */
TEST(an_old_log_is_appended_to) {
    static const char *const cases[][2] = {{"{\"step\": 1}\n", "{\"step\": 1}\n"},
                                           {"{\"step\": 1}\n{\"st", "{\"step\": 1}\n{\"st\n"}};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const char *path = write_text("run.jsonl", cases[i][0]);
        wg__metric_log *log = wg__metric_log_open(path);
        for (int64_t step = 2; step <= 3; step++) {
            wg__metric_log_integer(log, "step", step);
            ck_assert_int_eq(wg__metric_log_end_line(log), 0);
        }
        wg__metric_log_close(log);
        char wanted[128];
        snprintf(wanted, sizeof wanted, "%s{\"step\": 2}\n{\"step\": 3}\n", cases[i][1]);
        ck_assert_str_eq(read_file(path), wanted);
    }
}

TEST(every_number_reads_back_the_same) {
    const char *path = in_scratch("run.jsonl");
    const double values[] = {0.1,  1.0 / 3.0,           1e300,       5e-324,
                             -0.0, 123456789.123456789, (double)0.1f};
    wg__metric_log *log = wg__metric_log_open(path);
    for (size_t i = 0; i < WG_COUNT(values); i++) {
        wg__metric_log_number(log, "value", values[i]);
        ck_assert_int_eq(wg__metric_log_end_line(log), 0);
    }
    wg__metric_log_close(log);
    FILE *stream = fopen(path, "rb");
    for (size_t i = 0; i < WG_COUNT(values); i++) {
        json_t *line = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
        double value = json_real_value(json_object_get(line, "value"));
        ck_assert_msg(memcmp(&value, &values[i], sizeof value) == 0, "%.17g became %.17g",
                      values[i], value);
        json_decref(line);
    }
    fclose(stream);
}

TEST(a_log_that_cannot_be_opened_is_an_error_with_its_path) {
    assert_fails(wg__metric_log_open("no/such/folder/run.jsonl"), WG_ERROR_NOT_FOUND,
                 "no/such/folder/run.jsonl: No such file");
    assert_fails(wg__metric_log_open("/"), WG_ERROR_IO, "/: Is a directory");
}

TEST(a_full_disk_is_an_error_with_the_path) {
    wg__metric_log *log = wg__metric_log_open("/dev/full");
    if (!log) {
        wg_error_clear();
        puts("# no /dev/full here; skipped");
        return;
    }
    assert_fails(write_step(log, 1), WG_ERROR_IO, "/dev/full: No space left");
    wg__metric_log_close(log);
}

TEST(a_line_that_does_not_fit_leaves_the_file_as_it_was) {
    const char *path = in_scratch("run.jsonl");
    wg__metric_log *log = wg__metric_log_open(path);
    ck_assert_int_eq(write_step(log, 1), 0);
    /* A limit on the size of files, in place of a full disk: the write is cut short. */
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    limit = old;
    limit.rlim_cur = strlen(read_file(path)) + 5;
    setrlimit(RLIMIT_FSIZE, &limit);
    int status = write_step(log, 2);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(status, -1);
    assert_error(WG_ERROR_IO, path);
    ck_assert_str_eq(read_file(path), "{\"step\": 1, \"loss\": 1.0}\n");
    ck_assert_int_eq(write_step(log, 4), 0);
    ck_assert_str_eq(read_file(path),
                     "{\"step\": 1, \"loss\": 1.0}\n{\"step\": 4, \"loss\": 0.25}\n");
    wg__metric_log_close(log);
}

TEST(nothing_is_logged_while_an_error_is_pending) {
    const char *path = in_scratch("run.jsonl");
    wg__metric_log *log = wg__metric_log_open(path);
    wg_fail(WG_ERROR_STATE, "test", "something else");
    assert_fails(write_step(log, 1), WG_ERROR_STATE, "something else");
    ck_assert_str_eq(read_file(path), "");
    wg__metric_log_close(log);
}

static int64_t size_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* A kernel may give up a write of a killed process between two pages. */
TEST(a_killed_writer_leaves_whole_lines) {
    const char *path = in_scratch("run.jsonl");
    for (int round = 0; round < 5; round++) {
        const int64_t before = size_of(path);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            wg__metric_log *log = wg__metric_log_open(path);
            for (int64_t step = 1;; step++)
                write_step(log, step);
        }
        while (size_of(path) == before) /* other processes may run before the child does */
            usleep(1000);
        usleep(1000 * (useconds_t)round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    const long page = sysconf(_SC_PAGESIZE);
    FILE *stream = fopen(path, "rb");
    char line[256];
    int64_t lines = 0;
    for (; fgets(line, sizeof line, stream); lines++) {
        const char *newline = strchr(line, '\n');
        const long end = ftell(stream) - (newline != NULL);
        json_t *object = json_loads(line, 0, NULL);
        const bool whole = json_is_object(object) && newline;
        ck_assert_msg(whole || end % page == 0, "line %lld, which ends at byte %ld, is %s",
                      (long long)lines, end, line);
        json_decref(object);
    }
    fclose(stream);
    ck_assert_int_gt(lines, 0);
}
