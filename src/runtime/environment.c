#define _GNU_SOURCE
#include "runtime/environment.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

static const char k_here = 0;  // an address in this library

// The linker's build id of this library, as hex: an executable made by other lowerings is another executable.
static int find_build_id(struct dl_phdr_info* info, size_t size, void* ctx) {
  (void)size;
  const uintptr_t self = (uintptr_t)&k_here;
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* ph = &info->dlpi_phdr[i];
    if (ph->p_type == PT_LOAD && self >= info->dlpi_addr + ph->p_vaddr && self < info->dlpi_addr + ph->p_vaddr + ph->p_memsz)
      ours = true;
  }
  if (!ours) return 0;
  tt_strbuf_t* out = ctx;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* ph = &info->dlpi_phdr[i];
    if (ph->p_type != PT_NOTE) continue;
    const unsigned char* p = (const unsigned char*)(info->dlpi_addr + ph->p_vaddr);
    const unsigned char* end = p + ph->p_memsz;
    while (p + 12 <= end) {
      uint32_t head[3];
      memcpy(head, p, sizeof head);
      const unsigned char* desc = p + 12 + ((head[0] + 3) & ~3u);
      if (head[2] == NT_GNU_BUILD_ID && desc + head[1] <= end)
        for (uint32_t k = 0; k < head[1]; k++) tt_strbuf_printf(out, "%02x", desc[k]);
      p = desc + ((head[1] + 3) & ~3u);
    }
  }
  return 1;
}

char* rt_environment_text(const tt_environment_t* about) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  int major, minor;
  tt_plugin_version(about->plugin, &major, &minor);
  tt_strbuf_puts(&s, "library ");
  dl_iterate_phdr(find_build_id, &s);
  tt_strbuf_printf(&s, "\nplatform %s\nplatform_version %s\npjrt %d.%d\ndevice %s\n", about->platform, about->version, major,
                   minor, about->kind);
  const char* v = tt_plugin_attribute(about->plugin, "stablehlo_current_version");
  tt_strbuf_printf(&s, "stablehlo %s\n", v ? v : "?");
  const char* flags = getenv("XLA_FLAGS");
  tt_strbuf_printf(&s, "xla_flags %s\n", flags ? flags : "");
  tt_strbuf_printf(&s, "flags %s\nfast_flags %s\n", about->flags ? about->flags : "", about->fast_flags ? about->fast_flags : "");
  const char* libtpu = getenv("LIBTPU_INIT_ARGS");
  tt_strbuf_printf(&s, "libtpu_args %s\n", libtpu ? libtpu : "");
  if (s.failed) tt_strbuf_deinit(&s);
  return s.data;
}

void rt_program_key(const char* environment, int device, const char* overrides, const char* text, size_t len,
                    tt_strbuf_t* out_key) {
  tt_strbuf_puts(out_key, environment);
  tt_strbuf_printf(out_key, "device %d\n", device);
  if (overrides && *overrides) tt_strbuf_printf(out_key, "overrides %s\n", overrides);
  tt_strbuf_puts(out_key, "program\n");
  tt_strbuf_append(out_key, text, len);
}
