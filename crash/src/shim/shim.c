/* A library that is loaded before libc and lets calls of the server fail, wait, or end the process, as a file of rules
 * says. The suite rewrites that file while the server runs.
 *
 * A rule is a line of fields that are separated by tabs:
 *
 *     clock    SECONDS                          the time of day is this much later
 *     ACTION   CALL     PATH   [CONTENT]        ACTION for a CALL on a file whose path matches the pattern PATH
 *
 * ACTION is `kill`, `delay:MILLISECONDS`, or the number of an error. CALL is read, write, sync, truncate, open (for
 * writing) or unlink. With CONTENT, the bytes that are read or written must hold it.
 *
 * `track` of write remembers what was written since the last sync. With it, `lose:ERROR` of sync fails and takes all of
 * that back: a kernel that cannot write pages calls them clean, and a later sync that succeeds says nothing of them.
 *
 * Every call goes straight to the kernel, so nothing here depends on what else is loaded. The rules are read at each
 * call: what the suite has written holds for every call that begins afterwards. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_RULES 4096

static size_t read_rules(char *rules) {
    const char *path = getenv("PETASOS_SHIM_RULES");
    if (path == NULL) return 0;
    long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return 0;
    long length = syscall(SYS_read, file, rules, MAX_RULES - 1);
    syscall(SYS_close, file);
    if (length < 0) length = 0;
    rules[length] = 0;
    return (size_t)length;
}

/* What a call has to expect. */
struct verdict {
    int error; /* 0 if it may go on */
    int is_tracked;
    int loses;
};

static void act(const char *action, struct verdict *verdict) {
    if (strcmp(action, "kill") == 0) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    if (strncmp(action, "delay:", 6) == 0) {
        long milliseconds = atol(action + 6);
        struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        syscall(SYS_nanosleep, &pause, NULL);
    } else if (strcmp(action, "track") == 0) {
        verdict->is_tracked = 1;
    } else if (strncmp(action, "lose:", 5) == 0) {
        verdict->loses = 1;
        verdict->error = atoi(action + 5);
    } else {
        verdict->error = atoi(action);
    }
}

static struct verdict judge(const char *call, const char *path, const void *bytes, size_t length) {
    char rules[MAX_RULES];
    struct verdict verdict = {0, 0, 0};
    int saved = errno;
    char *lines = NULL;
    char *line = path != NULL && read_rules(rules) > 0 ? strtok_r(rules, "\n", &lines) : NULL;
    for (; line != NULL && verdict.error == 0; line = strtok_r(NULL, "\n", &lines)) {
        char *fields = NULL;
        char *action = strtok_r(line, "\t", &fields), *of = strtok_r(NULL, "\t", &fields);
        char *pattern = strtok_r(NULL, "\t", &fields), *content = strtok_r(NULL, "\t", &fields);
        if (of == NULL || pattern == NULL || strcmp(of, call) != 0 || fnmatch(pattern, path, 0) != 0) continue;
        if (content != NULL && (bytes == NULL || memmem(bytes, length, content, strlen(content)) == NULL)) continue;
        act(action, &verdict);
    }
    errno = saved;
    return verdict;
}

static struct verdict judge_file(const char *call, int file, const void *bytes, size_t length) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long written = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (written <= 0 || path[0] != '/') return (struct verdict){0, 0, 0};
    path[written] = 0;
    return judge(call, path, bytes, length);
}

/* What a file held before it was written to, newest first. */
struct change {
    struct change *before;
    dev_t device;
    ino_t inode;
    off64_t at;
    size_t length;
    char bytes[];
};

static struct change *changes;
static pthread_mutex_t changes_lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(int file, off64_t at, size_t length) {
    struct stat stat;
    struct change *change = calloc(1, sizeof *change + length);
    if (change == NULL || fstat(file, &stat) != 0) abort();
    /* Beyond the end of the file there are zeros. */
    syscall(SYS_pread64, file, change->bytes, length, at);
    change->device = stat.st_dev, change->inode = stat.st_ino, change->at = at, change->length = length;
    pthread_mutex_lock(&changes_lock);
    change->before = changes, changes = change;
    pthread_mutex_unlock(&changes_lock);
}

/* Forgets what was written to a file since its last sync, and takes it back if it is lost. */
static void settle(int file, int is_lost) {
    struct stat stat;
    if (changes == NULL || fstat(file, &stat) != 0) return;
    pthread_mutex_lock(&changes_lock);
    for (struct change **place = &changes; *place != NULL;) {
        struct change *change = *place;
        if (change->device != stat.st_dev || change->inode != stat.st_ino) {
            place = &change->before;
            continue;
        }
        if (is_lost) syscall(SYS_pwrite64, file, change->bytes, change->length, change->at);
        *place = change->before;
        free(change);
    }
    pthread_mutex_unlock(&changes_lock);
}

#define FAIL_IF(judged)             \
    do {                            \
        int error = (judged).error; \
        if (error != 0) {           \
            errno = error;          \
            return -1;              \
        }                           \
    } while (0)

ssize_t write(int file, const void *bytes, size_t length) {
    struct verdict verdict = judge_file("write", file, bytes, length);
    FAIL_IF(verdict);
    if (verdict.is_tracked) remember(file, syscall(SYS_lseek, file, 0, SEEK_CUR), length);
    return syscall(SYS_write, file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    struct verdict verdict = judge_file("write", file, bytes, length);
    FAIL_IF(verdict);
    if (verdict.is_tracked) remember(file, at, length);
    return syscall(SYS_pwrite64, file, bytes, length, at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }

static ssize_t judge_read(int file, const void *bytes, ssize_t length) {
    if (length > 0) FAIL_IF(judge_file("read", file, bytes, (size_t)length));
    return length;
}

ssize_t read(int file, void *bytes, size_t length) {
    return judge_read(file, bytes, syscall(SYS_read, file, bytes, length));
}

ssize_t pread64(int file, void *bytes, size_t length, off64_t at) {
    return judge_read(file, bytes, syscall(SYS_pread64, file, bytes, length, at));
}

ssize_t pread(int file, void *bytes, size_t length, off_t at) { return pread64(file, bytes, length, at); }

static int sync_by(long number, int file) {
    struct verdict verdict = judge_file("sync", file, NULL, 0);
    if (verdict.loses) settle(file, 1);
    FAIL_IF(verdict);
    int done = (int)syscall(number, file);
    if (done == 0) settle(file, 0);
    return done;
}

int fsync(int file) { return sync_by(SYS_fsync, file); }
int fdatasync(int file) { return sync_by(SYS_fdatasync, file); }

int ftruncate64(int file, off64_t length) {
    FAIL_IF(judge_file("truncate", file, NULL, 0));
    return (int)syscall(SYS_ftruncate, file, length);
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int unlink(const char *path) {
    FAIL_IF(judge("unlink", path, NULL, 0));
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static int open_below(int directory, const char *path, int flags, mode_t mode) {
    if ((flags & O_ACCMODE) != O_RDONLY) FAIL_IF(judge("open", path, NULL, 0));
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

#define OPEN_WITH(directory)                                            \
    do {                                                                \
        mode_t mode = 0;                                                \
        if (flags & (O_CREAT | __O_TMPFILE)) {                          \
            va_list arguments;                                          \
            va_start(arguments, flags);                                 \
            mode = va_arg(arguments, mode_t);                           \
            va_end(arguments);                                          \
        }                                                               \
        return open_below(directory, path, flags, mode);                \
    } while (0)

int open(const char *path, int flags, ...) { OPEN_WITH(AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPEN_WITH(AT_FDCWD); }
int openat(int directory, const char *path, int flags, ...) { OPEN_WITH(directory); }
int openat64(int directory, const char *path, int flags, ...) { OPEN_WITH(directory); }

static long seconds_ahead(void) {
    char rules[MAX_RULES];
    int saved = errno;
    long ahead = 0;
    if (read_rules(rules) > 0) {
        char *rule = strstr(rules, "clock\t");
        if (rule != NULL) ahead = atol(rule + 6);
    }
    errno = saved;
    return ahead;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = (int)syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds_ahead();
    return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int done = (int)syscall(SYS_gettimeofday, now, zone);
    if (done == 0) now->tv_sec += seconds_ahead();
    return done;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL) *into = now.tv_sec;
    return now.tv_sec;
}
