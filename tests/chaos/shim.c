/* Faults at system calls, for one process: loaded with LD_PRELOAD, harmless until it is armed.

   Calls that change a file below the armed folder are counted. From call `at` on, `length` calls
   fail with `error`; or call `at` ends the process before it, after it, or after half of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { NOTHING, FAIL, KILL_BEFORE, KILL_AFTER, KILL_HALFWAY };

static char folder[PATH_MAX];
static int kind = NOTHING, error_number;
static long at, length, calls, offset;

void chaos_arm(const char *below, int what, long first, long how_many, int error) {
    kind = NOTHING;
    snprintf(folder, sizeof folder, "%s", below);
    at = first, length = how_many, error_number = error, calls = 0;
    kind = what;
}

void chaos_clock(long seconds) { offset = seconds; }

static int is_below(int file) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    size_t below = strlen(folder);  /* the worker's log is beside the folder, with a longer name */
    return !strncmp(path, folder, below) && path[below] == '/';
}

static void end_now(void) { kill(getpid(), SIGKILL); pause(); }

/* What becomes of this call: 0 it goes on, 1 it fails, 2 it is the last, 3 half of it is the last. */
static int fate(int file) {
    if (kind == NOTHING || !is_below(file)) return 0;
    long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (kind == FAIL) return number >= at && number < at + length;
    if (number != at) return 0;
    if (kind == KILL_BEFORE) end_now();
    return kind == KILL_HALFWAY ? 3 : 2;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))
#define FAILED do { errno = error_number; return -1; } while (0)
#define AROUND(file, call) \
    int what = fate(file); \
    if (what == 1) FAILED; \
    __typeof__(call) result = call; \
    if (what) end_now(); \
    return result;

ssize_t write(int file, const void *data, size_t size) {
    static __typeof__(&write) real;
    if (!real) real = REAL(write);
    int what = fate(file);
    if (what == 1) FAILED;
    ssize_t result = real(file, data, what == 3 ? size / 2 : size);
    if (what) end_now();
    return result;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    static __typeof__(&pwrite64) real;
    if (!real) real = REAL(pwrite64);
    int what = fate(file);
    if (what == 1) FAILED;
    ssize_t result = real(file, data, what == 3 ? size / 2 : size, place);
    if (what) end_now();
    return result;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    return pwrite64(file, data, size, place);
}

int fsync(int file) {
    static __typeof__(&fsync) real;
    if (!real) real = REAL(fsync);
    AROUND(file, real(file))
}

int fdatasync(int file) {
    static __typeof__(&fdatasync) real;
    if (!real) real = REAL(fdatasync);
    AROUND(file, real(file))
}

int ftruncate64(int file, off64_t size) {
    static __typeof__(&ftruncate64) real;
    if (!real) real = REAL(ftruncate64);
    AROUND(file, real(file, size))
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int result = real(clock, now);
    if (!result && clock == CLOCK_REALTIME) now->tv_sec += offset;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    if (!result) now->tv_sec += offset;
    return result;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept) *kept = now.tv_sec;
    return now.tv_sec;
}
