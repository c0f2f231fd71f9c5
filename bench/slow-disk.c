/* Preloaded: every fsync and fdatasync takes SLOW_DISK_MICROSECONDS longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char *delay = getenv("SLOW_DISK_MICROSECONDS");
  if (delay) usleep((useconds_t)atoi(delay));
}

int fdatasync(int file) {
  int (*really)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_for_disk();
  return really(file);
}

int fsync(int file) {
  int (*really)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_for_disk();
  return really(file);
}
