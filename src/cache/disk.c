#define _GNU_SOURCE
#include "cache/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static char g_dir[3072];
static int64_t g_limit, g_estimate;  // bytes; the estimate grows with our own stores
static atomic_int_fast64_t g_rejects;
static atomic_uint g_serial;

typedef struct header_t {
  char magic[8];
  uint32_t format, reserved;
  uint64_t key_len, meta_len, exe_len;
  uint64_t checksum[2];  // of everything behind the header
} header_t;
static const char k_magic[8] = {'T', 'T', 'P', 'U', 'E', 'X', 'E', '\n'};
enum { FORMAT = 1 };
static const int64_t k_default_limit = (int64_t)4 << 30;

static bool make_dirs(const char* dir) {
  char path[3072];
  snprintf(path, sizeof path, "%s", dir);
  for (char* p = path + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    if (mkdir(path, 0700) && errno != EEXIST) return false;
    *p = '/';
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

void rt_disk_open(const char* dir, int64_t limit_bytes) {
  pthread_mutex_lock(&g_lock);
  g_dir[0] = 0;
  if (strlen(dir) < sizeof g_dir - 128 && make_dirs(dir)) {
    snprintf(g_dir, sizeof g_dir, "%s", dir);
    g_limit = limit_bytes > 0 ? limit_bytes : k_default_limit;
    g_estimate = -1;
  }
  pthread_mutex_unlock(&g_lock);
}

bool rt_disk_is_open(void) { return g_dir[0] != 0; }
const char* rt_disk_dir(void) { return g_dir; }
int64_t rt_disk_rejects(void) { return atomic_load(&g_rejects); }

static void entry_path(const void* key, size_t key_len, char* out, size_t size, bool folder_only) {
  tt_hash128_t h = tt_hash128(key, key_len);
  unsigned top = (unsigned)(h.hi >> 56);
  if (folder_only) snprintf(out, size, "%s/%02x", g_dir, top);
  else snprintf(out, size, "%s/%02x/%016llx%016llx", g_dir, top, (unsigned long long)h.hi, (unsigned long long)h.lo);
}

static bool read_fully(int fd, void* data, size_t n) {
  char* p = data;
  while (n) {
    ssize_t r = read(fd, p, n);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return false;
    p += r;
    n -= (size_t)r;
  }
  return true;
}

static bool write_fully(int fd, const void* data, size_t n) {
  const char* p = data;
  while (n) {
    ssize_t r = write(fd, p, n);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return false;
    p += r;
    n -= (size_t)r;
  }
  return true;
}

// Reads the file into one block when it is whole, ours, and holds |key|.
static void* load(int fd, const void* key, size_t key_len, header_t* h) {
  struct stat st;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0)) return NULL;
  if (!read_fully(fd, h, sizeof *h) || memcmp(h->magic, k_magic, 8) || h->format != FORMAT) return NULL;
  const uint64_t cap = (uint64_t)1 << 40;
  if (h->key_len != key_len || h->meta_len > cap || h->exe_len > cap) return NULL;
  uint64_t body = h->key_len + h->meta_len + h->exe_len;
  if ((uint64_t)st.st_size != sizeof *h + body) return NULL;
  char* block = tt_malloc((size_t)body);
  if (!block) return NULL;
  if (read_fully(fd, block, (size_t)body)) {
    tt_hash128_t sum = tt_hash128(block, (size_t)body);
    if (sum.lo == h->checksum[0] && sum.hi == h->checksum[1] && memcmp(block, key, key_len) == 0) return block;
  }
  tt_free(block);
  return NULL;
}

bool rt_disk_find(const void* key, size_t key_len, void** out_block, const void** out_meta, size_t* out_meta_len,
                  const void** out_exe, size_t* out_exe_len) {
  *out_block = NULL;
  if (!rt_disk_is_open()) return false;
  char path[3200];
  entry_path(key, key_len, path, sizeof path, false);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  header_t h;
  char* block = load(fd, key, key_len, &h);
  if (block) futimens(fd, NULL);  // recently used
  close(fd);
  if (!block) {
    atomic_fetch_add(&g_rejects, 1);
    return false;
  }
  *out_block = block;
  *out_meta = block + h.key_len;
  *out_meta_len = (size_t)h.meta_len;
  *out_exe = block + h.key_len + h.meta_len;
  *out_exe_len = (size_t)h.exe_len;
  return true;
}

// ---------------------------------------------------------------- bounding
typedef struct file_t {
  char name[64];
  int64_t size;
  int64_t used_ns;
} file_t;

static int by_age(const void* a, const void* b) {
  const file_t *x = a, *y = b;
  return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

// Lists every file; drops temporaries older than an hour (their writers died). Returns the bytes of all entries.
static int64_t list(file_t** out_files, size_t* out_n) {
  file_t* files = NULL;
  size_t n = 0, cap = 0;
  int64_t total = 0;
  time_t now = time(NULL);
  for (unsigned top = 0; top < 256; top++) {
    char folder[3100];
    snprintf(folder, sizeof folder, "%s/%02x", g_dir, top);
    DIR* d = opendir(folder);
    if (!d) continue;
    for (struct dirent* e; (e = readdir(d));) {
      struct stat st;
      if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) continue;
      if (strchr(e->d_name, '.')) {
        if (now - st.st_mtime > 3600) unlinkat(dirfd(d), e->d_name, 0);
        continue;
      }
      if (n == cap) {
        size_t bigger = cap ? cap * 2 : 256;
        file_t* p = tt_realloc(files, bigger * sizeof *p);
        if (!p) break;
        files = p;
        cap = bigger;
      }
      file_t* f = &files[n++];
      snprintf(f->name, sizeof f->name, "%02x/%.40s", top, e->d_name);
      f->size = st.st_size;
      f->used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
      total += f->size;
    }
    closedir(d);
  }
  *out_files = files;
  *out_n = n;
  return total;
}

// Called with the lock held after storing |added| bytes.
static void bound(int64_t added) {
  if (g_estimate >= 0 && (g_estimate += added) <= g_limit) return;
  file_t* files = NULL;
  size_t n = 0;
  int64_t total = list(&files, &n);
  if (total > g_limit) {
    qsort(files, n, sizeof *files, by_age);
    for (size_t i = 0; i < n && total > g_limit * 9 / 10; i++) {
      char path[3200];
      snprintf(path, sizeof path, "%s/%s", g_dir, files[i].name);
      if (unlink(path) == 0) total -= files[i].size;
    }
  }
  tt_free(files);
  g_estimate = total;
}

bool rt_disk_store(const void* key, size_t key_len, const void* meta, size_t meta_len, const void* exe, size_t exe_len) {
  if (!rt_disk_is_open()) return false;
  char folder[3100], path[3200], temp[3300];
  entry_path(key, key_len, folder, sizeof folder, true);
  entry_path(key, key_len, path, sizeof path, false);
  if (mkdir(folder, 0700) && errno != EEXIST) return false;
  snprintf(temp, sizeof temp, "%s.%ld.%u", path, (long)getpid(), atomic_fetch_add(&g_serial, 1));
  size_t body = key_len + meta_len + exe_len;
  char* block = tt_malloc(sizeof(header_t) + body);
  if (!block) return false;
  header_t h = {.format = FORMAT, .key_len = key_len, .meta_len = meta_len, .exe_len = exe_len};
  memcpy(h.magic, k_magic, 8);
  char* p = block + sizeof h;
  memcpy(p, key, key_len);
  if (meta_len) memcpy(p + key_len, meta, meta_len);
  memcpy(p + key_len + meta_len, exe, exe_len);
  tt_hash128_t sum = tt_hash128(p, body);
  h.checksum[0] = sum.lo;
  h.checksum[1] = sum.hi;
  memcpy(block, &h, sizeof h);
  int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool ok = fd >= 0 && write_fully(fd, block, sizeof h + body);
  if (fd >= 0 && close(fd)) ok = false;
  tt_free(block);
  // No fsync: a file torn by a power cut fails its checksum and is a miss.
  if (ok && rename(temp, path)) ok = false;
  if (!ok) {
    if (fd >= 0) unlink(temp);
    return false;
  }
  pthread_mutex_lock(&g_lock);
  bound((int64_t)(sizeof h + body));
  pthread_mutex_unlock(&g_lock);
  return true;
}
