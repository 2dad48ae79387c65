// Status codes as PyTorch's exceptions; element types.
#include "shim.h"

namespace tt {

void raise(tt_status_t status) {
  tt_code_t code = tt_status_code(status);
  std::string text = tt_status_message(status);
  tt_status_free(status);
  const c10::SourceLocation where = {"torch_tpu", "torch_tpu", 0};
  switch (code) {
    case TT_OUT_OF_RANGE: throw c10::IndexError(where, std::move(text));
    case TT_VALUE_ERROR: throw c10::ValueError(where, std::move(text));
    case TT_TYPE_ERROR: throw c10::TypeError(where, std::move(text));
    case TT_UNIMPLEMENTED:
    case TT_DECLINED: throw c10::NotImplementedError(where, std::move(text));
    case TT_RESOURCE_EXHAUSTED: throw c10::OutOfMemoryError(where, std::move(text));
    default: throw c10::Error(where, std::move(text));
  }
}

void raise_two_devices(c10::Device a, c10::Device b) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", a, " and ", b, "!");
}

static constexpr std::array<uint8_t, static_cast<size_t>(c10::ScalarType::NumOptions)> make_dtypes() {
  std::array<uint8_t, static_cast<size_t>(c10::ScalarType::NumOptions)> out{};
  using S = c10::ScalarType;
  auto set = [&out](S s, tt_dtype_t d) constexpr { out[static_cast<size_t>(s)] = static_cast<uint8_t>(d); };
  set(S::Bool, TT_BOOL);
  set(S::Char, TT_I8);
  set(S::Short, TT_I16);
  set(S::Int, TT_I32);
  set(S::Long, TT_I64);
  set(S::Byte, TT_U8);
  set(S::UInt16, TT_U16);
  set(S::UInt32, TT_U32);
  set(S::UInt64, TT_U64);
  set(S::Half, TT_F16);
  set(S::Float, TT_F32);
  set(S::Double, TT_F64);
  set(S::BFloat16, TT_BF16);
  set(S::ComplexFloat, TT_C64);
  set(S::ComplexDouble, TT_C128);
  set(S::Float8_e5m2, TT_F8E5M2);
  set(S::Float8_e4m3fn, TT_F8E4M3FN);
  set(S::Float8_e5m2fnuz, TT_F8E5M2FNUZ);
  set(S::Float8_e4m3fnuz, TT_F8E4M3FNUZ);
  return out;
}
static constexpr auto k_dtypes = make_dtypes();
const uint8_t* const k_dtype_table = k_dtypes.data();

tt_dtype_t dtype_of(c10::ScalarType type) {
  auto dtype = static_cast<tt_dtype_t>(k_dtypes[static_cast<size_t>(type)]);
  TORCH_CHECK_TYPE(dtype != TT_DT_NONE, "the tpu device has no dtype ", type);
  return dtype;
}

c10::ScalarType scalar_type_of(tt_dtype_t dtype) {
  static const auto back = [] {
    std::array<c10::ScalarType, TT_DTYPE_COUNT> out;
    out.fill(c10::ScalarType::Undefined);
    for (size_t s = 0; s < k_dtypes.size(); s++) {
      if (k_dtypes[s] != 0) out[k_dtypes[s]] = static_cast<c10::ScalarType>(s);
    }
    return out;
  }();
  return back[static_cast<size_t>(dtype)];
}

}  // namespace tt
