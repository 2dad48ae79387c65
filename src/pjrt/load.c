#define _GNU_SOURCE
#include "pjrt/load.h"

tt_status_t tt_plugin_probe(const char* path) {
  (void)path;
  return NULL;
}
