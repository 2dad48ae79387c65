// What PyTorch's CPU kernels say of a call: the errors that a user of the device should read are theirs.
#include "shim.h"

namespace tt {
namespace {

constexpr int64_t kTooLarge = int64_t{1} << 26;   // bytes of a call that is asked at its own shapes
constexpr int64_t kWorthwhile = int64_t{1} << 16;  // elements up to which a first call asks at its own shapes

// A call's arguments on the CPU, filled with |fill|.
struct Twins {
  int fill = 0;
  bool shrink = false;                    // every dim at most 1
  c10::ScalarType as = c10::ScalarType::Undefined;  // the dtype of every tensor, where one is given
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
    if (as != c10::ScalarType::Undefined) options = options.dtype(as);
    bytes += t.numel() * static_cast<int64_t>(t.element_size());
    TORCH_CHECK(shrink || bytes < kTooLarge, "too large to ask");
    at::Tensor twin = at::empty_strided(sizes, strides, options);
    return fill == 0 ? twin.zero_() : twin.fill_(fill);
  }

  c10::IValue of(const c10::IValue& v) {
    if (v.isTensor()) return of(v.toTensor());
    if (v.isDevice()) return c10::Device(c10::kCPU);
    if (v.isGenerator()) return c10::IValue();
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

// False when the arguments have no such twins.
bool twins_of(const Call& call, Twins twins, torch::jit::Stack* stack) {
  try {
    for (int i = 0; i < call.overload.n_schema_args; i++) stack->push_back(twins.of(call.arg(i)));
    return true;
  } catch (...) {
    return false;
  }
}

void call_on_cpu(const Call& call, torch::jit::Stack* stack) {
  call.overload.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// What a call's device tensors are made of.
struct Dtypes {
  int64_t numel = 0;
  bool any = false, mixed = false, floats_only = true; 
  c10::ScalarType first = c10::ScalarType::Undefined;

  void see(const at::Tensor& t) {
    if (!t.defined()) return;
    c10::ScalarType type = t.scalar_type();
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) {  // only these change what kind of call it is
      floats_only &= type != c10::ScalarType::Bool && !c10::isComplexType(type);
      return;
    }
    mixed |= any && type != first;
    any = true;
    first = type;
    numel += t.numel();
    floats_only &= c10::isFloatingType(type);
  }
};

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
// with dtypes that are not one float's is asked of the CPU, on ones; what it throws counts when the same call in float32
// or int64 throughout is good, which leaves shapes, indices and other arguments out of it. Halves that the CPU has no
// kernel for are not a mistake, nor what rows take as PyTorch's kernels of other devices do. A random kernel would move the CPU's generator, and is not asked.
void raise_if_cpu_refuses_dtypes(const Call& call) {
  const Overload& o = call.overload;
  if (o.more_dtypes || o.name().compare(0, 6, "aten::") != 0 || o.handle.hasTag(at::Tag::nondeterministic_seeded)) return;
  Dtypes dtypes;
  for (int i = 0; i < o.n_schema_args; i++) {
    const c10::IValue& v = call.arg(i);
    if (v.isTensor()) {
      dtypes.see(v.toTensor());
    } else if (v.isComplexDouble()) {
      dtypes.floats_only = false;
    } else if (v.isTensorList() || v.isOptionalTensorList()) {
      for (const auto& e : v.toListRef()) {
        if (!e.isNone()) dtypes.see(e.toTensor());
      }
    }
  }
  if (!dtypes.any || (dtypes.floats_only && !dtypes.mixed)) return;
  Twins ones;
  ones.fill = 1;
  ones.shrink = dtypes.numel > kWorthwhile;
  torch::jit::Stack stack;
  if (!twins_of(call, ones, &stack)) return;
  std::exception_ptr refused;
  try {
    call_on_cpu(call, &stack);
    return;
  } catch (const c10::NotImplementedError& e) {
    if (is_narrow_float(e) || speaks_of_the_backend(e)) return;
    refused = std::current_exception();
  } catch (const c10::Error&) {
    refused = std::current_exception();
  } catch (...) {
    return;  // a kernel in Python: its meta function speaks for itself
  }
  for (c10::ScalarType as : {at::kFloat, at::kLong}) {
    ones.as = as;
    stack.clear();
    if (!twins_of(call, ones, &stack)) return;
    try {
      call_on_cpu(call, &stack);
    } catch (...) {
      continue;
    }
    std::rethrow_exception(refused);
  }
}

}  // namespace tt
