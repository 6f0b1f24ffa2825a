/* wengert plan: what a training on several ranks takes, before it is begun.
 *
 *     here      one batch forward, backward, the optimizer's step; memory that they take; memcpy
 *     told      ranks, bandwidth and latency of the network, batches, ZeRO
 *     step    = batches of a rank + optimizer + copies of gradients + exchange that is not hidden
 *
 * The ranks of a machine slow each other down, as they share its memory: while the batch is timed,
 * as many processes as a machine is to have ranks train the same model. */
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
#include "base/threads.h"
#include "bench/bench.h"
#include "cli/output.h"

extern char **environ;

/* As the exchanges of train/trainer_group.c and train/trainer_zero.c. */
enum { PIECE_BYTES = 4 << 20, UNDER_WAY = 3 };

/* Of the time in which backward and an exchange go on together, the share that is saved: MPI moves
 * on only when it is called, and the first gradients are complete after some of backward. */
static const double hidden_share = 0.5;

/* A byte that goes from one rank to another of its machine is read and written twice. */
static const double local_traffic = 4;

enum { MOST_RANKS = 1 << 20, MOST_ROWS = 24, REPEATS = 5 };

typedef struct arguments {
    wg__workload workload;
    int64_t ranks, on_machine; /* on_machine 0: all, up to what the cores here allow */
    int threads;
    double bandwidth, latency; /* of the network: bytes a second, seconds */
    int64_t accumulate;        /* batches a step; 0: one a rank */
    int zero;
    bool bf16;
    double tokens, price; /* of the whole training, 0: not told; of a machine an hour */
    bool json;
} arguments;

enum {
    KEY_RANKS = WG__KEY_BENCH,
    KEY_ON_MACHINE,
    KEY_THREADS,
    KEY_BANDWIDTH,
    KEY_LATENCY,
    KEY_ACCUMULATE,
    KEY_ZERO,
    KEY_DTYPE,
    KEY_OPTIMIZER,
    KEY_TOKENS,
    KEY_PRICE
};

static const struct argp_option options[] = {
    WG__OPTIONS_WORKLOAD,
    {"ranks", KEY_RANKS, "N", 0, "Plan for 1, 2, 4 ... N ranks (default 8)", 0},
    {"ranks-per-machine", KEY_ON_MACHINE, "N", 0,
     "How many of them one machine has (default: as many as the cores here allow)", 0},
    {"threads", KEY_THREADS, "N", 0, "Threads of a rank (default 1)", 0},
    {"bandwidth", KEY_BANDWIDTH, "GB/S", 0,
     "Of the network between machines, each way (default 1.25: 10 Gbit/s)", 0},
    {"latency", KEY_LATENCY, "US", 0, "Of a message between machines, in microseconds (default 50)",
     0},
    {"accumulate", KEY_ACCUMULATE, "N", 0,
     "Batches of a step, which the ranks share out (default: one for each rank)", 0},
    {"zero", KEY_ZERO, "STAGE", 0, "0 to 3, as `pretrain --zero' (default 0)", 0},
    {"communication-dtype", KEY_DTYPE, "TYPE", 0, "f32 or bf16, as `pretrain' (default f32)", 0},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "As `pretrain' (default: that of the preset, or adamw)",
     0},
    {"tokens", KEY_TOKENS, "N", 0, "Tell the hours that so many tokens of training take (1e9)", 0},
    {"price", KEY_PRICE, "N", 0, "Of a machine an hour: tell the cost of these tokens", 0},
    WG__OPTION_JSON,
    {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_RANKS:
        a->ranks = wg__cli_integer(state, "ranks", text, 1, MOST_RANKS);
        return 0;
    case KEY_ON_MACHINE:
        a->on_machine = wg__cli_integer(state, "ranks-per-machine", text, 1, 4096);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case KEY_BANDWIDTH:
        a->bandwidth = 1e9 * wg__cli_number(state, "bandwidth", text, 1e-6, 1e6);
        return 0;
    case KEY_LATENCY:
        a->latency = 1e-6 * wg__cli_number(state, "latency", text, 0, 1e9);
        return 0;
    case KEY_ACCUMULATE:
        a->accumulate = wg__cli_integer(state, "accumulate", text, 1, INT32_MAX);
        return 0;
    case KEY_ZERO:
        a->zero = (int)wg__cli_integer(state, "zero", text, 0, 3);
        return 0;
    case KEY_DTYPE:
        a->bf16 = strcmp(text, "bf16") == 0;
        if (!a->bf16 && strcmp(text, "f32") != 0)
            argp_error(state, "--communication-dtype is '%s'; it must be f32 or bf16", text);
        return 0;
    case KEY_OPTIMIZER:
        a->workload.rule = text;
        return 0;
    case KEY_TOKENS:
        a->tokens = wg__cli_number(state, "tokens", text, 1, 1e18);
        return 0;
    case KEY_PRICE:
        a->price = wg__cli_number(state, "price", text, 0, 1e9);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    default:
        return wg__parse_workload(key, text, state, &a->workload);
    }
}

/* ---- Measurements on this machine ---- */

typedef struct measured {
    double forward, backward, step; /* seconds of a batch, and of clipping and the optimizer */
    double bandwidth;               /* of memcpy, bytes read and written a second */
    double weights, kept, working;  /* bytes: of weights, of what forward keeps for backward, and of
                                     * both passes at most, gradients included */
    double state;                   /* bytes of the optimizer */
    double process;                 /* bytes of a process without a model */
    int64_t beside;                 /* processes that trained beside it */
} measured;

static double resident_bytes(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* One thread goes by the time that the processor gave it, in which other programs do not count; of
 * several only the clock knows how long they took. */
static double time_now(void) {
    struct timespec spent;
    if (wg_threads() > 1 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0)
        return wg__now();
    return (double)spent.tv_sec + 1e-9 * (double)spent.tv_nsec;
}

/* Forward, backward, clipping and the optimizer's step of one batch. */
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
    found->forward = wg__median(REPEATS, seconds[0]);
    found->backward = wg__median(REPEATS, seconds[1]);
    found->step = wg__median(REPEATS, seconds[2]);
    return 0;
}

/* The first batch tells the memory. Before it there are the weights and the optimizer's state, with
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
    snprintf(threads, sizeof threads, "--threads=%d", a->threads);
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
        posix_spawn(&process, "/proc/self/exe", &actions, NULL, (char **)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failure ? -1 : process;
}

static void end_process(pid_t process) {
    if (process <= 0)
        return;
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
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
    for (int64_t i = 0; i < count; i++)
        end_process(beside[i]);
    return status;
}

static int measure(const arguments *a, wg__workload *w, measured *alone, measured *found) {
    wg__machine machine;
    *alone = (measured){.process = resident_bytes()};
    if (wg__workload_begin(w) < 0)
        return -1;
    int status = measure_memory(w, alone);
    if (status == 0)
        status = time_batches(w, alone);
    *found = *alone;
    found->beside = (a->on_machine < a->ranks ? a->on_machine : a->ranks) - 1;
    if (status == 0 && found->beside > 0)
        status = measure_beside(a, w, found);
    wg__workload_end(w);
    if (status == 0)
        status = wg__measure_machine(&machine);
    alone->bandwidth = found->bandwidth = status == 0 ? machine.bandwidth : 0;
    return status;
}

/* ---- What follows ---- */

typedef struct planned {
    int64_t ranks, machines, batches;                          /* batches a step */
    double compute, optimizer, copies, exchange, hidden, step; /* seconds */
    double sent;                                               /* bytes that a rank sends a step */
    double state, gradients, memory;                           /* bytes a rank */
    double tokens, tokens_per_second, efficiency, hours, cost;
} planned;

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Seconds and bytes of the exchange of a step. Of one machine memory carries it, for all ranks. */
static void plan_exchange(const arguments *a, const measured *m, planned *p) {
    const double n = (double)p->ranks, part = (n - 1) / n, bytes = m->weights;
    const double gradient_bytes = bytes / (a->bf16 ? 2 : 1);
    const double rounds = a->zero >= 2 ? ceil((double)p->batches / n) : 1;
    const double there = part * gradient_bytes * (a->zero ? rounds : 1);
    /* Stage 3 sends weights forward and backward of each batch, the others after the step. */
    const double back = part * (a->zero == 3 ? 2 * rounds * bytes
                                : a->zero    ? bytes
                                             : gradient_bytes);
    const double on_machine = larger(1, n / (double)p->machines);
    const double pieces = ceil(bytes / PIECE_BYTES) * (a->zero ? rounds + 1 : 1);
    p->sent = there + back;
    if (p->machines == 1) {
        p->exchange = p->sent * local_traffic * n / m->bandwidth;
        return;
    }
    /* In a ring two ranks of a machine use its network; where each sends to each, all do. */
    const double sharing = a->zero || a->bf16 ? on_machine : 1;
    p->exchange = p->sent * sharing / a->bandwidth + pieces * 2 * ceil(log2(n)) * a->latency;
}

/* As wg_trainer_memory counts. */
static void plan_memory(const arguments *a, const measured *m, planned *p) {
    const double n = (double)p->ranks, all = m->weights;
    const double bucket =
        larger(larger(all / 16, 64 << 10) > PIECE_BYTES ? PIECE_BYTES : all / 16, 1);
    double working = m->working;
    p->state = m->state / (a->zero && p->ranks > 1 ? n : 1);
    p->gradients = all;
    if (p->ranks > 1 && !a->zero) {
        p->gradients = 2 * all;
        working += all;
    } else if (p->ranks > 1) {
        const bool adds_up = a->zero == 1 && p->batches > p->ranks;
        p->gradients = all / n + 2 * UNDER_WAY * bucket + (adds_up ? all : 0);
        working = larger(m->kept, m->working - all) + p->gradients;
    }
    /* The layers that are there for a time are not known here. */
    const double weights = a->zero == 3 && p->ranks > 1 ? all / n : all;
    p->memory = m->process + weights + p->state + working;
}

static planned plan(const arguments *a, const wg__workload *w, const measured *alone,
                    const measured *beside, int64_t ranks) {
    const measured *m = ranks == 1 ? alone : beside;
    const double n = (double)ranks;
    planned p = {.ranks = ranks,
                 .machines = (ranks + a->on_machine - 1) / a->on_machine,
                 .batches = a->accumulate ? a->accumulate : ranks};
    const double rounds = ceil((double)p.batches / n);
    p.compute = rounds * (m->forward + m->backward);
    p.optimizer = m->step / (a->zero ? n : 1);
    if (ranks > 1) {
        plan_exchange(a, m, &p);
        p.copies = 2 * (2 * m->weights / m->bandwidth) * (a->zero >= 2 ? rounds : 1);
        p.hidden = hidden_share * (p.exchange < m->backward ? p.exchange : m->backward);
    }
    p.step = p.compute + p.optimizer + p.copies + p.exchange - p.hidden;
    plan_memory(a, m, &p);
    p.tokens = (double)(p.batches * w->tokens);
    p.tokens_per_second = p.tokens / p.step;
    const double single = (double)p.batches * (alone->forward + alone->backward) + alone->step;
    p.efficiency = single / (n * p.step);
    p.hours = a->tokens / p.tokens_per_second / 3600;
    p.cost = p.hours * (double)p.machines * a->price;
    return p;
}

/* ---- Results ---- */

static void print_row(const arguments *a, const planned *p) {
    printf("%6lld %8lld %10.1f %11.1f %10.1f %9.1f %11.0f %7.1f %% %9.1f", (long long)p->ranks,
           (long long)p->machines, p->memory / (1 << 20), 1e3 * p->step, 1e3 * p->exchange,
           1e3 * p->hidden, p->tokens_per_second, 100 * p->efficiency, p->hours);
    if (a->price > 0)
        printf(" %9.2f", p->cost);
    putchar('\n');
}

static json_t *row_json(const arguments *a, const planned *p) {
    json_t *row =
        json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                  "ranks", (json_int_t)p->ranks, "machines", (json_int_t)p->machines,
                  "batches_per_step", (json_int_t)p->batches, "memory_mib", p->memory / (1 << 20),
                  "state_mib", p->state / (1 << 20), "gradients_mib", p->gradients / (1 << 20),
                  "sent_mib", p->sent / (1 << 20), "compute_ms", 1e3 * p->compute, "optimizer_ms",
                  1e3 * p->optimizer, "copies_ms", 1e3 * p->copies, "exchange_ms",
                  1e3 * p->exchange, "hidden_ms", 1e3 * p->hidden, "step_ms", 1e3 * p->step,
                  "tokens_per_s", p->tokens_per_second, "efficiency", p->efficiency);
    json_object_set_new(row, "hours", json_real(p->hours));
    if (a->price > 0)
        json_object_set_new(row, "cost", json_real(p->cost));
    return row;
}

static void report(const arguments *a, const wg__workload *w, const measured *alone,
                   const measured *beside) {
    int64_t counts[MOST_ROWS];
    int rows = 0;
    for (int64_t ranks = 1; ranks < a->ranks; ranks *= 2)
        counts[rows++] = ranks;
    counts[rows++] = a->ranks;
    json_t *list = a->json ? json_array() : NULL;
    if (!list)
        printf("%s, %lld parameters, %lld tokens in its vocabulary, batches of %lld x %lld tokens, "
               "%d thread%s a rank\n"
               "measured here: forward %.1f ms, backward %.1f ms, %s %.1f ms; beside %lld "
               "other%s %.1f, %.1f, %.1f; memcpy %.1f GB/s\n\n"
               " ranks machines MiB a rank  ms a step   exchange    hidden    tokens/s efficiency "
               "    hours%s\n",
               w->preset, (long long)(alone->weights / 4), (long long)w->vocabulary,
               (long long)w->batch, (long long)w->sequence, a->threads, a->threads == 1 ? "" : "s",
               1e3 * alone->forward, 1e3 * alone->backward, w->rule, 1e3 * alone->step,
               (long long)beside->beside, beside->beside == 1 ? "" : "s", 1e3 * beside->forward,
               1e3 * beside->backward, 1e3 * beside->step, 1e-9 * alone->bandwidth,
               a->price > 0 ? "      cost" : "");
    for (int i = 0; i < rows; i++) {
        const planned p = plan(a, w, alone, beside, counts[i]);
        if (list)
            json_array_append_new(list, row_json(a, &p));
        else
            print_row(a, &p);
    }
    if (list)
        wg__print_json(json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "preset",
            w->preset, "parameters", (json_int_t)(alone->weights / 4), "vocabulary",
            (json_int_t)w->vocabulary, "batch", (json_int_t)w->batch, "seq",
            (json_int_t)w->sequence, "threads", a->threads, "forward_ms", 1e3 * alone->forward,
            "backward_ms", 1e3 * alone->backward, "optimizer_ms", 1e3 * alone->step,
            "forward_beside_ms", 1e3 * beside->forward, "backward_beside_ms",
            1e3 * beside->backward, "optimizer_beside_ms", 1e3 * beside->step, "memcpy_gb_per_s",
            1e-9 * alone->bandwidth, "tokens", a->tokens, "plan", list));
}

/* The cores here bound what can be measured of a machine. */
static void choose_machine(arguments *a) {
    const int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t fit = cores > a->threads ? cores / a->threads : 1;
    if (a->on_machine > fit)
        wg__cli_note("%lld ranks of %d threads want more than the %lld cores here; a rank is "
                     "slower in this measurement than on such a machine",
                     (long long)a->on_machine, a->threads, (long long)cores);
    if (a->on_machine == 0)
        a->on_machine = fit;
}

int wg__verb_plan(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL",
        .doc =
            "Predicts memory, time and efficiency of a training on several ranks from a few "
            "batches "
            "that it runs here. MODEL is a kind, such as gpt or bert, or one of its presets.\v"
            "A step is the batches of a rank, clipping and the optimizer, the copies of gradients "
            "to and "
            "from their buffers, and the exchange between ranks, of which half is hidden as long "
            "as "
            "backward goes on. An exchange between machines takes the bytes that a rank sends by "
            "--bandwidth, and --latency for each message; on one machine, the memory's bandwidth, "
            "which is measured. Efficiency is the tokens a second of the ranks by those of as many "
            "times one rank that runs all batches. Machines are taken to be as this one. The "
            "vocabulary is that of the published model unless --vocab tells the size of the run's "
            "own: a text of few words gives a smaller one, and a head that is faster. While "
            "batches are timed, as many processes train as a machine has ranks. The time of one "
            "thread is that "
            "of the processor, so that other programs count little; that of several is the "
            "clock's.",
    };
    arguments a = {.workload = {.usual_rule = true},
                   .ranks = 8,
                   .threads = 1,
                   .bandwidth = 1.25e9,
                   .latency = 50e-6,
                   .tokens = 1e9};
    measured alone, beside;
    wg__cli_parse(&parser, argc, argv, &a);
    choose_machine(&a);
    wg_set_threads(a.threads);
    if (measure(&a, &a.workload, &alone, &beside) < 0)
        return wg__cli_fail_pending();
    report(&a, &a.workload, &alone, &beside);
    return 0;
}
