#include <string.h>

#include "base/alloc.h"
#include "runtime/runtime.h"

struct tt_rng_t {
  uint64_t seed, offset;
};

tt_status_t tt_rng_create(tt_rng_t** out) {
  *out = tt_calloc(1, sizeof **out);
  if (!*out) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for a generator");
  (*out)->seed = 67280421310721u;  // PyTorch's default seed
  return NULL;
}

void tt_rng_destroy(tt_rng_t* rng) { tt_free(rng); }

void tt_rng_set(tt_rng_t* rng, uint64_t seed, uint64_t offset) {
  rng->seed = seed;
  rng->offset = offset;
}

void tt_rng_get(const tt_rng_t* rng, uint64_t* out_seed, uint64_t* out_offset) {
  *out_seed = rng->seed;
  *out_offset = rng->offset;
}

void rt_rng_draw(tt_rng_t* rng, uint64_t blocks, unsigned char out_state[16]) {
  memcpy(out_state, &rng->seed, 8);
  memcpy(out_state + 8, &rng->offset, 8);
  rng->offset += blocks;
}

tt_status_t rt_rng_upload(int device, const unsigned char state[16], tt_pbuf_t** out_buffer) {
  static const int64_t k_two = 2;
  return tt_pbuf_from_host(g_rt.client, device, TT_U64, 1, &k_two, state, TT_HOST_COPY, NULL, NULL, out_buffer);
}

tt_rng_t* tt_rng_default(int device) { return device >= 0 && device < g_rt.n_devices ? g_rt.devices[device].rng : NULL; }
