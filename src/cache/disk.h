// A directory of compiled executables, shared by processes: entries are whole or absent.
//
// Depends on: base.
// Threads: thread-safe.
// One plain file an entry, written under a temporary name and renamed. A file is taken only if magic, format, lengths,
// checksum, owner and the whole key agree; anything else is a miss. When the directory outgrows its limit the least
// recently used files go.
#ifndef TT_CACHE_DISK_H_
#define TT_CACHE_DISK_H_
#include <stdint.h>
#include "base/status.h"

// Opens (makes) the directory. Failure leaves the cache off: a cache must never stop a program.
void rt_disk_open(const char* dir, int64_t limit_bytes);
bool rt_disk_is_open(void);
const char* rt_disk_dir(void);  // "" when off

// Looks |key| up. True: *out_meta and *out_exe point into *out_block, which the caller tt_frees.
bool rt_disk_find(const void* key, size_t key_len, void** out_block, const void** out_meta, size_t* out_meta_len,
                  const void** out_exe, size_t* out_exe_len);
// Stores an entry; false when it could not (disk full, no permission): not an error.
bool rt_disk_store(const void* key, size_t key_len, const void* meta, size_t meta_len, const void* exe, size_t exe_len);
int64_t rt_disk_rejects(void);  // files found but refused (torn, foreign, altered)

#endif  // TT_CACHE_DISK_H_
