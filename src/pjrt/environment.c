// No file descriptor is redirected: that would also swallow what the user's other threads print. Measured with
// TORCH_TPU_VERBOSE=1: the CPU plugins write two lines at client creation (an INFO line about cpu_device_count and
// absl's warning), nothing at load or compile, and TF_CPP_MIN_LOG_LEVEL hides them; libtpu without a TPU writes five
// lines at its initialisation whatever the log level is, and none once it is told a machine type and a host name.
#define _GNU_SOURCE
#include "pjrt/environment.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_libtpu(const char* path) {
  const char* name = strrchr(path, '/');
  return strncmp(name ? name + 1 : path, "libtpu", 6) == 0;
}

static bool has_entry(const char* folder, const char* prefix) {
  DIR* dir = opendir(folder);
  if (!dir) return false;
  size_t len = strlen(prefix);
  bool found = false;
  for (struct dirent* e; !found && (e = readdir(dir)) != NULL;) {
    found = !strncmp(e->d_name, prefix, len) && isdigit((unsigned char)e->d_name[len]);
  }
  closedir(dir);
  return found;
}

// TPUs appear as /dev/accel0, … or, newer ones, as /dev/vfio/0, ….
static bool has_tpu(void) {
  return has_entry("/dev", "accel") || has_entry("/dev/accel", "accel") || has_entry("/dev/vfio", "");
}

void tt_environment_before_load(const char* path) {
  const char* verbose = getenv("TORCH_TPU_VERBOSE");
  if (!verbose || strcmp(verbose, "1") != 0) setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  if (is_libtpu(path) && !has_tpu()) {
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("TPU_ACCELERATOR_TYPE", "v5litepod-1", 0);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
  }
}

void tt_environment_before_topology(void) {
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
}
