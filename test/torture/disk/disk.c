/*
 * Preloaded: records what a program does to the files below DISK_ROOT, and fails calls on them.
 *
 * DISK_RECORDING names the file to which every change is appended, in the order in which the kernel saw it. A sync is two entries, when it began
 * and when it had succeeded; a change is recorded while a mutex is held, so that entries of one process are in order.
 * DISK_CONTROL names a file that is mapped: the counts of calls by kind, and which of them fails.
 * DISK_SYNC_MICROSECONDS makes every sync take longer.
 * DISK_KILL, "CALL NUMBER TEXT", ends the program by SIGKILL, and the child that makes the call: at the call of that number to `send` a text or
 * after one to `receive` a text (on what is no file below the root; looked for in the first bytes), or before one to `write` to a file below the
 * root, or to `rename` one to a path with the text.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPENED = 1, WRITTEN, TRUNCATED, SYNC_BEGAN, SYNCED, RENAMED, LINKED, UNLINKED, MADE_DIRECTORY, REMOVED_DIRECTORY, SYNC_FAILED };
enum { CREATED = 1, EMPTIED = 2, DIRECTORY = 4 };
enum { OPEN, WRITE, PWRITE, FSYNC, FDATASYNC, TRUNCATE, RENAME, LINK, UNLINK, MKDIR, CLOSE, READ, READ_OPEN, KINDS };
enum { ONE = 1, HALF, MOST };
#define CUT (-1)

struct entry {
  uint32_t type, flags;
  uint64_t inode, offset, length;
  uint32_t path, second;
};

struct control {
  int64_t counts[KINDS];
  /* the first call of this kind that fails, counted from 1; 0 for none */
  int64_t at, failed;
  /* permanent: so do all that follow. cut: so much of a write is done instead, of the first alone where there is an error */
  int32_t kind, error, permanent, cut;
};

#define FILES 65536
static uint64_t inodes[FILES];
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static dev_t device;
static int recording = -1;
static struct control *control;
static useconds_t sync_delay;
static char kill_call[16], kill_text[128];
static long kill_at, kill_count;

#define REAL(name, result, ...) \
  static result (*really)(__VA_ARGS__); \
  if (!really) really = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
  const char *given = getenv("DISK_ROOT");
  if (!given) return;
  snprintf(root, sizeof root, "%s", given);
  struct stat status;
  if (stat(root, &status) != 0) return;
  device = status.st_dev;
  root_length = strlen(root);
  const char *file = getenv("DISK_RECORDING");
  if (file) {
    int low = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* out of the way of programs that expect low numbers */
    recording = fcntl(low, F_DUPFD_CLOEXEC, 1000);
    syscall(SYS_close, low);
  }
  const char *shared = getenv("DISK_CONTROL");
  if (shared) {
    int low = (int)syscall(SYS_openat, AT_FDCWD, shared, O_RDWR | O_CLOEXEC);
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, low, 0);
    if (mapped != MAP_FAILED) control = mapped;
    syscall(SYS_close, low);
  }
  const char *delay = getenv("DISK_SYNC_MICROSECONDS");
  if (delay) sync_delay = (useconds_t)atoi(delay);
  const char *when = getenv("DISK_KILL");
  if (when) sscanf(when, "%15s %ld %127[^\n]", kill_call, &kill_at, kill_text);
  char self[16];
  snprintf(self, sizeof self, "%d", (int)getpid());
  /* processes that it starts are others */
  setenv("DISK_KILL_PROCESS", self, 0);
}

/* Ends the program when this is the call at which it is to end. */
static void kill_at_call(const char *call, const char *bytes, size_t length) {
  if (!kill_at || strcmp(call, kill_call) != 0) return;
  if (length > 256) length = 256;
  size_t text = strlen(kill_text);
  if (text > 0 && (!bytes || !memmem(bytes, length, kill_text, text))) return;
  if (__atomic_add_fetch(&kill_count, 1, __ATOMIC_SEQ_CST) != kill_at) return;
  const char *program = getenv("DISK_KILL_PROCESS");
  if (program) kill((pid_t)atoi(program), SIGKILL);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* The absolute path of what is named, or NULL where that is not below the root. */
static const char *below(int directory, const char *path, char *buffer) {
  if (!root_length || !path) return NULL;
  if (path[0] == '/') {
    snprintf(buffer, PATH_MAX, "%s", path);
  } else {
    char base[PATH_MAX];
    if (directory == AT_FDCWD) {
      if (!getcwd(base, sizeof base)) return NULL;
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
      ssize_t length = readlink(link, base, sizeof base - 1);
      if (length < 0) return NULL;
      base[length] = 0;
    }
    while (path[0] == '.' && path[1] == '/') path += 2;
    if ((size_t)snprintf(buffer, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return NULL;
  }
  if (strncmp(buffer, root, root_length) != 0 || (buffer[root_length] != '/' && buffer[root_length] != 0)) return NULL;
  return buffer;
}

/* The inode of a file below the root, or 0. Not every close is seen: a number may be another file's by now. */
static uint64_t inode_of(int file) {
  if (file < 0 || file >= FILES || !inodes[file]) return 0;
  int before = errno;
  struct stat status;
  if (fstat(file, &status) != 0 || status.st_ino != inodes[file] || status.st_dev != device) inodes[file] = 0;
  errno = before;
  return inodes[file];
}

/* The index of SQLite's log is mapped, and made anew after a crash. */
static int ignored(const char *path) {
  size_t length = strlen(path);
  return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

static void record(struct entry entry, const char *path, const char *second, const struct iovec *pieces, int count) {
  if (recording < 0) return;
  struct iovec all[1030];
  entry.path = path ? (uint32_t)strlen(path) : 0;
  entry.second = second ? (uint32_t)strlen(second) : 0;
  all[0] = (struct iovec){&entry, sizeof entry};
  all[1] = (struct iovec){(void *)path, entry.path};
  all[2] = (struct iovec){(void *)second, entry.second};
  uint64_t left = entry.type == WRITTEN ? entry.length : 0;
  int used = 3;
  for (int index = 0; index < count && left > 0 && used < 1024; index++, used++) {
    all[used] = pieces[index];
    if (all[used].iov_len > left) all[used].iov_len = left;
    left -= all[used].iov_len;
  }
  int before = errno;
  syscall(SYS_writev, recording, all, used);
  errno = before;
}

/* Counts a call; answers the error that it ends with, CUT for a write that is cut short, or 0. */
static int failure(int kind) {
  if (!control) return 0;
  int64_t number = __atomic_add_fetch(&control->counts[kind], 1, __ATOMIC_SEQ_CST);
  if (control->kind != kind || control->at == 0 || number < control->at) return 0;
  if (number > control->at && !control->permanent) return 0;
  int64_t failed = __atomic_add_fetch(&control->failed, 1, __ATOMIC_SEQ_CST);
  return control->cut && (failed == 1 || !control->error) ? CUT : control->error;
}

static int refuse(int error) {
  errno = error;
  return -1;
}

static int opening(int directory, const char *path, int flags, mode_t mode, int (*really)(int, const char *, int, ...)) {
  char buffer[PATH_MAX];
  const char *name = below(directory, path, buffer);
  if (!name || ignored(name)) return really(directory, path, flags, mode);
  int error = failure(flags & (O_CREAT | O_WRONLY | O_RDWR) ? OPEN : READ_OPEN);
  if (error) return refuse(error);
  pthread_mutex_lock(&order);
  struct stat status;
  int existed = stat(name, &status) == 0;
  int file = really(directory, path, flags, mode);
  int before = errno;
  if (file >= 0 && file < FILES && fstat(file, &status) == 0) {
    inodes[file] = status.st_ino;
    int is_directory = S_ISDIR(status.st_mode);
    int changes = (flags & O_CREAT && !existed ? CREATED : 0) | (flags & O_TRUNC && existed ? EMPTIED : 0);
    record((struct entry){.type = OPENED, .flags = (uint32_t)(changes | (is_directory ? DIRECTORY : 0)), .inode = status.st_ino}, name, NULL, NULL, 0);
  }
  errno = before;
  pthread_mutex_unlock(&order);
  return file;
}

#define MODE(flags) \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
  }

int openat(int directory, const char *path, int flags, ...) {
  MODE(flags)
  REAL("openat", int, int, const char *, int, ...);
  return opening(directory, path, flags, mode, really);
}
int openat64(int directory, const char *path, int flags, ...) {
  MODE(flags)
  REAL("openat64", int, int, const char *, int, ...);
  return opening(directory, path, flags, mode, really);
}
int open(const char *path, int flags, ...) {
  MODE(flags)
  REAL("openat", int, int, const char *, int, ...);
  return opening(AT_FDCWD, path, flags, mode, really);
}
int open64(const char *path, int flags, ...) {
  MODE(flags)
  REAL("openat64", int, int, const char *, int, ...);
  return opening(AT_FDCWD, path, flags, mode, really);
}

int close(int file) {
  REAL("close", int, int);
  /* the file is closed in any case, as Linux does it */
  int error = inode_of(file) ? failure(CLOSE) : 0;
  if (file >= 0 && file < FILES) inodes[file] = 0;
  if (file == recording && recording >= 0) return 0;
  int result = really(file);
  return error ? refuse(error) : result;
}

/* A write of pieces, at an offset or (below 0) where the file stands. */
static ssize_t writing(int file, const struct iovec *pieces, int count, off_t offset) {
  uint64_t inode = inode_of(file);
  struct iovec less[1];
  if (inode) {
    kill_at_call("write", NULL, 0);
    int error = failure(offset < 0 ? WRITE : PWRITE);
    size_t length = count > 0 ? pieces[0].iov_len : 0;
    if (error == CUT && count == 1 && length < 2) {
      /* none is cut to nothing, which is an error: it is whole, and has not failed */
      __atomic_sub_fetch(&control->failed, 1, __ATOMIC_SEQ_CST);
    } else if (error == CUT) {
      size_t done = control->cut == ONE ? 1 : control->cut == HALF ? length / 2 : length - 1;
      less[0] = (struct iovec){pieces[0].iov_base, length > 1 ? done : length};
      pieces = less;
      count = 1;
    } else if (error) {
      return refuse(error);
    }
    pthread_mutex_lock(&order);
  }
  ssize_t done = offset < 0 ? syscall(SYS_writev, file, pieces, count) : syscall(SYS_pwritev, file, pieces, count, offset, 0);
  if (inode) {
    if (done > 0) {
      off_t at = offset < 0 ? lseek(file, 0, SEEK_CUR) - done : offset;
      record((struct entry){.type = WRITTEN, .inode = inode, .offset = (uint64_t)at, .length = (uint64_t)done}, NULL, NULL, pieces, count);
    }
    pthread_mutex_unlock(&order);
  }
  return done;
}

ssize_t write(int file, const void *bytes, size_t length) {
  REAL("write", ssize_t, int, const void *, size_t);
  if (!inode_of(file)) {
    kill_at_call("send", bytes, length);
    return really(file, bytes, length);
  }
  return writing(file, &(struct iovec){(void *)bytes, length}, 1, -1);
}
ssize_t writev(int file, const struct iovec *pieces, int count) {
  REAL("writev", ssize_t, int, const struct iovec *, int);
  if (!inode_of(file)) {
    for (int index = 0; index < count; index++) kill_at_call("send", pieces[index].iov_base, pieces[index].iov_len);
    return really(file, pieces, count);
  }
  return writing(file, pieces, count, -1);
}
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  return writing(file, &(struct iovec){(void *)bytes, length}, 1, offset);
}
ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) { return pwrite64(file, bytes, length, offset); }
ssize_t pwritev64(int file, const struct iovec *pieces, int count, off64_t offset) { return writing(file, pieces, count, offset); }
ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t offset) { return writing(file, pieces, count, offset); }

ssize_t read(int file, void *bytes, size_t length) {
  REAL("read", ssize_t, int, void *, size_t);
  uint64_t inode = inode_of(file);
  int error = inode ? failure(READ) : 0;
  if (error) return refuse(error);
  ssize_t got = really(file, bytes, length);
  if (!inode && got > 0) {
    int before = errno;
    kill_at_call("receive", bytes, (size_t)got);
    errno = before;
  }
  return got;
}
ssize_t pread64(int file, void *bytes, size_t length, off64_t offset) {
  REAL("pread64", ssize_t, int, void *, size_t, off64_t);
  int error = inode_of(file) ? failure(READ) : 0;
  return error ? refuse(error) : really(file, bytes, length, offset);
}
ssize_t pread(int file, void *bytes, size_t length, off_t offset) { return pread64(file, bytes, length, offset); }

/* What the kernel would copy by itself is copied by reads and writes instead. */
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags) {
  REAL("copy_file_range", ssize_t, int, off64_t *, int, off64_t *, size_t, unsigned);
  if (inode_of(to)) return refuse(EXDEV);
  return really(from, from_offset, to, to_offset, length, flags);
}
ssize_t sendfile64(int to, int from, off64_t *offset, size_t length) {
  REAL("sendfile64", ssize_t, int, int, off64_t *, size_t);
  if (!inode_of(to)) return really(to, from, offset, length);
  char bytes[65536];
  if (length > sizeof bytes) length = sizeof bytes;
  ssize_t got = offset ? pread64(from, bytes, length, *offset) : read(from, bytes, length);
  if (got <= 0) return got;
  ssize_t done = write(to, bytes, (size_t)got);
  if (offset && done > 0) *offset += done;
  return done;
}
ssize_t sendfile(int to, int from, off_t *offset, size_t length) { return sendfile64(to, from, offset, length); }

int ftruncate64(int file, off64_t length) {
  uint64_t inode = inode_of(file);
  if (!inode) return (int)syscall(SYS_ftruncate, file, length);
  int error = failure(TRUNCATE);
  if (error) return refuse(error);
  pthread_mutex_lock(&order);
  int result = (int)syscall(SYS_ftruncate, file, length);
  if (result == 0) record((struct entry){.type = TRUNCATED, .inode = inode, .length = (uint64_t)length}, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&order);
  return result;
}
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int syncing(int kind, int file, const char *name) {
  static uint64_t numbers;
  int (*really)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  uint64_t inode = inode_of(file);
  if (!inode) return really(file);
  uint64_t number = ((uint64_t)getpid() << 32) + __atomic_add_fetch(&numbers, 1, __ATOMIC_SEQ_CST);
  int error = failure(kind);
  pthread_mutex_lock(&order);
  record((struct entry){.type = SYNC_BEGAN, .inode = inode, .offset = number}, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&order);
  if (sync_delay) usleep(sync_delay);
  int result = error ? refuse(error) : really(file);
  int before = errno;
  pthread_mutex_lock(&order);
  record((struct entry){.type = result == 0 ? SYNCED : SYNC_FAILED, .inode = inode, .offset = number}, NULL, NULL, NULL, 0);
  pthread_mutex_unlock(&order);
  errno = before;
  return result;
}
int fsync(int file) { return syncing(FSYNC, file, "fsync"); }
int fdatasync(int file) { return syncing(FDATASYNC, file, "fdatasync"); }

/* A change of names: recorded when `call` succeeds. */
#define NAMING(kind, entry_type, first, second, call) \
  do { \
    char one[PATH_MAX], two[PATH_MAX]; \
    const char *from = first, *to = second; \
    (void)two; \
    (void)one; \
    if ((!from && !to) || (from && ignored(from))) return call; \
    int error = failure(kind); \
    if (error) return refuse(error); \
    pthread_mutex_lock(&order); \
    int result = call; \
    if (result == 0) record((struct entry){.type = entry_type}, from, to, NULL, 0); \
    pthread_mutex_unlock(&order); \
    return result; \
  } while (0)

int renameat2(int from_directory, const char *from_path, int to_directory, const char *to_path, unsigned flags) {
  kill_at_call("rename", to_path, strlen(to_path));
  NAMING(RENAME, RENAMED, below(from_directory, from_path, one), below(to_directory, to_path, two),
         (int)syscall(SYS_renameat2, from_directory, from_path, to_directory, to_path, flags));
}
int renameat(int from_directory, const char *from_path, int to_directory, const char *to_path) {
  return renameat2(from_directory, from_path, to_directory, to_path, 0);
}
int rename(const char *from_path, const char *to_path) { return renameat2(AT_FDCWD, from_path, AT_FDCWD, to_path, 0); }

int linkat(int from_directory, const char *from_path, int to_directory, const char *to_path, int flags) {
  NAMING(LINK, LINKED, below(from_directory, from_path, one), below(to_directory, to_path, two),
         (int)syscall(SYS_linkat, from_directory, from_path, to_directory, to_path, flags));
}
int link(const char *from_path, const char *to_path) { return linkat(AT_FDCWD, from_path, AT_FDCWD, to_path, 0); }

int unlinkat(int directory, const char *path, int flags) {
  NAMING(UNLINK, (flags & AT_REMOVEDIR ? REMOVED_DIRECTORY : UNLINKED), below(directory, path, one), NULL, (int)syscall(SYS_unlinkat, directory, path, flags));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  int result = unlink(path);
  return result == -1 && errno == EISDIR ? rmdir(path) : result;
}

int mkdirat(int directory, const char *path, mode_t mode) {
  NAMING(MKDIR, MADE_DIRECTORY, below(directory, path, one), NULL, (int)syscall(SYS_mkdirat, directory, path, mode));
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
