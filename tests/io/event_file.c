/* Event files: the bytes that TensorBoard's own writer gives, checksums, and what failures leave.
 */
#include "io/internal.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/internal.h"
#include "io/weights/binary_file.h"
#include "tests/support/testing.h"

TEST(checksums_are_those_of_rfc_3720) {
    uint8_t bytes[32] = {0};
    ck_assert_uint_eq(wg__crc("", 0, WG__CRC32C), 0);
    ck_assert_uint_eq(wg__crc("123456789", 9, WG__CRC32C), 0xe3069283u);
    ck_assert_uint_eq(wg__crc(bytes, 32, WG__CRC32C), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    ck_assert_uint_eq(wg__crc(bytes, 32, WG__CRC32C), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(wg__crc(bytes, 32, WG__CRC32C), 0x46dd794eu);
}

TEST(a_file_has_the_bytes_of_tensorboards_own_writer) {
    wg_event_file *file = wg__event_file_open(in_scratch("events"), 1700000000.25);
    ck_assert_ptr_nonnull(strstr(wg__event_file_path(file), "/events.out.tfevents.1700000000."));
    wg__event_file_text(file, "settings/text_summary", "    steps: 200");
    ck_assert_int_eq(wg__event_file_end(file, 0, 1700000000.5), 0);
    wg__event_file_scalar(file, "train/loss", 6.5);
    wg__event_file_scalar(file, "train/lr", 1e-3);
    ck_assert_int_eq(wg__event_file_end(file, 1, 1700000001.5), 0);
    wg__event_file_scalar(file, "eval/loss", 1e300); /* beyond a float */
    ck_assert_int_eq(wg__event_file_end(file, 300, 1700000400.125), 0);
    assert_same_files(wg__event_file_path(file), fixture("events.tfevents"), 0);
    wg__event_file_close(file);
}

TEST(each_opening_makes_a_file_of_its_own) {
    wg_event_file *one = wg__event_file_open(in_scratch("events"), 1700000000),
                  *two = wg__event_file_open(in_scratch("events"), 1700000000);
    ck_assert_str_ne(wg__event_file_path(one), wg__event_file_path(two));
    ck_assert_int_eq(files_in(in_scratch("events")), 2);
    wg__event_file_close(one);
    wg__event_file_close(two);
    assert_fails(wg__event_file_open(in_scratch("no/events"), 1700000000), WG_ERROR_NOT_FOUND,
                 "no/events");
}

/* In a process whose files cannot grow beyond 100 bytes: the version fits, and one event. */
static int write_beyond(const char *folder) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, 100});
    wg_event_file *file = wg__event_file_open(folder, 1700000000);
    wg__event_file_scalar(file, "loss", 1);
    if (wg__event_file_end(file, 1, 1700000001) < 0)
        return 1;
    wg__event_file_scalar(file, "a longer tag", 2);
    if (wg__event_file_end(file, 2, 1700000002) == 0 || wg_error_pending()->code != WG_ERROR_IO)
        return 2;
    wg_error_clear();
    struct stat status;
    const off_t count = stat(wg__event_file_path(file), &status) == 0 ? status.st_size : -1;
    wg__event_file_close(file);
    return count == 40 + 42 ? 0 : 3;
}

TEST(an_event_for_which_there_is_no_room_is_dropped_whole) {
    const char *folder = in_scratch("events");
    const pid_t child = fork();
    if (child == 0)
        _exit(write_beyond(folder));
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

/* An event with one number; `fails`: others found no memory before it was ended. */
static bytes write_event(const char *folder, bool fails) {
    wg_event_file *file = wg__event_file_open(folder, 1700000000);
    ck_assert_int_eq(wg__event_file_scalar(file, "loss", 1), 0);
    for (int64_t n = 0; fails && n < 2; n++) {
        wg__alloc_fail_after(n);
        const int status = n == 0 ? wg__event_file_scalar(file, "rate", 2)
                                  : wg__event_file_text(file, "settings", "steps: 200");
        wg__alloc_fail_after(-1);
        ck_assert_int_eq(status, -1);
        assert_error(WG_ERROR_MEMORY, "");
    }
    ck_assert_int_eq(wg__event_file_end(file, 1, 1700000001), 0);
    const bytes written = read_bytes(wg__event_file_path(file));
    wg__event_file_close(file);
    return written;
}

TEST(a_value_without_memory_leaves_no_part_in_the_event) {
    const bytes wanted = write_event(in_scratch("whole"), false),
                found = write_event(in_scratch("parts"), true);
    ck_assert_uint_eq(found.count, wanted.count);
    ck_assert_mem_eq(found.data, wanted.data, wanted.count);
    free(wanted.data);
    free(found.data);
}
