/* Groups of one rank. Those of several are tested by tests/cli/ranks.sh, which starts them. */
#include <stdlib.h>

#include "base/group.h"
#include "tests/support/testing.h"
#include "base/internal.h"

/* A process that mpirun did not start, and NULL. */
static void assert_is_alone(wg_group *group) {
    double sums[] = {3, -2};
    float few[] = {1.5f};
    char text[] = "kept";
    ck_assert_int_eq(wg_group_rank(group), 0);
    ck_assert_int_eq(wg_group_size(group), 1);
    ck_assert_int_eq(wg__group_threads(group), 0);
    ck_assert_str_eq(wg__group_name(group), "rank 0");
    ck_assert_int_eq(wg_group_sum(group, WG_GROUP_F64, 2, sums), 0);
    ck_assert_int_eq(wg__group_max(group, WG_GROUP_F64, 2, sums), 0);
    ck_assert_int_eq(wg_group_sum(group, WG_GROUP_F32, 1, few), 0);
    ck_assert_int_eq(wg_group_broadcast(group, 0, sizeof text, text), 0);
    ck_assert_int_eq(wg_group_barrier(group), 0);
    ck_assert(sums[0] == 3 && sums[1] == -2 && few[0] == 1.5f);
    ck_assert_str_eq(text, "kept");
    wg__group_set_timeout(group, 1);
    wg_group_abort(group, "a group of one goes on");
}

TEST(a_process_that_was_started_alone_is_a_group_of_one) {
    wg_group *group = wg_group_join();
    ck_assert_ptr_nonnull(group);
    assert_is_alone(group);
    wg_group_leave(group);
    assert_is_alone(NULL);
    wg_group_leave(NULL);
}

TEST(it_agrees_with_itself_and_keeps_its_errors) {
    wg_group *group = wg_group_join();
    ck_assert_int_eq(wg__group_agree(group, "the corpus", "a text"), 0);
    ck_assert_int_eq(wg_group_check(group, 0), 0);
    assert_no_error();
    assert_fails(wg_group_check(group, wg_fail(WG_ERROR_IO, "disk", "it is full")), WG_ERROR_IO,
                 "disk: it is full");
    wg_group_leave(group);
}

/* As under the mpirun of another MPI, where each process would think itself alone and all would
 * write the same files. */
TEST(one_of_several_processes_that_sees_no_other_is_refused) {
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    assert_fails(wg_group_join(), WG_ERROR_STATE, "one of 3 processes");
    unsetenv("SLURM_STEP_NUM_TASKS");
}
