// vfs.h: how SQLite reaches files here: one file, opened to read, through the C
// library. Nothing is locked and no other file is ever opened: databases are
// opened immutable, and what would spill to a temporary file stays in memory.
#ifndef VFS_H
#define VFS_H

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct ro_file {
  sqlite3_file base;
  int fd;
};

static int ro_close(sqlite3_file *f) {
  close(((struct ro_file *)f)->fd);
  return SQLITE_OK;
}

static int ro_read(sqlite3_file *f, void *dst, int want, sqlite3_int64 at) {
  char *to = dst;
  while (want > 0) {
    ssize_t n = pread(((struct ro_file *)f)->fd, to, (size_t)want, at);
    if (n < 0) return SQLITE_IOERR_READ;
    if (n == 0) { // past the end is zeros, and said
      memset(to, 0, (size_t)want);
      return SQLITE_IOERR_SHORT_READ;
    }
    to += n, want -= (int)n, at += n;
  }
  return SQLITE_OK;
}

static int ro_write(sqlite3_file *f, const void *src, int n, sqlite3_int64 at) { return SQLITE_READONLY; }
static int ro_truncate(sqlite3_file *f, sqlite3_int64 size) { return SQLITE_READONLY; }
static int ro_nothing(sqlite3_file *f, int flags) { return SQLITE_OK; }

static int ro_size(sqlite3_file *f, sqlite3_int64 *size) {
  struct stat st;
  if (fstat(((struct ro_file *)f)->fd, &st)) return SQLITE_IOERR_FSTAT;
  *size = st.st_size;
  return SQLITE_OK;
}

static int ro_reserved(sqlite3_file *f, int *out) {
  *out = 0;
  return SQLITE_OK;
}

static int ro_control(sqlite3_file *f, int op, void *arg) { return SQLITE_NOTFOUND; }
static int ro_sector(sqlite3_file *f) { return 4096; }
static int ro_traits(sqlite3_file *f) { return SQLITE_IOCAP_IMMUTABLE; }

static const sqlite3_io_methods ro_methods = {
    1,        ro_close,   ro_read,     ro_write,    ro_truncate, ro_nothing, ro_size,
    ro_nothing, ro_nothing, ro_reserved, ro_control, ro_sector,   ro_traits,
};

static int ro_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out) {
  f->pMethods = NULL;
  if (!name || !(flags & SQLITE_OPEN_MAIN_DB)) return SQLITE_CANTOPEN;
  int fd = open(name, O_RDONLY);
  if (fd < 0) return SQLITE_CANTOPEN;
  ((struct ro_file *)f)->fd = fd;
  f->pMethods = &ro_methods;
  if (out) *out = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
  return SQLITE_OK;
}

static int ro_delete(sqlite3_vfs *v, const char *name, int sync) { return SQLITE_READONLY; }

static int ro_access(sqlite3_vfs *v, const char *name, int flags, int *out) {
  *out = 0; // no journal and no log is looked at
  return SQLITE_OK;
}

static int ro_full(sqlite3_vfs *v, const char *name, int n, char *out) {
  sqlite3_snprintf(n, out, "%s", name);
  return SQLITE_OK;
}

static int ro_random(sqlite3_vfs *v, int n, char *out) {
  int got = 0;
  while (got < n) {
    int part = n - got < 256 ? n - got : 256;
    if (getentropy(out + got, (size_t)part)) break;
    got += part;
  }
  return got;
}

static int ro_sleep(sqlite3_vfs *v, int micros) { return 0; }

static int ro_time(sqlite3_vfs *v, sqlite3_int64 *out) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return SQLITE_ERROR;
  // Milliseconds since noon of the first day of the Julian calendar.
  *out = 210866760000000LL + (sqlite3_int64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
  return SQLITE_OK;
}

static int ro_time_days(sqlite3_vfs *v, double *out) {
  sqlite3_int64 ms;
  int rc = ro_time(v, &ms);
  *out = (double)ms / 86400000.0;
  return rc;
}

static int ro_error(sqlite3_vfs *v, int n, char *out) { return 0; }

static sqlite3_vfs ro_vfs = {
    2, sizeof(struct ro_file), 512, NULL, "ro", NULL, ro_open, ro_delete, ro_access, ro_full,
    NULL, NULL, NULL, NULL, ro_random, ro_sleep, ro_time_days, ro_error, ro_time,
};

int sqlite3_os_init(void) { return sqlite3_vfs_register(&ro_vfs, 1); }
int sqlite3_os_end(void) { return SQLITE_OK; }

#endif
