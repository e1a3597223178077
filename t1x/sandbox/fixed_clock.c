/* What programs of a deterministic sandbox see of time and chance, put before libc by /etc/ld.so.preload.
 *
 * The time of day stands still at NOW, and no file is younger than that. Random numbers are a stream that follows from the process id.
 * Monotonic clocks, sleeps and timeouts are left alone, so programs wait as long as they say. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define NOW 1577836800 /* 2020-01-01 00:00:00 UTC; before any real one, so that what is written now has exactly this age */

/* The function that ours stands before. */
#define NEXT(name)                        \
    static __typeof__(&name) next;        \
    if (!next)                            \
        next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) {
        *out = (struct timespec){0, 0};
        return 0;
    }
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE && clock != CLOCK_TAI) {
        int failed = (int)syscall(SYS_clock_gettime, clock, out);
        if (!failed && !strcmp(program_invocation_short_name, "mktemp")) /* its names are made of these */
            out->tv_nsec = 0;
        return failed;
    }
    *out = (struct timespec){NOW, 0};
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    *out = (struct timeval){NOW, 0};
    if (zone)
        memset(zone, 0, sizeof(struct timezone));
    return 0;
}

time_t time(time_t *out)
{
    if (out)
        *out = NOW;
    return NOW;
}

int timespec_get(struct timespec *out, int base)
{
    if (base == TIME_UTC)
        *out = (struct timespec){NOW, 0};
    return base == TIME_UTC ? base : 0;
}

/* Nothing takes any processor time. */
int getrusage(__rusage_who_t who, struct rusage *out)
{
    NEXT(getrusage);
    int failed = next(who, out);
    if (!failed)
        out->ru_utime = out->ru_stime = (struct timeval){0, 0};
    return failed;
}

clock_t times(struct tms *out)
{
    if (out)
        memset(out, 0, sizeof *out);
    return 0;
}

clock_t clock(void)
{
    return 0;
}

static void age(struct timespec *time)
{
    if (time->tv_sec >= NOW)
        *time = (struct timespec){NOW, 0};
}

/* The root of /proc has a link for every process of the machine; 1 means that a folder's links say nothing. */
#define AGED(call, out)                              \
    int failed = call;                               \
    if (!failed) {                                   \
        age(&(out)->st_atim);                        \
        age(&(out)->st_mtim);                        \
        age(&(out)->st_ctim);                        \
        if (S_ISDIR((out)->st_mode) && (out)->st_ino == 1) \
            (out)->st_nlink = 1;                     \
    }                                                \
    return failed

#define BY_PATH(name, type) \
    int name(const char *restrict path, struct type *restrict out) { NEXT(name); AGED(next(path, out), out); }
#define BY_FILE(name, type) \
    int name(int file, struct type *out) { NEXT(name); AGED(next(file, out), out); }
#define BY_FOLDER(name, type) \
    int name(int folder, const char *restrict path, struct type *restrict out, int flags) \
    { NEXT(name); AGED(next(folder, path, out, flags), out); }

BY_PATH(stat, stat)
BY_PATH(lstat, stat)
BY_FILE(fstat, stat)
BY_FOLDER(fstatat, stat)
BY_PATH(stat64, stat64)
BY_PATH(lstat64, stat64)
BY_FILE(fstat64, stat64)
BY_FOLDER(fstatat64, stat64)

/* The same for programs that were built for a glibc before 2.33. */
#define VERSIONED(name, type, parameter, argument)                      \
    int name(int version, parameter, struct type *out);                 \
    int name(int version, parameter, struct type *out)                  \
    { NEXT(name); AGED(next(version, argument, out), out); }

VERSIONED(__xstat, stat, const char *path, path)
VERSIONED(__lxstat, stat, const char *path, path)
VERSIONED(__fxstat, stat, int file, file)
VERSIONED(__xstat64, stat64, const char *path, path)
VERSIONED(__lxstat64, stat64, const char *path, path)
VERSIONED(__fxstat64, stat64, int file, file)

static void age_extended(struct statx_timestamp *time)
{
    if (time->tv_sec >= NOW) {
        time->tv_sec = NOW;
        time->tv_nsec = 0;
    }
}

int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict out)
{
    NEXT(statx);
    int failed = next(folder, path, flags, mask, out);
    if (!failed) {
        age_extended(&out->stx_atime);
        age_extended(&out->stx_btime);
        age_extended(&out->stx_ctime);
        age_extended(&out->stx_mtime);
        if (S_ISDIR(out->stx_mode) && out->stx_ino == 1)
            out->stx_nlink = 1;
    }
    return failed;
}

/* SplitMix64 (Steele, Lea and Flood 2014), one stream a process. */
static void draw(void *out, size_t size)
{
    static uint64_t state;
    static pid_t owner;
    if (owner != getpid()) {
        owner = getpid();
        state = (uint64_t)owner;
    }
    for (unsigned char *at = out; size > 0;) {
        uint64_t z = state += 0x9E3779B97F4A7C15;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        z ^= z >> 31;
        size_t part = size < sizeof z ? size : sizeof z;
        memcpy(at, &z, part);
        at += part;
        size -= part;
    }
}

ssize_t getrandom(void *out, size_t size, unsigned flags)
{
    (void)flags;
    draw(out, size);
    return (ssize_t)size;
}

int getentropy(void *out, size_t size)
{
    draw(out, size);
    return 0;
}

uint32_t arc4random(void)
{
    uint32_t drawn;
    draw(&drawn, sizeof drawn);
    return drawn;
}

void arc4random_buf(void *out, size_t size)
{
    draw(out, size);
}
