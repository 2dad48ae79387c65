#include "tt/types.h"

static const struct {
  size_t size;
  const char* mlir;
  const char* torch;
  int pjrt;
  char kind;
} k_dtypes[TT_DTYPE_COUNT] = {
    [TT_DT_NONE] = {0, "none", "none", 0, 0},
#define TT_X(name, bytes, mlir, torch, pjrt, kind) [TT_##name] = {bytes, mlir, torch, pjrt, kind},
    TT_DTYPES(TT_X)
#undef TT_X
};

static unsigned checked(tt_dtype_t d) { return (unsigned)d < TT_DTYPE_COUNT ? (unsigned)d : 0; }
size_t tt_dtype_size(tt_dtype_t d) { return k_dtypes[checked(d)].size; }
const char* tt_dtype_name(tt_dtype_t d) { return k_dtypes[checked(d)].torch; }
const char* tt_dtype_mlir(tt_dtype_t d) { return k_dtypes[checked(d)].mlir; }
int tt_dtype_pjrt(tt_dtype_t d) { return k_dtypes[checked(d)].pjrt; }
char tt_dtype_kind(tt_dtype_t d) { return k_dtypes[checked(d)].kind; }
