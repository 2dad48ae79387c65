// Hashing of byte strings. Not cryptographic: every table that uses it also compares the whole key.
//
// Depends on: nothing. Threads: pure functions.
#ifndef TT_BASE_HASH_H_
#define TT_BASE_HASH_H_
#include <stddef.h>
#include <stdint.h>

typedef struct tt_hash128_t { uint64_t lo, hi; } tt_hash128_t;

uint64_t tt_hash64(const void* data, size_t len, uint64_t seed);
tt_hash128_t tt_hash128(const void* data, size_t len);  // two independent 64-bit hashes: names of cache files

#endif  // TT_BASE_HASH_H_
