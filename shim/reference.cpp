// What PyTorch's CPU kernels say of a call: the errors that a user of the device should read are theirs.
#include <cmath>
#include <cstring>

#include "shim.h"

namespace tt {
namespace {

constexpr int64_t kTooLarge = int64_t{1} << 26;   // bytes of a call that is asked at its own shapes
constexpr int64_t kWorthwhile = int64_t{1} << 16;  // elements up to which a first call asks at its own shapes

// A call's arguments on the CPU, filled with |fill|.
struct Twins {
  int fill = 0;
  bool shrink = false;                    // every dim at most 1
  bool few = false;                       // an argument that says the result's size says 2
  c10::ScalarType as = c10::ScalarType::Undefined;  // the dtype of every tensor, where one is given
  bool beside_ints = false;               // integers stay such: they are int64 then
  int64_t bytes = 0;

  at::Tensor of(const at::Tensor& t) {
    if (!t.defined()) return t;
    bool number = t.unsafeGetTensorImpl()->is_wrapped_number();
    if (t.device().type() != kTpu && (!number || as == c10::ScalarType::Undefined)) return t;
    std::vector<int64_t> sizes = t.sizes().vec(), strides = t.strides().vec();
    if (shrink) {
      for (auto& n : sizes) n = std::min<int64_t>(n, 1);
      std::fill(strides.begin(), strides.end(), 1);
    }
    auto options = t.options().device(at::kCPU);
    if (as != c10::ScalarType::Undefined) {
      bool integer = beside_ints && c10::isIntegralType(t.scalar_type(), false);
      if (!beside_ints || t.scalar_type() != at::kBool) options = options.dtype(integer ? at::kLong : as);
    }
    bytes += t.numel() * static_cast<int64_t>(t.element_size());
    TORCH_CHECK(shrink || bytes < kTooLarge, "too large to ask");
    at::Tensor twin = at::empty_strided(sizes, strides, options);
    return fill == 0 ? twin.zero_() : twin.fill_(fill);
  }

  c10::IValue of(const c10::IValue& v) {
    if (v.isTensor()) return of(v.toTensor());
    if (v.isDevice()) return c10::Device(c10::kCPU);
    if (v.isGenerator()) return at::detail::createCPUGenerator();
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const auto& e : v.toListRef()) list.push_back(of(e.toTensor()));
      return list;
    }
    if (v.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& e : v.toListRef()) list.push_back(e.isNone() ? std::optional<at::Tensor>() : of(e.toTensor()));
      return list;
    }
    if (as != c10::ScalarType::Undefined && v.isComplexDouble()) return 1.0;
    return v;
  }
};

bool is_generator(const c10::Argument& a) { return kind_of(a.real_type()) == Kind::Generator; }

// False when the arguments have no such twins.
bool twins_of(const Call& call, Twins twins, torch::jit::Stack* stack) {
  try {
    const auto& arguments = call.overload.handle.schema().arguments();
    for (int i = 0; i < call.overload.n_schema_args; i++) {
      const c10::IValue& v = call.arg(i);
      const c10::Argument& a = arguments[static_cast<size_t>(i)];
      bool number = a.type()->kind() == c10::TypeKind::NumberType;
      if (twins.few && v.isIntList() && a.name() == "size") stack->push_back(c10::List<int64_t>({2}));
      else if (number && ((twins.as == at::kLong && v.isDouble()) || (twins.as != at::ScalarType::Undefined && v.isBool()))) stack->push_back(1);
      else if (is_generator(a)) stack->push_back(at::detail::createCPUGenerator());  // a draw leaves the user's alone
      else stack->push_back(twins.of(v));
    }
    return true;
  } catch (...) {
    return false;
  }
}

// While it lives nobody is warned: the call itself will warn.
class Quiet {
  struct Silence : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  } silence_;
  c10::WarningUtils::WarningHandlerGuard guard_{&silence_};
};

void call_on_cpu(const Call& call, torch::jit::Stack* stack) {
  call.overload.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// May the CPU's kernel be asked ahead of the call? A random one without a generator argument would move the CPU's.
bool may_be_asked(const Overload& o) {
  if (o.name().compare(0, 6, "aten::") != 0) return false;
  if (!o.handle.hasTag(at::Tag::nondeterministic_seeded)) return true;
  const auto& arguments = o.handle.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), is_generator);
}

// Elements of all tensors of a call; -1 when there are none.
int64_t elements(const Call& call) {
  int64_t n = -1;
  auto see = [&n](const at::Tensor& t) {
    if (t.defined()) n = std::max<int64_t>(n, 0) + t.numel();
  };
  for (int i = 0; i < call.overload.n_schema_args; i++) {
    const c10::IValue& v = call.arg(i);
    if (v.isTensor()) {
      see(v.toTensor());
    } else if (v.isTensorList() || v.isOptionalTensorList()) {
      for (const auto& e : v.toListRef()) {
        if (!e.isNone()) see(e.toTensor());
      }
    }
  }
  return n;
}

// Ones, shrunk where |n| elements would take long.
Twins ones_of(int64_t n) {
  Twins ones;
  ones.fill = 1;
  ones.shrink = n > kWorthwhile;
  return ones;
}

}  // namespace

bool speaks_of_the_backend(const c10::Error& error) {
  return error.msg().find("'CPU' backend") != std::string::npos;
}

// A half or narrower float that a CPU kernel has no code for.
static bool is_narrow_float(const c10::Error& e) {
  for (const char* name : {"'Half'", "'BFloat16'", "'Float8"}) {
    if (e.msg().find(name) != std::string::npos) return true;
  }
  return false;
}

void raise_in_cpu_words(const Call& call) {
  torch::jit::Stack stack;
  if (twins_of(call, Twins{}, &stack)) call_on_cpu(call, &stack);
}

// The lowerings take more dtypes than PyTorch's CPU kernels, which would turn a user's mistake into a value. So a first call
// is asked of the CPU, on ones; what it throws counts when the same call in float32 or int64 throughout, or in float32
// beside int64, is good, which leaves shapes, indices and other arguments out of it. Narrow floats that the CPU lacks a kernel for beside one of float32
// are not a mistake, nor what rows take as PyTorch's kernels of other devices do.
void raise_if_cpu_refuses_dtypes(const Call& call) {
  const Overload& o = call.overload;
  if (o.more_dtypes || !may_be_asked(o)) return;
  int64_t n = elements(call);
  if (n < 0) return;
  Quiet quiet;
  Twins ones = ones_of(n);
  torch::jit::Stack stack;
  if (!twins_of(call, ones, &stack)) return;
  std::exception_ptr refused;
  bool narrow = false;
  try {
    call_on_cpu(call, &stack);
    return;
  } catch (const c10::NotImplementedError& e) {
    if (speaks_of_the_backend(e)) return;
    narrow = is_narrow_float(e);
    refused = std::current_exception();
  } catch (const c10::Error&) {
    refused = std::current_exception();
  } catch (...) {
    return;  // a kernel in Python: its meta function speaks for itself
  }
  for (int attempt = 0; attempt < 3; attempt++) {
    ones.as = attempt == 1 ? at::kLong : at::kFloat;
    ones.beside_ints = attempt == 2;
    stack.clear();
    if (!twins_of(call, ones, &stack)) return;
    try {
      call_on_cpu(call, &stack);
    } catch (...) {
      continue;
    }
    if (narrow && ones.as == at::kFloat) return;
    std::rethrow_exception(refused);
  }
}

// ---------------------------------------------------------------- numbers
namespace {

// May a CPU kernel that converts |x| to |dtype| refuse?
bool may_overflow(double x, tt_dtype_t dtype) {
  auto outside = [x](double low, double high) { return !(x >= low && x <= high); };
  switch (dtype) {
    case TT_I8: return outside(-128, 127);
    case TT_U8: return outside(0, 255);  // most kernels wrap a negative number, some refuse it
    case TT_I16: return outside(-32768, 32767);
    case TT_I32: return outside(-2147483648.0, 2147483647.0);
    case TT_I64: return outside(-9223372036854775808.0, 9223372036854774784.0);
    case TT_F16: return std::isfinite(x) && outside(-65504, 65504);
    case TT_BF16: return std::isfinite(x) && outside(-0x1.FEp127, 0x1.FEp127);
    case TT_F32: return std::isfinite(x) && outside(-0x1.FFFFFEp127, 0x1.FFFFFEp127);
    default: return false;
  }
}

template <class Visit>
void each_dtype(const Call& call, Visit visit) {
  for (int i = 0; i < call.overload.n_args; i++) {
    const tt_value_t& v = call.values[i];
    if (v.kind == TT_V_DTYPE) visit(static_cast<tt_dtype_t>(v.u.i));
    if (v.kind != TT_V_TENSOR && v.kind != TT_V_TENSORS) continue;
    for (int k = 0; k < v.n; k++) {
      if ((v.u.tensor[k].flags & (TT_T_UNDEFINED | TT_T_WRAPPED)) == 0) visit(static_cast<tt_dtype_t>(v.u.tensor[k].dtype));
    }
  }
}

bool may_not_fit(const Call& call, const tt_value_t& v) {
  bool odd = false;
  if (v.kind == TT_V_COMPLEX) {
    each_dtype(call, [&](tt_dtype_t d) { odd |= !tt_is_complex(d) && d != TT_BOOL; });
  } else if (v.kind == TT_V_INT || v.kind == TT_V_FLOAT) {
    double x = v.kind == TT_V_INT ? static_cast<double>(v.u.i) : v.u.f;
    if (C10_LIKELY(x >= 0 && x <= 127)) return false;
    each_dtype(call, [&](tt_dtype_t d) { odd |= may_overflow(x, d); });
  }
  return odd;
}

}  // namespace

bool numbers_may_not_fit(const Call& call) {
  const Overload& o = call.overload;
  for (int i = 0; i < o.n_args; i++) {
    const tt_value_t& v = call.values[i];
    if (o.kinds[i] == Kind::Scalar) {
      if (may_not_fit(call, v)) return true;
    } else if (o.kinds[i] == Kind::Scalars && v.kind == TT_V_SCALARS) {
      for (int k = 0; k < v.n; k++) {
        if (may_not_fit(call, v.u.items[k])) return true;
      }
    }
  }
  return false;
}

void raise_if_a_number_does_not_fit(const Call& call) {
  if (!may_be_asked(call.overload)) return;
  Quiet quiet;
  Twins ones = ones_of(elements(call));
  ones.few = true;
  torch::jit::Stack stack;
  if (!twins_of(call, ones, &stack)) return;
  try {
    call_on_cpu(call, &stack);
  } catch (const std::exception& e) {
    if (std::strstr(e.what(), "without overflow") != nullptr) throw;
  } catch (...) {
  }
}

}  // namespace tt
