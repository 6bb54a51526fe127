/* Counts the calls that change files below one folder, and makes the n-th of them fail or end the process.
 *
 * Preloaded into the process that attacks are forked from. It does nothing before himecat_arm is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 0, KILL = 1, FAIL = 2, SEND = 3, REMOVE = 4 };

/* Shared with the process that waits for us, which reads it even when we are killed. */
typedef struct { int count, fired; char call[32]; char path[512]; } Board;

static Board *board;
static char folder[PATH_MAX];
static int target, action, value, always;

void himecat_arm(void *shared, const char *below, int at, int what, int with, int all) {
    snprintf(folder, sizeof folder, "%s", below);
    target = at; action = what; value = with; always = all;
    board = shared;
}

static int is_below(const char *path) {
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int of_descriptor(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

#pragma GCC diagnostic ignored "-Wformat-truncation"
static int of_path(int directory, const char *given, char *path) {
    if (given[0] == '/') snprintf(path, PATH_MAX, "%s", given);
    else {
        char base[PATH_MAX] = "";
        if (directory == AT_FDCWD) { if (!getcwd(base, sizeof base)) return 0; }
        else of_descriptor(directory, base);
        snprintf(path, PATH_MAX, "%s/%s", base, given);
    }
    return is_below(path);
}

static void remove_tree(void) {
    /* The folder goes away as if somebody had removed it while the command worked. */
    char command[PATH_MAX + 32];
    board = NULL;
    pid_t child = fork();
    if (child == 0) {
        snprintf(command, sizeof command, "%s/gone", folder);
        unsetenv("LD_PRELOAD");
        execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
}

/* Whether the call has to fail; errno is set then. */
static int strike(const char *call, const char *path, int removes) {
    if (!board) return 0;
    int number = __sync_add_and_fetch(&board->count, 1);
    int hit = number == target || (always && target > 0 && number > target);
    if (!hit) return 0;
    if (!board->fired) {
        board->fired = 1;
        snprintf(board->call, sizeof board->call, "%s", call);
        snprintf(board->path, sizeof board->path, "%s", path);
    }
    if (action == KILL) { syscall(SYS_kill, getpid(), SIGKILL); for (;;) pause(); }
    if (action == SEND) { if (number == target) kill(getpid(), value); return 0; }
    if (action == REMOVE) { if (number == target) remove_tree(); return 0; }
    /* A full disk still removes files; a test of cleaning up needs that. */
    if (action == FAIL && !(always && removes)) { errno = value; return -1; }
    return 0;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlvsym_or_next(#name)
static void *dlvsym_or_next(const char *name);
#define ON_FD(call, fd, removes) \
    if (board) { char path[PATH_MAX]; if (of_descriptor(fd, path) && strike(call, path, removes)) return -1; }
#define ON_PATH(call, at, given, removes) \
    if (board) { char path[PATH_MAX]; if (of_path(at, given, path) && strike(call, path, removes)) return -1; }

ssize_t write(int fd, const void *data, size_t size) { REAL(write); ON_FD("write", fd, 0) return real(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { REAL(pwrite); ON_FD("pwrite", fd, 0) return real(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); ON_FD("pwrite", fd, 0) return real(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) { REAL(writev); ON_FD("writev", fd, 0) return real(fd, parts, count); }
int fsync(int fd) { REAL(fsync); ON_FD("fsync", fd, 0) return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); ON_FD("fdatasync", fd, 0) return real(fd); }
int ftruncate(int fd, off_t length) { REAL(ftruncate); ON_FD("ftruncate", fd, 0) return real(fd, length); }
int ftruncate64(int fd, off64_t length) { REAL(ftruncate64); ON_FD("ftruncate", fd, 0) return real(fd, length); }
int rename(const char *from, const char *to) { REAL(rename); ON_PATH("rename", AT_FDCWD, to, 0) return real(from, to); }
int renameat(int a, const char *from, int b, const char *to) { REAL(renameat); ON_PATH("rename", b, to, 0) return real(a, from, b, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    REAL(renameat2); ON_PATH("renameat2", b, to, 0) return real(a, from, b, to, flags);
}
int link(const char *from, const char *to) { REAL(link); ON_PATH("link", AT_FDCWD, to, 0) return real(from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) { REAL(linkat); ON_PATH("link", b, to, 0) return real(a, from, b, to, flags); }
int symlink(const char *from, const char *to) { REAL(symlink); ON_PATH("symlink", AT_FDCWD, to, 0) return real(from, to); }
int unlink(const char *path_) { REAL(unlink); ON_PATH("unlink", AT_FDCWD, path_, 1) return real(path_); }
int unlinkat(int at, const char *path_, int flags) { REAL(unlinkat); ON_PATH("unlink", at, path_, 1) return real(at, path_, flags); }
int rmdir(const char *path_) { REAL(rmdir); ON_PATH("rmdir", AT_FDCWD, path_, 1) return real(path_); }
int mkdir(const char *path_, mode_t mode) { REAL(mkdir); ON_PATH("mkdir", AT_FDCWD, path_, 0) return real(path_, mode); }
int mkdirat(int at, const char *path_, mode_t mode) { REAL(mkdirat); ON_PATH("mkdir", at, path_, 0) return real(at, path_, mode); }

#define MODE mode_t mode = 0; if (flags & O_CREAT) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
int open(const char *path_, int flags, ...) {
    REAL(open); MODE
    if (flags & O_CREAT) { ON_PATH("open", AT_FDCWD, path_, 0) }
    return real(path_, flags, mode);
}
int open64(const char *path_, int flags, ...) {
    REAL(open64); MODE
    if (flags & O_CREAT) { ON_PATH("open", AT_FDCWD, path_, 0) }
    return real(path_, flags, mode);
}
int openat(int at, const char *path_, int flags, ...) {
    REAL(openat); MODE
    if (flags & O_CREAT) { ON_PATH("open", at, path_, 0) }
    return real(at, path_, flags, mode);
}
int openat64(int at, const char *path_, int flags, ...) {
    REAL(openat64); MODE
    if (flags & O_CREAT) { ON_PATH("open", at, path_, 0) }
    return real(at, path_, flags, mode);
}

/* Python reaches some calls through ctypes, which asks the C library itself: give it ours. */
static long our_syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_renameat2) return renameat2((int)a, (const char *)b, (int)c, (const char *)d, (unsigned)e);
    return syscall(number, a, b, c, d, e, f);
}

typedef void *(*Dlsym)(void *, const char *);
static Dlsym real_dlsym(void) {
    static Dlsym real;
    if (!real) real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real) real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!real) real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    return real;
}
static void *dlvsym_or_next(const char *name) { return real_dlsym()(RTLD_NEXT, name); }

void *dlsym(void *handle, const char *name) {
    if (!strcmp(name, "renameat2") && handle != RTLD_NEXT) return (void *)renameat2;
    if (!strcmp(name, "syscall") && handle != RTLD_NEXT) return (void *)our_syscall;
    return real_dlsym()(handle, name);
}
