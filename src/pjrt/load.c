// A probe is a forked child that loads the plugin and asks for its function table: what a broken library does to it
// (SIGSEGV, abort, exit) it does to nobody else. It costs one dlopen, 0.1-0.3 s, so its verdict is kept in a text
// file, one line per plugin file: "ok|bad <signal> <size> <mtime> <path>". Where no such file can be kept there is no
// probe: paying at every start would be worse than the rare broken plugin. TORCH_TPU_PROBE=0 turns it off.
#define _GNU_SOURCE
#include "pjrt/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROBE_TIMEOUT_MS = 30000, MAX_PATH = 4096 };

typedef struct verdict_t {
  bool known;
  int signal;  // 0: the plugin can be loaded, or fails in an orderly way
} verdict_t;

// ---------------------------------------------------------------- memory of verdicts
// The file's name, with its folder made. False when there is no place for it.
static bool verdict_file(char* out, size_t size) {
  const char* base = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  char folder[MAX_PATH];
  int n;
  if (base && *base == '/') n = snprintf(folder, sizeof folder, "%s", base);
  else if (home && *home == '/') n = snprintf(folder, sizeof folder, "%s/.cache", home);
  else return false;
  if (n < 0 || (size_t)n + 16 > sizeof folder) return false;
  mkdir(folder, 0700);
  strcat(folder, "/torch_tpu");
  mkdir(folder, 0700);
  n = snprintf(out, size, "%s/plugins", folder);
  return n > 0 && (size_t)n < size && access(folder, W_OK) == 0;
}

static verdict_t recall(const char* file, const char* path, const struct stat* st) {
  verdict_t v = {false, 0};
  FILE* f = fopen(file, "re");
  if (!f) return v;
  char line[MAX_PATH + 128], word[8];
  while (fgets(line, sizeof line, f)) {
    int sig = 0, at = 0;
    long long size = 0, mtime = 0;
    if (sscanf(line, "%7s %d %lld %lld %n", word, &sig, &size, &mtime, &at) < 4 || !at) continue;
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line + at, path) || size != (long long)st->st_size || mtime != (long long)st->st_mtime) continue;
    v = (verdict_t){true, strcmp(word, "bad") ? 0 : sig};  // the last line counts
  }
  fclose(f);
  return v;
}

static void remember(const char* file, const char* path, const struct stat* st, int sig) {
  char line[MAX_PATH + 128];
  int n = snprintf(line, sizeof line, "%s %d %lld %lld %s\n", sig ? "bad" : "ok", sig, (long long)st->st_size,
                   (long long)st->st_mtime, path);
  if (n < 0 || (size_t)n >= sizeof line || strchr(path, '\n')) return;
  int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  // One write of a short line to an O_APPEND file: processes do not mix their lines.
  ssize_t written = write(fd, line, (size_t)n);
  (void)written;  // a lost line costs one more probe
  close(fd);
}

// ---------------------------------------------------------------- the probe
enum { CAME_BACK = 113, ENDS_PROCESS = 255 };  // the child's exit status; in place of a signal: the plugin called exit()

static void run_child(const char* path) {
  static const int k_signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTERM, SIGINT, SIGALRM, SIGPIPE};
  for (size_t i = 0; i < sizeof k_signals / sizeof k_signals[0]; i++) signal(k_signals[i], SIG_DFL);
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) {
    dup2(null, 1);
    dup2(null, 2);
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, "GetPjrtApi") : NULL;
  if (symbol) {
    const void* (*get_api)(void);
    memcpy(&get_api, &symbol, sizeof get_api);
    get_api();
  }
  _exit(CAME_BACK);  // an orderly failure will be seen, and worded, by the parent
}

static verdict_t probe(const char* path) {
  pid_t child = fork();
  if (child < 0) return (verdict_t){false, 0};
  if (child == 0) run_child(path);
  int wait_status = 0;
  for (int waited_ms = 0;; waited_ms += 2) {
    pid_t got = waitpid(child, &wait_status, WNOHANG);
    if (got == child) break;
    if (got < 0 && errno != EINTR) return (verdict_t){false, 0};  // somebody else reaps children here
    if (waited_ms >= PROBE_TIMEOUT_MS) {
      // A fork of a process with threads may find the loader's lock held for ever. That says nothing of the plugin.
      kill(child, SIGKILL);
      waitpid(child, &wait_status, 0);
      return (verdict_t){false, 0};
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  if (WIFSIGNALED(wait_status)) return (verdict_t){true, WTERMSIG(wait_status)};
  return (verdict_t){true, WEXITSTATUS(wait_status) == CAME_BACK ? 0 : ENDS_PROCESS};
}

tt_status_t tt_plugin_probe(const char* path) {
  char file[MAX_PATH];
  struct stat st;
  const char* wish = getenv("TORCH_TPU_PROBE");
  if (wish && !strcmp(wish, "0")) return NULL;
  if (!strchr(path, '/') || stat(path, &st) != 0 || !verdict_file(file, sizeof file)) return NULL;
  verdict_t v = recall(file, path, &st);
  if (!v.known) {
    v = probe(path);
    if (v.known) remember(file, path, &st, v.signal);
  }
  if (!v.signal) return NULL;
  char how[96] = "ends the process";
  if (v.signal != ENDS_PROCESS) snprintf(how, sizeof how, "crashes (signal %d, %s)", v.signal, strsignal(v.signal));
  return tt_error(TT_FAILED_PRECONDITION,
                  "PJRT plugin %s %s while it is loaded; it was tried in a process of its own. It may be built for "
                  "another processor or system, or be damaged: reinstall it or choose another with "
                  "TORCH_TPU_PJRT_PLUGIN. TORCH_TPU_PROBE=0 loads it all the same",
                  path, how);
}
