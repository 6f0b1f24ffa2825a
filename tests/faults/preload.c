/* Lets the n-th system call or allocation of a program fail, or kills the program there. A shared
 * library for LD_PRELOAD; tests/faults/faults.sh builds and drives it.
 *
 *     WENGERT_FAULT="KIND N ACTION"    the N-th event of that kind (from 1):
 *         fail      fails once                   (ENOSPC, EIO, EMFILE, ENOMEM: table `kinds')
 *         fail-on   and every later one fails too
 *         short     reads or writes one byte     (read and write)
 *         kill      the program dies by SIGKILL before the call
 *     WENGERT_FAULT_COUNTS=FILE        at exit, writes how many events of each kind there were
 *
 * System calls are caught below the C library, so those of stdio, HDF5 and other libraries count,
 * too: a seccomp filter turns the calls of the table into SIGSYS, and the handler carries them out.
 * Its own calls have a sixth argument, unused by all of them but mmap, that lets them pass.
 *
 *     program -> libc -> read(2) -> filter: 6th argument PASS? -yes-> kernel
 *                                     '-no-> SIGSYS -> on_call: fail, kill, or read(..., PASS)
 *
 * What goes to standard error is never touched: there the program says what went wrong. Events
 * before main, of the loader, are not counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the registers of a system call are those of x86-64"
#endif

#define PASS 0x5747464155L /* in the sixth argument: a call of the handler's own */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum kind { ALLOC, OPEN, READ, WRITE, SYNC, RENAME, TRUNCATE, MAP, KINDS };

static const struct {
    const char *name;
    int error;
} kinds[KINDS] = {
    [ALLOC] = {"alloc", ENOMEM}, [OPEN] = {"open", EMFILE},
    [READ] = {"read", EIO},      [WRITE] = {"write", ENOSPC},
    [SYNC] = {"sync", EIO},      [RENAME] = {"rename", EIO},
    [MAP] = {"map", ENOMEM},     [TRUNCATE] = {"truncate", ENOSPC},
};

static const struct {
    int number;
    enum kind kind;
} calls[] = {
    {SYS_open, OPEN},       {SYS_openat, OPEN},        {SYS_creat, OPEN},
    {SYS_read, READ},       {SYS_pread64, READ},       {SYS_readv, READ},
    {SYS_write, WRITE},     {SYS_pwrite64, WRITE},     {SYS_writev, WRITE},
    {SYS_fsync, SYNC},      {SYS_fdatasync, SYNC},     {SYS_rename, RENAME},
    {SYS_renameat, RENAME}, {SYS_renameat2, RENAME},   {SYS_linkat, RENAME},
    {SYS_mkdir, RENAME},    {SYS_ftruncate, TRUNCATE}, {SYS_fallocate, TRUNCATE},
};

static enum { NOTHING, FAIL, FAIL_ON, SHORT, KILL } action;
static int fault_kind = -1;
static long fault_at;
static atomic_long events[KINDS];

/* Counts an event; true if it is the one that was asked for. */
static int is_chosen(int kind) {
    const long n = atomic_fetch_add(&events[kind], 1) + 1;
    if (kind != fault_kind || (n != fault_at && !(action == FAIL_ON && n > fault_at)))
        return 0;
    if (action == KILL)
        kill(getpid(), SIGKILL);
    return 1;
}

/* ---- System calls ---- */

static long pass(const greg_t *r) {
    register long r10 __asm__("r10") = r[REG_R10];
    register long r8 __asm__("r8") = r[REG_R8];
    register long r9 __asm__("r9") = PASS;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(r[REG_RAX]), "D"(r[REG_RDI]), "S"(r[REG_RSI]), "d"(r[REG_RDX]), "r"(r10),
                       "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static int kind_of_call(long number) {
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        if (calls[i].number == number)
            return calls[i].kind;
    return -1;
}

static void on_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    r[REG_RAX] = info->si_syscall;
    const int kind = kind_of_call(info->si_syscall);
    const int is_stderr = kind == WRITE && r[REG_RDI] == STDERR_FILENO;
    if (!is_stderr && is_chosen(kind)) {
        if (action == SHORT && r[REG_RDX] > 1)
            r[REG_RDX] = 1;
        else if (action != SHORT) {
            r[REG_RAX] = -kinds[kind].error;
            return;
        }
    }
    r[REG_RAX] = pass(r);
}

static void catch_calls(void) {
    struct sock_filter program[COUNT_OF(calls) + 8];
    size_t n = 0;
    /* The low word of the sixth argument tells the handler's own calls. */
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                offsetof(struct seccomp_data, args[5]));
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)PASS,
                                                (uint8_t)(COUNT_OF(calls) + 1), 0);
    program[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        program[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number,
                                         (uint8_t)(COUNT_OF(calls) - i), 0);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    const struct sock_fprog filter = {(unsigned short)n, program};
    struct sigaction action_of_signal = {.sa_sigaction = on_call,
                                         .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action_of_signal, NULL) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        fprintf(stderr, "preload: no seccomp filter here: %s\n", strerror(errno));
        _exit(99);
    }
}

/* ---- Memory. Each of these has a name of glibc's own below it. WENGERT_FAULT_SKIP names libraries
 * whose allocations do not count, because they do not bear a failure (`skipped'). ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int is_ready;
static struct { uintptr_t begin, end; } skipped[16];
static size_t skips;

/* Notes the code of the libraries whose names are given: from /proc/self/maps. */
static void skip_libraries(const char *names) {
    FILE *maps = names ? fopen("/proc/self/maps", "r") : NULL;
    char line[512], word[64];
    while (maps && fgets(line, sizeof line, maps))
        for (const char *at = names; sscanf(at, "%63s", word) == 1;) {
            at = strstr(at, word) + strlen(word);
            unsigned long begin, end;
            if (strstr(line, word) && sscanf(line, "%lx-%lx r-x", &begin, &end) == 2 &&
                strstr(line, " r-xp ") && skips < COUNT_OF(skipped)) {
                skipped[skips].begin = begin;
                skipped[skips++].end = end;
            }
        }
    if (maps)
        fclose(maps);
}

/* Says so if the allocation that fails is one of Jansson's parser: version 2.14 drops the byte for
 * which it got no memory and then reads on to a quotation mark that is not there. */
static void tell_of_parser(void) {
    void *callers[64];
    Dl_info function;
    const int n = backtrace(callers, COUNT_OF(callers));
    for (int i = 0; i < n; i++)
        if (dladdr(callers[i], &function) && function.dli_sname &&
            !strncmp(function.dli_sname, "json_load", strlen("json_load"))) {
            dprintf(STDERR_FILENO, "preload: %s of Jansson gets no memory\n", function.dli_sname);
            return;
        }
}

static int fails(const void *caller) {
    if (!is_ready)
        return 0;
    for (size_t i = 0; i < skips; i++)
        if ((uintptr_t)caller >= skipped[i].begin && (uintptr_t)caller < skipped[i].end)
            return 0;
    if (!is_chosen(ALLOC))
        return 0;
    tell_of_parser();
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (fails(__builtin_return_address(0)))
        return ENOMEM;
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

/* What libraries that are skipped allocate by way of the C library. */
char *strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *strndup(const char *text, size_t most) {
    const size_t size = strnlen(text, most);
    char *copy = fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size + 1);
    if (copy)
        *(char *)mempcpy(copy, text, size) = '\0';
    return copy;
}

int vasprintf(char **text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text =
        length < 0 || fails(__builtin_return_address(0)) ? NULL : __libc_malloc((size_t)length + 1);
    return *text ? vsnprintf(*text, (size_t)length + 1, format, arguments) : -1;
}

/* Memory that the library takes from the system by itself. */
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (is_ready && is_chosen(MAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

/* ---- Begin and end ---- */

static void read_fault(void) {
    static const char *const actions[] = {"", "fail", "fail-on", "short", "kill"};
    char kind[16] = "", what[16] = "";
    const char *text = getenv("WENGERT_FAULT");
    if (!text || !*text)
        return;
    if (sscanf(text, "%15s %ld %15s", kind, &fault_at, what) == 3) {
        for (int i = 0; i < KINDS; i++)
            if (!strcmp(kinds[i].name, kind))
                fault_kind = i;
        for (size_t i = 1; i < COUNT_OF(actions); i++)
            if (!strcmp(actions[i], what))
                action = (int)i;
    }
    if (fault_kind < 0 || action == NOTHING) {
        fprintf(stderr, "preload: WENGERT_FAULT is '%s'\n", text);
        _exit(99);
    }
}

static int (*program)(int, char **, char **);

static int begin(int argc, char **argv, char **environment) {
    read_fault();
    skip_libraries(getenv("WENGERT_FAULT_SKIP"));
    void *caller;
    backtrace(&caller, 1); /* the first call loads a library */
    catch_calls();
    is_ready = 1;
    return program(argc, argv, environment);
}

int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                      void (*)(void), void *);

/* The C library's, which runs `begin' in place of main. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*at_end)(void), void *stack_end) {
    __typeof__(&__libc_start_main) start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return start(begin, argc, argv, init, fini, at_end, stack_end);
}

__attribute__((destructor)) static void end(void) {
    is_ready = 0;
    fault_kind = -1;
    const char *path = getenv("WENGERT_FAULT_COUNTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (int i = 0; file && i < KINDS; i++)
        fprintf(file, "%s %ld\n", kinds[i].name, atomic_load(&events[i]));
    if (file)
        fclose(file);
}
