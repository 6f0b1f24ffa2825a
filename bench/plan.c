/* wengert plan: predicts memory and time of a training on several ranks.
 *
 *     measured  one batch forward, backward, the optimizer's step; their memory; memcpy
 *     given     ranks, bandwidth and latency of the network, batches, ZeRO
 *     step    = batches of a rank + optimizer + copies of gradients + exchange that is not hidden
 *
 * Ranks on one machine share its memory bandwidth and slow each other down. So the batch is timed
 * while other processes train the same model, one for each further rank of the machine.
 *
 * Under mpirun the ranks exist, and their own row is measured instead:
 *
 *     rank 0    alone: memory, batches |  batches of all  | exchange | steps of the trainer
 *     rank 1    sleeps                 |  at once         | alone    | that sums gradients
 */
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/system.h"
#include "bench/bench.h"
#include "cli/output.h"
#include "tensor/easy.h"
#include "train/internal.h"

extern char **environ;

/* The share of an exchange that is hidden while backward runs. It is below 1 because MPI makes
 * progress only when it is called, and because the first gradients take a part of backward. */
static const double hidden_share = 0.5;

/* A byte that goes from one rank to another of its machine is read and written twice. */
static const double local_traffic = 4;

enum { MOST_RANKS = 1 << 20, MOST_ROWS = 24, REPEATS = 5 };

typedef struct arguments {
    wg__workload workload;
    int64_t ranks, on_machine; /* on_machine 0: all, limited by the cores here */
    int64_t threads;           /* of a rank */
    double bandwidth, latency; /* of the network: 10^9 bytes a second, microseconds */
    int64_t accumulate;        /* batches a step; 0: one a rank */
    int64_t zero;
    int bf16;             /* the type of sent gradients; of wg__product_dtype_name */
    double tokens, price; /* of the whole training; of a machine an hour, 0: not given */
    bool json;
} arguments;

static const wg_setting options[] = {
    {"ranks", WG_SETTING_INTEGER, WG__AT(ranks), .low = 1, .high = MOST_RANKS, .standard = "8",
     .argument = "N", .help = "Plan for 1, 2, 4 ... N ranks"},
    {"ranks-per-machine", WG_SETTING_INTEGER, WG__AT(on_machine), .low = 1, .high = 4096,
     .argument = "N",
     .help = "Ranks on one machine (default: limited by the cores here, or the number that mpirun "
             "started on one)"},
    {"bandwidth", WG_SETTING_NUMBER, WG__AT(bandwidth), .low = 1e-6, .high = 1e6,
     .standard = "1.25", .argument = "GB/S",
     .help = "Of the network between machines, each way; 1.25 are 10 Gbit/s"},
    {"latency", WG_SETTING_NUMBER, WG__AT(latency), .high = 1e9, .standard = "50", .argument = "US",
     .help = "Of a message between machines, in microseconds; 0: none"},
    {"accumulate", WG_SETTING_INTEGER, WG__AT(accumulate), .low = 1, .high = INT32_MAX,
     .argument = "N",
     .help = "Batches of a step, which the ranks share out (default: one for each rank)"},
    {"zero", WG_SETTING_INTEGER, WG__AT(zero), .high = 2, .standard = "0", .argument = "STAGE",
     .help = "0 to 2, as `pretrain --zero'"},
    {"communication-dtype", WG_SETTING_CHOICE, WG__AT(bf16), .choice = wg__product_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE", .help = "f32 or bf16, as `pretrain'"},
    {"optimizer", WG_SETTING_TEXT, WG__AT(workload.rule), .choice = wg__optimizer_name,
     .argument = "NAME", .help = "As `pretrain' (default: the preset's, or adamw)"},
    {"threads", WG_SETTING_INTEGER, WG__AT(threads), .low = 1, .high = 4096, .standard = "1",
     .argument = "N", .help = "Threads of a rank"},
    {"tokens", WG_SETTING_NUMBER, WG__AT(tokens), .low = 1, .high = 1e18, .standard = "1e9",
     .argument = "N", .help = "Tell the hours that so many tokens of training take"},
    {"price", WG_SETTING_NUMBER, WG__AT(price), .low = 1e-9, .high = 1e9, .argument = "N",
     .help = "Of a machine an hour: tell the cost of these tokens"},
    WG__ROW_JSON(arguments),
};

/* ---- Measurements on this machine ---- */

enum { FORWARD, BACKWARD, STEP };

typedef struct measured {
    double seconds[3];             /* of forward, backward, and clipping and the optimizer */
    double bandwidth;              /* of memcpy, bytes read and written a second */
    double weights, kept, working; /* bytes: of weights, of what forward keeps for backward, and of
                                    * both passes at most, gradients included */
    double state;                  /* bytes of the optimizer */
    double process;                /* bytes of a process without a model */
    int64_t beside;                /* processes that trained beside it */
} measured;

/* Measurements of all ranks of mpirun together, in seconds of the slowest. */
typedef struct together {
    int64_t ranks;      /* 1: there is no mpirun, and nothing was measured */
    double exchange;    /* all-reduce of all gradients in f32, with nothing else to do */
    double step, batch; /* a step of a batch a rank, and the time of a further batch */
} together;

/* With one thread and one rank, the processor time of the process, which excludes other programs.
 * Otherwise the clock: threads and ranks wait for each other. */
static double time_now(void) {
    struct timespec spent;
    if (wg_threads() > 1 || wg_group_size(wg__cli_group) > 1 ||
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0)
        return wg__now();
    return (double)spent.tv_sec + 1e-9 * (double)spent.tv_nsec;
}

/* Forward, backward, clipping and the optimizer's step, for a single batch. */
static int run_batch(wg__workload *w, double *seconds, double *kept) {
    wg_scope scope;
    const double before = (double)wg_alloc_get_stats().live_bytes;
    const double begun = time_now();
    wg_scope_begin(&scope);
    wg_tensor *loss = wg__workload_loss(w);
    const double forward = time_now();
    *kept = (double)wg_alloc_get_stats().live_bytes - before;
    const wg_dtype dtype = wg_set_matmul_dtype(w->dtype); /* of layers that run again */
    wg_backward(loss, NULL);
    wg_set_matmul_dtype(dtype);
    wg_scope_end(&scope, NULL);
    const double backward = time_now();
    if (wg_error_pending() || wg_optimizer_clip(w->optimizer, 1, NULL) < 0 ||
        wg_optimizer_step(w->optimizer, WG__WORKLOAD_RATE) < 0)
        return -1;
    seconds[0] = forward - begun;
    seconds[1] = backward - forward;
    seconds[2] = time_now() - backward;
    return 0;
}

static int time_batches(wg__workload *w, measured *found) {
    double seconds[3][REPEATS], batch[3], kept;
    for (int i = 0; i < REPEATS + 2; i++) { /* two warm up */
        if (run_batch(w, batch, &kept) < 0)
            return -1;
        for (int k = 0; k < 3 && i >= 2; k++)
            seconds[k][i - 2] = batch[k];
    }
    for (int k = 0; k < 3; k++)
        found->seconds[k] = wg__median(REPEATS, seconds[k]);
    return 0;
}

/* Measures memory in the first batch. Before it there are the weights, the optimizer's state and
 * the few bytes of a batch of tokens. */
static int measure_memory(wg__workload *w, measured *found) {
    double seconds[3];
    wg_scope scope;
    found->weights = 4 * (double)wg_module_parameter_count(w->module);
    const double before = (double)wg_alloc_get_stats().live_bytes;
    wg_scope_begin(&scope);
    wg_backward(wg__workload_loss(w), NULL);
    wg_scope_end(&scope, NULL);
    found->state = before - found->weights;
    found->working = (double)wg_alloc_get_stats().peak_bytes - before;
    wg_optimizer_zero_grad(w->optimizer);
    if (wg_error_pending() || run_batch(w, seconds, &found->kept) < 0)
        return -1;
    wg_optimizer_zero_grad(w->optimizer);
    return 0;
}

/* Another process that trains the model, until it is ended. */
static pid_t train_beside(const arguments *a, const wg__workload *w) {
    char batch[32], sequence[32], vocabulary[32], threads[32];
    snprintf(batch, sizeof batch, "--batch=%lld", (long long)w->batch);
    snprintf(sequence, sizeof sequence, "--seq=%lld", (long long)w->sequence);
    snprintf(vocabulary, sizeof vocabulary, "--vocab=%lld", (long long)w->vocabulary);
    snprintf(threads, sizeof threads, "--threads=%lld", (long long)a->threads);
    const char *const words[] = {"wengert",
                                 "bench",
                                 "train",
                                 w->model,
                                 "--preset",
                                 w->preset,
                                 batch,
                                 sequence,
                                 vocabulary,
                                 threads,
                                 "--steps=1000000",
                                 "--dtype",
                                 w->dtype == WG_BF16 ? "bf16" : "f32",
                                 w->recompute ? "--recompute" : NULL,
                                 NULL};
    posix_spawn_file_actions_t actions;
    pid_t process;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
    const int failure =
        posix_spawnp(&process, wg__own_path(), &actions, NULL, (char **)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failure ? -1 : process;
}

/* The processes beside need some seconds to begin. */
static int measure_beside(const arguments *a, wg__workload *w, measured *found) {
    enum { MOST = 255 };
    pid_t beside[MOST];
    int64_t count = 0;
    while (count < found->beside && count < MOST && (beside[count] = train_beside(a, w)) > 0)
        count++;
    found->beside = count;
    if (count > 0) {
        double seconds[3], kept;
        const double begun = wg__now();
        while (wg__now() - begun < 4)
            if (run_batch(w, seconds, &kept) < 0)
                break;
    }
    const int status = wg_error_pending() ? -1 : time_batches(w, found);
    for (int64_t i = 0; i < count; i++) {
        kill(beside[i], SIGKILL);
        waitpid(beside[i], NULL, 0);
    }
    return status;
}

/* ---- Measurements of the ranks of mpirun. All are collective. ---- */

/* All gradients by themselves, a piece of the trainer's at a time. */
static int measure_exchange(const wg__workload *w, together *found) {
    enum { PIECE = WG__BUCKET_BYTES / sizeof(float) };
    wg_group *group = wg__cli_group;
    const int64_t count = wg_module_parameter_count(w->module);
    float *gradients = calloc((size_t)count, sizeof *gradients);
    double times[REPEATS];
    int status = wg_group_check(
        group, gradients ? 0 : wg_fail(WG_ERROR_MEMORY, "plan", "no room for gradients"));
    for (int i = -1; status == 0 && i < REPEATS; i++) { /* one warms up */
        status = wg_group_barrier(group);
        const double begun = wg__now();
        for (int64_t first = 0; status == 0 && first < count; first += PIECE) {
            const int64_t left = count - first;
            status =
                wg_group_sum(group, WG_GROUP_F32, left < PIECE ? left : PIECE, gradients + first);
        }
        if (i >= 0)
            times[i] = wg__now() - begun;
    }
    free(gradients);
    if (status < 0)
        return -1;
    found->exchange = wg__median(REPEATS, times);
    return wg__group_max(group, WG_GROUP_F64, 1, &found->exchange);
}

/* A training on the workload's batch, with the time of each step on rank 0. */
typedef struct timed_run {
    wg__workload *workload;
    wg_batches *batches;            /* of numbers that nothing reads: the trainer counts by them */
    double step_times[REPEATS + 3]; /* when each step ended */
    int count;
} timed_run;

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    timed_run *run = context;
    wg_tensor *number[1];
    (void)metrics; /* of the loss itself */
    return wg_batches_next(run->batches, number) == 0 ? wg__workload_loss(run->workload) : NULL;
}

static void record_time(const wg_train_report *report, void *context) {
    timed_run *run = context;
    (void)report;
    run->step_times[run->count++] = wg__now();
}

/* Times steps of the trainer with so many batches a rank. The first two steps warm up. */
static int time_steps(const arguments *a, timed_run *run, int64_t batches, double *seconds) {
    wg_group *group = wg__cli_group;
    wg__workload *w = run->workload;
    const wg_task task = {
        .context = run, .module = w->module, .loss = next_loss, .batches = run->batches};
    const wg_trainer_options options = {
        .steps = REPEATS + 3,
        .schedule = {.kind = WG_SCHEDULE_CONSTANT, .peak = WG__WORKLOAD_RATE},
        .accumulate = batches * wg_group_size(group),
        .save_seconds = -1,
        .listener = record_time,
        .listener_context = run,
        .group = group,
        .zero = (int)a->zero,
        .bf16_gradients = a->bf16,
        .matmul_dtype = w->dtype,
    };
    run->count = 0;
    wg_trainer *trainer = wg_trainer_new(&task, wg__workload_optimizer(w), &options);
    int status = wg_group_check(group, trainer ? 0 : -1);
    if (status == 0)
        status = wg_trainer_run(trainer) < 0 ? -1 : 0;
    wg_trainer_free(trainer);
    double times[REPEATS] = {0};
    for (int i = 0; status == 0 && wg__cli_leads() && i < REPEATS; i++)
        times[i] = run->step_times[i + 3] - run->step_times[i + 2];
    *seconds = wg__median(REPEATS, times);
    return status;
}

/* The trainer's optimizer takes the place of the workload's. */
static int measure_steps(const arguments *a, wg__workload *w, together *found) {
    wg_group *group = wg__cli_group;
    double two = 0;
    wg_optimizer_free(w->optimizer);
    w->optimizer = NULL;
    timed_run run = {.workload = w,
                     .batches = wg_tensor_batches_new(WG_TENSORS(wg_zeros(WG_I64, WG_DIMS(1))),
                                                      &(wg_batches_options){.batch = 1})};
    int status = wg_group_check(group, run.batches ? 0 : -1);
    if (status == 0)
        status = time_steps(a, &run, 1, &found->step);
    if (status == 0 && a->accumulate > wg_group_size(group)) {
        status = time_steps(a, &run, 2, &two);
        found->batch = fmax(0, two - found->step);
    }
    wg_batches_free(run.batches);
    return status;
}

/* Without mpirun the ranks of a machine are other processes, which train by themselves. */
static int measure(const arguments *a, wg__workload *w, measured *alone, measured *beside,
                   together *all) {
    wg_group *group = wg__cli_group;
    *all = (together){.ranks = wg_group_size(group)};
    *alone = (measured){.process = (double)wg__resident_bytes()};
    if (wg_group_check(group, wg__workload_begin(w)) < 0)
        return -1;
    wg__machine machine = {0};
    const bool fails =
        wg__cli_leads() && (measure_memory(w, alone) < 0 || time_batches(w, alone) < 0 ||
                            wg__measure_machine(&machine) < 0);
    int status = wg_group_check(group, fails ? -1 : 0);
    alone->bandwidth = machine.bandwidth;
    *beside = *alone;
    beside->beside = (a->on_machine < a->ranks ? a->on_machine : a->ranks) - 1;
    if (status == 0 && all->ranks > 1) {
        /* The batches of all ranks at once; the ranks of a step wait for the slowest. */
        beside->beside = all->ranks - 1;
        if (wg_group_barrier(group) < 0 || wg_group_check(group, time_batches(w, beside)) < 0 ||
            wg__group_max(group, WG_GROUP_F64, 3, beside->seconds) < 0 ||
            measure_exchange(w, all) < 0 || measure_steps(a, w, all) < 0)
            status = -1;
    } else if (status == 0 && beside->beside > 0)
        status = measure_beside(a, w, beside);
    wg__workload_end(w);
    return status;
}

/* ---- What follows ---- */

typedef struct planned {
    int64_t ranks, machines, batches; /* batches a step */
    double rounds;                    /* of a step: the most batches that a rank has */
    double compute, optimizer, copies, exchange, hidden, step; /* seconds */
    double sent;                                               /* bytes that a rank sends a step */
    double state, gradients, memory;                           /* bytes a rank */
    double tokens, tokens_per_second, efficiency, hours, cost;
} planned;

/* Seconds and bytes of the exchange of a step. On a single machine all ranks share its memory. */
static void plan_exchange(const arguments *a, const measured *m, const together *all, planned *p) {
    const double n = (double)p->ranks, part = (n - 1) / n, bytes = m->weights;
    const double gradient_bytes = bytes / (a->bf16 ? 2 : 1);
    const double rounds = a->zero >= 2 ? p->rounds : 1;
    const double there = part * gradient_bytes * (a->zero ? rounds : 1);
    const double back = part * (a->zero ? bytes : gradient_bytes);
    const double on_machine = fmax(1, n / (double)p->machines);
    const double pieces = ceil(bytes / WG__BUCKET_BYTES) * (a->zero ? rounds + 1 : 1);
    p->sent = there + back;
    if (p->ranks == all->ranks || (p->machines == 1 && all->ranks > 1)) {
        const double measured_bytes = 2 * ((double)all->ranks - 1) * bytes; /* of all ranks */
        p->exchange = p->sent * n * all->exchange / measured_bytes;
        return;
    }
    if (p->machines == 1) {
        p->exchange = p->sent * local_traffic * n / m->bandwidth;
        return;
    }
    /* In a ring two ranks of a machine use its network; where each sends to each, all do. */
    const double sharing = a->zero || a->bf16 ? on_machine : 1;
    p->exchange =
        p->sent * sharing / (1e9 * a->bandwidth) + pieces * 2 * ceil(log2(n)) * 1e-6 * a->latency;
}

/* As wg__trainer_memory counts. */
static void plan_memory(const arguments *a, const measured *m, planned *p) {
    const double n = (double)p->ranks, all = m->weights;
    const double bucket = (double)wg__bucket_bytes((int64_t)all, p->ranks);
    double working = m->working;
    p->state = m->state / (a->zero && p->ranks > 1 ? n : 1);
    p->gradients = all;
    if (p->ranks > 1 && !a->zero) {
        p->gradients = 2 * all;
        working += all;
    } else if (p->ranks > 1) {
        const bool adds_up = a->zero == 1 && p->batches > p->ranks;
        p->gradients = all / n + 2 * WG__BUCKETS_UNDER_WAY * bucket + (adds_up ? all : 0);
        working = fmax(m->kept, m->working - all) + p->gradients;
    }
    p->memory = m->process + all + p->state + working;
}

static planned plan(const arguments *a, const wg__workload *w, const measured *alone,
                    const measured *beside, const together *all, int64_t ranks) {
    const measured *m = ranks == 1 ? alone : beside;
    const double n = (double)ranks;
    planned p = {.ranks = ranks,
                 .machines = (ranks + a->on_machine - 1) / a->on_machine,
                 .batches = a->accumulate ? a->accumulate : ranks};
    p.rounds = ceil((double)p.batches / n);
    p.compute = p.rounds * (m->seconds[FORWARD] + m->seconds[BACKWARD]);
    p.optimizer = m->seconds[STEP] / (a->zero ? n : 1);
    if (ranks > 1) {
        plan_exchange(a, m, all, &p);
        p.copies = 2 * (2 * m->weights / m->bandwidth) * (a->zero >= 2 ? p.rounds : 1);
        p.hidden =
            hidden_share * (p.exchange < m->seconds[BACKWARD] ? p.exchange : m->seconds[BACKWARD]);
    }
    p.step = p.compute + p.optimizer + p.copies + p.exchange - p.hidden;
    if (ranks > 1 &&
        ranks == all->ranks) { /* the sum of the parts minus the measured step was hidden */
        const double parts = p.step + p.hidden;
        p.step = all->step + (p.rounds - 1) * all->batch;
        p.hidden = fmax(0, parts - p.step);
    }
    plan_memory(a, m, &p);
    p.tokens = (double)(p.batches * w->tokens);
    p.tokens_per_second = p.tokens / p.step;
    const double single = (double)p.batches * (alone->seconds[FORWARD] + alone->seconds[BACKWARD]) +
                          alone->seconds[STEP];
    p.efficiency = single / (n * p.step);
    p.hours = a->tokens / p.tokens_per_second / 3600;
    p.cost = p.hours * (double)p.machines * a->price;
    return p;
}

/* ---- Results ---- */

static void report(const arguments *a, const wg__workload *w, const measured *alone,
                   const measured *beside, const together *all) {
    int64_t counts[MOST_ROWS];
    int rows = 0;
    /* Rows for 1, 2, 4 ... ranks, for --ranks, and for the ranks of mpirun. */
    for (int64_t ranks = 1; ranks < a->ranks; ranks *= 2) {
        counts[rows++] = ranks;
        if (ranks < all->ranks && all->ranks < 2 * ranks && all->ranks < a->ranks)
            counts[rows++] = all->ranks;
    }
    counts[rows++] = a->ranks;
    if (!a->json) {
        printf("%s, %lld parameters, %lld tokens in its vocabulary, batches of %lld x %lld tokens, "
               "%d thread%s a rank\n"
               "measured here: forward %.1f ms, backward %.1f ms, %s %.1f ms; beside %lld other%s "
               "%.1f, %.1f, %.1f; memcpy %.1f GB/s\n",
               w->preset, (long long)(alone->weights / 4), (long long)w->vocabulary,
               (long long)w->batch, (long long)w->sequence, (int)a->threads,
               a->threads == 1 ? "" : "s", 1e3 * alone->seconds[FORWARD],
               1e3 * alone->seconds[BACKWARD], w->rule, 1e3 * alone->seconds[STEP],
               (long long)beside->beside, beside->beside == 1 ? "" : "s",
               1e3 * beside->seconds[FORWARD], 1e3 * beside->seconds[BACKWARD],
               1e3 * beside->seconds[STEP], 1e-9 * alone->bandwidth);
        if (all->ranks > 1)
            printf("measured together: %lld ranks make a step of one batch each in %.1f ms; the "
                   "exchange by itself takes %.1f ms\n",
                   (long long)all->ranks, 1e3 * all->step, 1e3 * all->exchange);
        printf("\n ranks machines MiB a rank  ms a step   exchange    hidden    tokens/s "
               "efficiency     hours%s\n",
               a->price > 0 ? "      cost" : "");
    }
    json_t *list = json_array();
    for (int i = 0; i < rows; i++) {
        const planned p = plan(a, w, alone, beside, all, counts[i]);
        if (!a->json) {
            printf("%6lld %8lld %10.1f %11.1f %10.1f %9.1f %11.0f %7.1f %% %9.1f",
                   (long long)p.ranks, (long long)p.machines, p.memory / (1 << 20), 1e3 * p.step,
                   1e3 * p.exchange, 1e3 * p.hidden, p.tokens_per_second, 100 * p.efficiency,
                   p.hours);
            if (a->price > 0)
                printf(" %9.2f", p.cost);
            putchar('\n');
            continue;
        }
        json_t *row = json_pack(
            "{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
            "ranks", (json_int_t)p.ranks, "machines", (json_int_t)p.machines, "batches_per_step",
            (json_int_t)p.batches, "memory_mib", p.memory / (1 << 20), "state_mib",
            p.state / (1 << 20), "gradients_mib", p.gradients / (1 << 20), "sent_mib",
            p.sent / (1 << 20), "compute_ms", 1e3 * p.compute, "optimizer_ms", 1e3 * p.optimizer,
            "copies_ms", 1e3 * p.copies, "exchange_ms", 1e3 * p.exchange, "hidden_ms",
            1e3 * p.hidden, "step_ms", 1e3 * p.step, "tokens_per_s", p.tokens_per_second,
            "efficiency", p.efficiency, "hours", p.hours);
        if (a->price > 0)
            json_object_set_new(row, "cost", json_real(p.cost));
        json_array_append_new(list, row);
    }
    if (a->json)
        wg__print_json(
            JSON_INDENT(2),
            json_pack(
                "{s:s, s:I, s:I, s:I, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:O}",
                "preset", w->preset, "parameters", (json_int_t)(alone->weights / 4), "vocabulary",
                (json_int_t)w->vocabulary, "batch", (json_int_t)w->batch, "seq",
                (json_int_t)w->sequence, "threads", (int)a->threads, "forward_ms",
                1e3 * alone->seconds[FORWARD], "backward_ms", 1e3 * alone->seconds[BACKWARD],
                "optimizer_ms", 1e3 * alone->seconds[STEP], "forward_beside_ms",
                1e3 * beside->seconds[FORWARD], "backward_beside_ms",
                1e3 * beside->seconds[BACKWARD], "optimizer_beside_ms", 1e3 * beside->seconds[STEP],
                "memcpy_gb_per_s", 1e-9 * alone->bandwidth, "tokens", a->tokens, "measured_ranks",
                (json_int_t)all->ranks, "plan", list));
    json_decref(list);
}

/* Sets the ranks of a machine, limited by the cores here. -1 with an error. */
static int choose_machine(arguments *a) {
    wg_group *group = wg__cli_group;
    const int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t fit = cores > a->threads ? cores / a->threads : 1;
    if (wg_group_size(group) > 1 && a->on_machine == 0) { /* the ranks on rank 0's machine */
        char first[320] = "";
        const char *own = strstr(wg__group_name(group), " on ");
        snprintf(first, sizeof first, "%s", own ? own : "");
        if (wg_group_broadcast(group, 0, sizeof first, first) < 0)
            return -1;
        double here = strcmp(first, own ? own : "") == 0;
        if (wg_group_sum(group, WG_GROUP_F64, 1, &here) < 0)
            return -1;
        a->on_machine = (int64_t)here;
    }
    if (a->on_machine > fit)
        wg__cli_note("%lld ranks of %d threads want more than the %lld cores here; a rank is "
                     "slower in this measurement than on such a machine",
                     (long long)a->on_machine, (int)a->threads, (long long)cores);
    if (a->on_machine == 0)
        a->on_machine = fit;
    return 0;
}

int wg__verb_plan(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a), {&wg__workload_options, &a.workload}},
        .lines = "MODEL",
        .doc = "Predicts memory, time and efficiency of a training on several ranks from a few "
               "batches that it runs here, and under mpirun from steps of its ranks. MODEL is a "
               "kind (gpt, bert...) or one of its presets. A rank has one thread unless --threads "
               "says more.\v"
               "A step is the batches of a rank, clipping and the optimizer, the copies of "
               "gradients to and from their buffers, and the exchange between ranks. Half of the "
               "exchange is hidden while backward runs. An exchange between machines takes the "
               "bytes that a rank sends by --bandwidth, and --latency for each message; on one "
               "machine, the memory's bandwidth, which is measured. Efficiency is the tokens a "
               "second of the ranks, divided by their number times the tokens a second of a rank "
               "that runs all batches. Machines are taken to be as this one. The vocabulary is "
               "that of the published model unless --vocab tells the size of the run's own: a text "
               "of few words gives a smaller one, and a head that is faster. While batches are "
               "timed, one process trains for each rank of a machine. With one thread, processor "
               "time is measured, so that other programs count little; with several, the clock.\n\n"
               "Under `mpirun -n N' the row of N ranks is measured: the ranks run batches at once, "
               "exchange gradients by themselves, and make steps as `pretrain' does, by the clock. "
               "Rows of other numbers of ranks follow from these: an exchange on one machine "
               "scales with the measured one by its bytes; an exchange between machines follows "
               "--bandwidth and --latency.",
    };
    measured alone, beside;
    together all;
    wg__cli_read(&usage, argc, argv);
    a.workload.usual_rule = true;
    if (wg__cli_agree(argc, argv) < 0 || choose_machine(&a) < 0)
        return wg__cli_fail_pending();
    wg_set_threads((int)a.threads);
    if (measure(&a, &a.workload, &alone, &beside, &all) < 0)
        return wg__cli_fail_pending();
    if (wg__cli_leads())
        report(&a, &a.workload, &alone, &beside, &all);
    return 0;
}
