/* Breaks file operations below one folder, at a chosen one: loaded before everything else (LD_PRELOAD).
 *
 *     break_at(folder, n, how)    from here on count, and break the n-th operation; n = 0 only counts
 *     break_kinds()               the operations so far, a letter each: w a write, c a new file or folder, o another
 *
 * how: 1 kill before it · 2 kill in the middle of it (half of the bytes written; what cannot be halved is done first)
 *      3 the disk is full from then on, a write before that cut in half · 4 the disk fails from then on · 5 fails once
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { KILL = 1, HALF, FULL, FAIL, ONCE };
enum { WRITES = 'w', CREATES = 'c', OTHER = 'o' }; /* a full disk refuses the first two */

static char folder[PATH_MAX];
static long at, count;
static int how;
static char kinds[10000];

void break_at(const char *where, long n, int way) {
    strncpy(folder, where, sizeof folder - 1);
    at = n, how = way, count = 0;
    memset(kinds, 0, sizeof kinds);
}

const char *break_kinds(void) { return kinds; }

static void noted(char kind) { if (count < (long)sizeof kinds - 1) kinds[count] = kind; count++; }

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

static int below(const char *path) { return folder[0] && path && !strncmp(path, folder, strlen(folder)); }

static int open_below(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* Whether this operation is to fail, with errno set; kills where that was asked for. */
static int refused(char kind) {
    noted(kind);
    if (!at || count < at) return 0;
    if (how == KILL && count == at) die();
    if (how == FULL && kind != OTHER) { errno = ENOSPC; return 1; }
    if (how == FAIL || (how == ONCE && count == at)) { errno = EIO; return 1; }
    return 0;
}

static void done(void) { if (at && how == HALF && count == at) die(); }

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
/* A call on a path or a file that either happens or does not. */
#define WHOLE(name, inside, kind, ...) \
    REAL(name); \
    if (!(inside)) return real(__VA_ARGS__); \
    if (refused(kind)) return -1; \
    __typeof__(real(__VA_ARGS__)) result = real(__VA_ARGS__); \
    done(); \
    return result;
/* A write of `size` bytes, of which half may arrive. */
#define WRITE(name, half, ...) \
    REAL(name); \
    if (!open_below(fd)) return real(__VA_ARGS__); \
    if (at && count + 1 == at && (how == HALF || (how == FULL && size > 1))) { \
        noted(WRITES); \
        size /= 2; \
        ssize_t written = half; \
        if (how == HALF) die(); \
        return written; \
    } \
    if (refused(WRITES)) return -1; \
    return real(__VA_ARGS__);

ssize_t write(int fd, const void *data, size_t size) { WRITE(write, real(fd, data, size), fd, data, size) }
ssize_t pwrite(int fd, const void *data, size_t size, off_t to) {
    WRITE(pwrite, real(fd, data, size, to), fd, data, size, to)
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t to) {
    WRITE(pwrite64, real(fd, data, size, to), fd, data, size, to)
}
ssize_t writev(int fd, const struct iovec *pieces, int number) {
    size_t size = pieces[0].iov_len;
    WRITE(writev, write(fd, pieces[0].iov_base, size), fd, pieces, number)
}

/* Nothing here loses power: waiting for the disk is counted, not done. */
#define SYNC(name) int name(int fd) { \
    REAL(name); \
    if (!open_below(fd)) return real(fd); \
    if (refused(OTHER)) return -1; \
    done(); \
    return 0; }
SYNC(fsync)
SYNC(fdatasync)

int ftruncate(int fd, off_t size) { WHOLE(ftruncate, open_below(fd), OTHER, fd, size) }
int ftruncate64(int fd, off64_t size) { WHOLE(ftruncate64, open_below(fd), OTHER, fd, size) }
int rename(const char *from, const char *to) { WHOLE(rename, below(to), OTHER, from, to) }
int renameat(int a, const char *from, int b, const char *to) { WHOLE(renameat, below(to), OTHER, a, from, b, to) }
int unlink(const char *path) { WHOLE(unlink, below(path), OTHER, path) }
int unlinkat(int where, const char *path, int flags) {
    WHOLE(unlinkat, below(path) || open_below(where), OTHER, where, path, flags)
}
int rmdir(const char *path) { WHOLE(rmdir, below(path), OTHER, path) }
int link(const char *from, const char *to) { WHOLE(link, below(to), CREATES, from, to) }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    WHOLE(linkat, below(to), CREATES, a, from, b, to, flags)
}
int mkdir(const char *path, mode_t mode) { WHOLE(mkdir, below(path), CREATES, path, mode) }

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT) { va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); }
#define NEW(path, flags) (((flags) & O_CREAT) && below(path) && access(path, F_OK))
int open(const char *path, int flags, ...) { MODE(flags) WHOLE(open, NEW(path, flags), CREATES, path, flags, mode) }
int open64(const char *path, int flags, ...) { MODE(flags) WHOLE(open64, NEW(path, flags), CREATES, path, flags, mode) }
int openat(int where, const char *path, int flags, ...) {
    MODE(flags) WHOLE(openat, NEW(path, flags), CREATES, where, path, flags, mode)
}
int openat64(int where, const char *path, int flags, ...) {
    MODE(flags) WHOLE(openat64, NEW(path, flags), CREATES, where, path, flags, mode)
}
