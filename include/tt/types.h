// Plain data shared by the core, its C users and the PyTorch shim: status codes, dtypes, limits.
//
// Depends on: nothing.
// Threads: immutable data.
#ifndef TT_TYPES_H_
#define TT_TYPES_H_
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TT_API __attribute__((visibility("default")))
#define TT_MUST_USE __attribute__((warn_unused_result))
#define TT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TT_API
#define TT_MUST_USE
#define TT_PRINTF(f, a)
#endif

// Largest tensor rank the core accepts.
#define TT_MAX_RANK 24

// Status codes. Numbers are absl's, which are PJRT_Error_Code's, so conversion is a cast.
// X(name, number, Python exception that the shim raises)
#define TT_STATUS_CODES(X)                                \
  X(CANCELLED, 1, "KeyboardInterrupt")                    \
  X(UNKNOWN, 2, "RuntimeError")                           \
  X(INVALID_ARGUMENT, 3, "RuntimeError")                  \
  X(DEADLINE_EXCEEDED, 4, "TimeoutError")                 \
  X(NOT_FOUND, 5, "RuntimeError")                         \
  X(ALREADY_EXISTS, 6, "RuntimeError")                    \
  X(PERMISSION_DENIED, 7, "PermissionError")              \
  X(RESOURCE_EXHAUSTED, 8, "torch.OutOfMemoryError")      \
  X(FAILED_PRECONDITION, 9, "RuntimeError")               \
  X(ABORTED, 10, "RuntimeError")                          \
  X(OUT_OF_RANGE, 11, "IndexError")                       \
  X(UNIMPLEMENTED, 12, "NotImplementedError")             \
  X(INTERNAL, 13, "RuntimeError")                         \
  X(UNAVAILABLE, 14, "RuntimeError")                      \
  X(DATA_LOSS, 15, "RuntimeError")                        \
  X(TYPE_ERROR, 32, "TypeError")                          \
  X(VALUE_ERROR, 33, "ValueError")                        \
  X(DECLINED, 34, "NotImplementedError")

typedef enum tt_code_t {
  TT_OK = 0,
#define TT_X(name, number, exception) TT_##name = number,
  TT_STATUS_CODES(TT_X)
#undef TT_X
} tt_code_t;

// Result of a fallible call: NULL is success; otherwise one owner, who returns it, or frees it.
typedef struct tt_status_rep_t* tt_status_t;

TT_API tt_code_t tt_status_code(tt_status_t status);        // TT_OK for NULL
TT_API const char* tt_status_message(tt_status_t status);   // borrowed, lives as long as |status|; "" for NULL
TT_API const char* tt_status_site(tt_status_t status);      // "file.c:123" where it was made; "" for NULL
TT_API void tt_status_free(tt_status_t status);             // accepts NULL
TT_API TT_MUST_USE tt_status_t tt_status_create(tt_code_t code, const char* message);  // for callbacks; |message| is copied
TT_API const char* tt_code_name(tt_code_t code);            // "INVALID_ARGUMENT"
TT_API const char* tt_code_exception(tt_code_t code);       // Python exception name of the table above

// Element types. X(NAME, bytes, MLIR spelling, PyTorch spelling, PJRT_Buffer_Type, kind)
// kind: b bool, u unsigned, i signed, f float, c complex.
#define TT_DTYPES(X)                                          \
  X(BOOL, 1, "i1", "bool", 1, 'b')                            \
  X(I8, 1, "i8", "int8", 2, 'i')                              \
  X(I16, 2, "i16", "int16", 3, 'i')                           \
  X(I32, 4, "i32", "int32", 4, 'i')                           \
  X(I64, 8, "i64", "int64", 5, 'i')                           \
  X(U8, 1, "ui8", "uint8", 6, 'u')                            \
  X(U16, 2, "ui16", "uint16", 7, 'u')                         \
  X(U32, 4, "ui32", "uint32", 8, 'u')                         \
  X(U64, 8, "ui64", "uint64", 9, 'u')                         \
  X(F16, 2, "f16", "float16", 10, 'f')                        \
  X(F32, 4, "f32", "float32", 11, 'f')                        \
  X(F64, 8, "f64", "float64", 12, 'f')                        \
  X(BF16, 2, "bf16", "bfloat16", 13, 'f')                     \
  X(C64, 8, "complex<f32>", "complex64", 14, 'c')             \
  X(C128, 16, "complex<f64>", "complex128", 15, 'c')          \
  X(F8E5M2, 1, "f8E5M2", "float8_e5m2", 16, 'f')              \
  X(F8E4M3FN, 1, "f8E4M3FN", "float8_e4m3fn", 17, 'f')        \
  X(F8E5M2FNUZ, 1, "f8E5M2FNUZ", "float8_e5m2fnuz", 19, 'f')  \
  X(F8E4M3FNUZ, 1, "f8E4M3FNUZ", "float8_e4m3fnuz", 20, 'f')

typedef enum tt_dtype_t {
  TT_DT_NONE = 0,
#define TT_X(name, bytes, mlir, torch, pjrt, kind) TT_##name,
  TT_DTYPES(TT_X)
#undef TT_X
  TT_DTYPE_COUNT
} tt_dtype_t;

TT_API size_t tt_dtype_size(tt_dtype_t dtype);            // bytes of one element; 0 for NONE
TT_API const char* tt_dtype_name(tt_dtype_t dtype);       // PyTorch's name, "float32"
TT_API const char* tt_dtype_mlir(tt_dtype_t dtype);       // MLIR's name, "f32"
TT_API int tt_dtype_pjrt(tt_dtype_t dtype);               // PJRT_Buffer_Type
TT_API char tt_dtype_kind(tt_dtype_t dtype);              // 'b' 'u' 'i' 'f' 'c', 0 for NONE

static inline bool tt_is_float(tt_dtype_t d) { return tt_dtype_kind(d) == 'f'; }
static inline bool tt_is_complex(tt_dtype_t d) { return tt_dtype_kind(d) == 'c'; }
static inline bool tt_is_unsigned(tt_dtype_t d) { return tt_dtype_kind(d) == 'u'; }
static inline bool tt_is_signed_int(tt_dtype_t d) { return tt_dtype_kind(d) == 'i'; }
static inline bool tt_is_int(tt_dtype_t d) { return tt_is_unsigned(d) || tt_is_signed_int(d); }   // not bool
static inline bool tt_is_integral(tt_dtype_t d) { return tt_is_int(d) || d == TT_BOOL; }          // bool too

// What a row of the op table (src/ops/op.h) says of its operation.
typedef enum tt_op_flags_t {
  TT_OP_POINTWISE = 1 << 0,       // elementwise over broadcast inputs: may fuse freely
  TT_OP_RANDOM = 1 << 1,          // draws from the generator (tt_random_bits)
  TT_OP_DATA_DEPENDENT = 1 << 2,  // result size depends on values: uses tt_ret_sized, PyTorch's meta kernel is not asked
  TT_OP_CHECKS = 1 << 3,          // may call tt_check
  TT_OP_NO_META = 1 << 4,         // PyTorch has no meta kernel: results' types are taken from the lowering
  TT_OP_HOST_OPERANDS = 1 << 5,   // accepts CPU tensors of any rank among its tensor arguments (fused optimizers' steps)
  TT_OP_META_EVERY_CALL = 1 << 6,  // run-time scalars decide its result's size or whether it raises: PyTorch's meta kernel is asked at every call
  TT_OP_WIDE_NUMBERS = 1 << 7,    // a 0-d host tensor beside half floats keeps f32, which the operation computes in
  TT_OP_MORE_DTYPES = 1 << 8,     // takes dtypes that PyTorch's CPU kernel refuses and its kernels of other devices take
} tt_op_flags_t;

#ifdef __cplusplus
}
#endif
#endif  // TT_TYPES_H_
