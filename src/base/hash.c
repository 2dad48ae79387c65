#include "base/hash.h"

#include <string.h>

static uint64_t load64(const unsigned char* p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

// Folds the 128-bit product of |a| and |b|.
static uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 u128;
  u128 m = (u128)a * b;
  return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t tt_hash64(const void* data, size_t len, uint64_t seed) {
  const uint64_t k0 = 0x9E3779B97F4A7C15u, k1 = 0xD6E8FEB86659FD93u, k2 = 0xCA5A826395121157u;
  const unsigned char* p = data;
  uint64_t h = seed ^ fold(len ^ k0, k1), g = seed ^ k2;
  size_t n = len;
  for (; n >= 16; n -= 16, p += 16) {
    h = fold(load64(p) ^ k1 ^ h, load64(p + 8) ^ g ^ k2);
    g = g * k0 + h;
  }
  unsigned char tail[16] = {0};
  if (n) memcpy(tail, p, n);
  h = fold(load64(tail) ^ k2 ^ h, load64(tail + 8) ^ k1 ^ g ^ n);
  h ^= h >> 32;
  h *= k1;
  return h ^ (h >> 29);
}

tt_hash128_t tt_hash128(const void* data, size_t len) {
  return (tt_hash128_t){tt_hash64(data, len, 0x243F6A8885A308D3u), tt_hash64(data, len, 0x13198A2E03707344u)};
}
