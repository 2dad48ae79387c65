// What a device's compiler can do, for lowerings that have more than one form. Filled in by src/pjrt, read by src/ops.
//
// Depends on: nothing.
// Threads: immutable data.
#ifndef TT_BASE_CAPS_H_
#define TT_BASE_CAPS_H_

typedef enum tt_caps_t {
  TT_CAP_F64 = 1 << 0,              // f64 and c128 arithmetic
  TT_CAP_SLOW_SMALL_CONV = 1 << 1,  // convolutions whose kernel exceeds the unpadded input fall off the fast path
  TT_CAP_CUSTOM_LINALG = 1 << 2,    // custom calls Qr, Eigh, LuDecomposition, ... of XLA
  TT_CAP_LAPACK_FFI = 1 << 3,       // lapack_*_ffi custom calls
} tt_caps_t;

#endif  // TT_BASE_CAPS_H_
