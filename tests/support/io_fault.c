// LD_PRELOAD library: lets the n-th file operation under a path prefix go wrong.
//
//   IO_FAULT_PREFIX   folder (absolute); other files are left alone
//   IO_FAULT_AT       number of the operation, from 1; 0 only counts
//   IO_FAULT_MODE     fail         that operation fails (EIO)
//                     full         from then on nothing can be written (ENOSPC)
//                     short        a write stores half of its bytes and says so
//                     delay        that operation takes IO_FAULT_SECONDS longer
//                     kill_before, kill_half, kill_after    the process dies there
//   IO_FAULT_EVERY    milliseconds that every such operation, and every removal of a file, takes longer
//   IO_FAULT_PROCESS  only in processes with this word as an argument
//   IO_FAULT_COUNT    file that receives the number of operations at the end
//   IO_FAULT_READ     end of a path: reading from such files fails (EIO)
//   IO_FAULT_READ_WHILE     ... as long as this file exists
//   IO_FAULT_READ_AFTER     ... from this byte on; what lies before it is read (0)
//   IO_FAULT_READ_SECONDS   ... does not fail: the process's first such reading takes so much longer
//   IO_FAULT_LIST     a folder that cannot be listed (EIO)
//   IO_FAULT_STALE    end of a path: opening such files for reading fails (ESTALE) ...
//   IO_FAULT_STALE_WHILE    ... as long as this file exists
//   IO_FAULT_DEAD     a word in paths: writing to handles of such files, and setting their times,
//                     fails (ESTALE) where they were opened before ...
//   IO_FAULT_DEAD_FROM      ... this file existed; opened again, they work
//   IO_FAULT_HANG     a word in paths: setting the times of such files does not end ...
//   IO_FAULT_HANG_WHILE     ... as long as this file exists
//   IO_FAULT_AHEAD    seconds that this client's clock is ahead: the time that it sets on files
//
// Operations: write, pwrite, ftruncate, fsync, fdatasync, rename, close.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static long calls = 0;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int path_counts(const char* path) {
  const char* prefix = getenv("IO_FAULT_PREFIX");
  return prefix != NULL && strncmp(path, prefix, strlen(prefix)) == 0;
}

static int path_of(int fd, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return 1;
}

static int fd_counts(int fd) {
  char path[4096];
  return path_of(fd, path, sizeof path) && path_counts(path);
}

static int fd_reads_badly(int fd) {
  const char* end = getenv("IO_FAULT_READ");
  char path[4096];
  if (end == NULL || !path_of(fd, path, sizeof path) || strlen(path) < strlen(end)) return 0;
  const char* flag = getenv("IO_FAULT_READ_WHILE");
  if (flag != NULL && access(flag, F_OK) != 0) return 0;
  return strcmp(path + strlen(path) - strlen(end), end) == 0;
}

/// How many of `size` bytes at `offset` can be read; -1 where the first of them cannot.
static ssize_t readable(int fd, size_t size, off_t offset) {
  static int slept = 0;
  if (!fd_reads_badly(fd)) return (ssize_t)size;
  const char* seconds = getenv("IO_FAULT_READ_SECONDS");
  if (seconds != NULL) {
    if (__atomic_exchange_n(&slept, 1, __ATOMIC_SEQ_CST) == 0) sleep((unsigned)atoi(seconds));
    return (ssize_t)size;
  }
  const char* after = getenv("IO_FAULT_READ_AFTER");
  const off_t left = (after == NULL ? 0 : atol(after)) - offset;
  if (left <= 0) return -1;
  return left < (off_t)size ? left : (ssize_t)size;
}

/// Whether this process is meant.
static int process_counts(void) {
  static int meant = -1;
  const char* word = getenv("IO_FAULT_PROCESS");
  if (word == NULL) return 1;
  if (meant >= 0) return meant;
  char line[4096];
  FILE* file = fopen("/proc/self/cmdline", "r");
  const size_t size = file == NULL ? 0 : fread(line, 1, sizeof line - 1, file);
  if (file != NULL) fclose(file);
  line[size] = '\0';
  meant = 0;
  for (size_t at = 0; at < size; at += strlen(line + at) + 1)
    if (strcmp(line + at, word) == 0) meant = 1;
  return meant;
}

static char opened_late[4096];  // by handle

static int is_there(const char* path) { return path != NULL && access(path, F_OK) == 0; }

static int is_dead(int fd) {
  const char* word = getenv("IO_FAULT_DEAD");
  char path[4096];
  return word != NULL && path_of(fd, path, sizeof path) && strstr(path, word) != NULL &&
         fd < (int)sizeof opened_late && !opened_late[fd] && is_there(getenv("IO_FAULT_DEAD_FROM"));
}

enum fate { NORMAL, FAIL, FULL, SHORT, KILL_HALF, KILL_AFTER };

static void take_longer(void) {
  const char* text = getenv("IO_FAULT_EVERY");
  const long milliseconds = text == NULL ? 0 : atol(text);
  const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  if (milliseconds > 0) nanosleep(&pause, NULL);
}

/// What happens to an operation that counts; does not return where the process dies before it.
static enum fate next_fate(void) {
  if (!process_counts()) return NORMAL;
  take_longer();
  const long now = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  const char* at = getenv("IO_FAULT_AT");
  const char* mode = getenv("IO_FAULT_MODE");
  const long wanted = at == NULL ? 0 : atol(at);
  if (wanted == 0 || mode == NULL) return NORMAL;
  if (strcmp(mode, "full") == 0) return now >= wanted ? FULL : NORMAL;
  if (now != wanted) return NORMAL;
  if (strcmp(mode, "kill_before") == 0) raise(SIGKILL);
  if (strcmp(mode, "delay") == 0) {
    const char* seconds = getenv("IO_FAULT_SECONDS");
    sleep(seconds == NULL ? 1 : (unsigned)atoi(seconds));
    return NORMAL;
  }
  if (strcmp(mode, "kill_half") == 0) return KILL_HALF;
  if (strcmp(mode, "kill_after") == 0) return KILL_AFTER;
  return strcmp(mode, "short") == 0 ? SHORT : FAIL;
}

static ssize_t refuse(int reason) {
  errno = reason;
  return -1;
}

/// For operations without halves.
#define GUARD(counts, call)                                    \
  if (!(counts)) return call;                                  \
  const enum fate fate = next_fate();                          \
  if (fate == FAIL) return (int)refuse(EIO);                   \
  const int status = call;                                     \
  if (fate == KILL_HALF || fate == KILL_AFTER) raise(SIGKILL); \
  return status

#define GUARD_WRITE(fd, size, call_with)                              \
  if (!fd_counts(fd)) return call_with(size);                         \
  const enum fate fate = next_fate();                                 \
  if (fate == FAIL) return refuse(EIO);                               \
  if (fate == FULL) return refuse(ENOSPC);                            \
  const int half = fate == SHORT || fate == KILL_HALF;                \
  const ssize_t done = call_with(half && size > 1 ? size / 2 : size); \
  if (fate == KILL_HALF || fate == KILL_AFTER) raise(SIGKILL);        \
  return done

ssize_t write(int fd, const void* data, size_t size) {
#define WRITE(n) REAL(write)(fd, data, n)
  GUARD_WRITE(fd, size, WRITE);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
#define PWRITE(n) REAL(pwrite)(fd, data, n, offset)
  if (is_dead(fd)) return refuse(ESTALE);
  GUARD_WRITE(fd, size, PWRITE);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
#define PWRITE64(n) REAL(pwrite64)(fd, data, n, offset)
  if (is_dead(fd)) return refuse(ESTALE);
  GUARD_WRITE(fd, size, PWRITE64);
}

#define GUARD_READ(fd, size, offset, call_with) \
  const ssize_t most = readable(fd, size, offset); \
  return most < 0 ? refuse(EIO) : call_with((size_t)most)

ssize_t read(int fd, void* data, size_t size) {
#define READ(n) REAL(read)(fd, data, n)
  GUARD_READ(fd, size, lseek(fd, 0, SEEK_CUR), READ);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
#define PREAD(n) REAL(pread)(fd, data, n, offset)
  GUARD_READ(fd, size, offset, PREAD);
}

ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
#define PREAD64(n) REAL(pread64)(fd, data, n, offset)
  GUARD_READ(fd, size, offset, PREAD64);
}

static int is_stale(const char* path, int flags) {
  const char *end = getenv("IO_FAULT_STALE"), *flag = getenv("IO_FAULT_STALE_WHILE");
  if (end == NULL || flag == NULL || (flags & O_ACCMODE) != O_RDONLY) return 0;
  if (strlen(path) < strlen(end) || strcmp(path + strlen(path) - strlen(end), end) != 0) return 0;
  return access(flag, F_OK) == 0;
}

#define OPEN(name)                                          \
  int name(const char* path, int flags, ...) {              \
    va_list more;                                           \
    va_start(more, flags);                                  \
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
    va_end(more);                                           \
    if (is_stale(path, flags)) return (int)refuse(ESTALE);  \
    const int fd = REAL(name)(path, flags, mode);           \
    if (fd >= 0 && fd < (int)sizeof opened_late)            \
      opened_late[fd] = is_there(getenv("IO_FAULT_DEAD_FROM")); \
    return fd;                                              \
  }
OPEN(open)
OPEN(open64)

static void hang(int fd) {
  const char *word = getenv("IO_FAULT_HANG"), *flag = getenv("IO_FAULT_HANG_WHILE");
  const struct timespec pause = {0, 50000000};
  char path[4096];
  if (word == NULL || !path_of(fd, path, sizeof path) || strstr(path, word) == NULL) return;
  while (is_there(flag)) nanosleep(&pause, NULL);
}

int futimens(int fd, const struct timespec times[2]) {
  const char* ahead = getenv("IO_FAULT_AHEAD");
  hang(fd);
  if (is_dead(fd)) return (int)refuse(ESTALE);
  if (ahead == NULL || times != NULL) return REAL(futimens)(fd, times);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += atol(ahead);
  const struct timespec both[2] = {now, now};
  return REAL(futimens)(fd, both);
}

DIR* opendir(const char* path) {
  const char* folder = getenv("IO_FAULT_LIST");
  if (folder == NULL || strcmp(path, folder) != 0) return REAL(opendir)(path);
  refuse(EIO);
  return NULL;
}

int ftruncate(int fd, off_t size) { GUARD(fd_counts(fd), REAL(ftruncate)(fd, size)); }

int ftruncate64(int fd, off64_t size) { GUARD(fd_counts(fd), REAL(ftruncate64)(fd, size)); }

int fsync(int fd) { GUARD(fd_counts(fd), REAL(fsync)(fd)); }

int fdatasync(int fd) { GUARD(fd_counts(fd), REAL(fdatasync)(fd)); }

int rename(const char* from, const char* to) { GUARD(path_counts(to), REAL(rename)(from, to)); }

int unlink(const char* path) {
  if (path_counts(path) && process_counts()) take_longer();
  return REAL(unlink)(path);
}

int unlinkat(int folder, const char* path, int flags) {
  // std::filesystem removes by names relative to an open folder.
  char whole[4096];
  const int counts = folder == AT_FDCWD || path[0] == '/'
                         ? path_counts(path)
                         : path_of(folder, whole, sizeof whole) && path_counts(whole);
  if (counts && process_counts()) take_longer();
  return REAL(unlinkat)(folder, path, flags);
}

int close(int fd) {
  if (!fd_counts(fd)) return REAL(close)(fd);
  const enum fate fate = next_fate();
  const int status = REAL(close)(fd);  // Linux frees the number even when close fails
  if (fate == KILL_HALF || fate == KILL_AFTER) raise(SIGKILL);
  return fate == FAIL ? (int)refuse(EIO) : status;
}

__attribute__((destructor)) static void report(void) {
  const char* path = process_counts() ? getenv("IO_FAULT_COUNT") : NULL;
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", calls);
  fclose(file);
}
