// Registering kernels: one boxed kernel per overload that a row of the op table serves, and a catch-all for the rest.
#include <unordered_set>

#include "shim.h"

namespace tt {

namespace {

// The kernel of one overload; its digest is made at the first call.
class BoxedKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
    Overload* o = overload_.load(std::memory_order_acquire);
    if (C10_UNLIKELY(o == nullptr)) {
      o = overload_of(handle);
      overload_.store(o, std::memory_order_release);
    }
    run(*o, stack);
  }

 private:
  std::atomic<Overload*> overload_{nullptr};
};

void catch_all(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
  run(*overload_of(handle), stack);
}

// Rows which graphs need and eager mode does better by PyTorch's composition of allocation, views and copies.
const std::unordered_set<std::string>& composed() {
  static const std::unordered_set<std::string> names = {
      "aten::_to_copy", "aten::clone", "aten::copy", "aten::copy_", "aten::lift", "aten::lift_fresh", "aten::lift_fresh_copy",
      "aten::detach",   "aten::alias", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided", "aten::contiguous",
      "aten::as_strided_copy", "aten::as_strided_scatter", "aten::_reshape_alias_copy",  // they mean the storage's layout
      "aten::to",       "aten::set_",  "aten::resize_",    "aten::resize_as_", "aten::_unsafe_view", "aten::empty",
  };
  return names;
}

// Composites that PyTorch has a gradient of their own for, so that one kernel each way does what several ops would.
bool own_gradient(const std::string& base) { return base == "aten::_fused_rms_norm"; }

bool returns_view(const c10::FunctionSchema& s) {
  for (const auto& r : s.returns()) {
    if (r.alias_info() != nullptr && !r.alias_info()->isWrite()) return true;
  }
  return false;
}

}  // namespace

int register_kernels() {
  static auto* handles = new std::vector<c10::RegistrationHandleRAII>;
  auto& dispatcher = c10::Dispatcher::singleton();
  std::unordered_set<std::string> bases;
  for (int i = 0; i < tt_table_count(); i++) {
    std::string name = tt_table_name(i);
    std::string base = "aten::" + name.substr(0, name.find('.'));
    if (name.find("::") != std::string::npos) continue;
    bases.insert(base);
    bases.insert(base + "_");
    if (name.compare(0, 2, "__") == 0) bases.insert("aten::__i" + name.substr(2, name.find('.') - 2));
    if (name == "normal_functional") bases.insert("aten::normal_");
  }
  int n = 0;
  for (const auto& base : bases) {
    if (composed().count(base) != 0) continue;
    for (const auto& h : overloads_of(base)) {
      if (returns_view(h.schema()) || h.hasTag(at::Tag::inplace_view) || h.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) ||
          (h.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !own_gradient(base))) {
        continue;
      }
      std::string row;
      tt_variant_t variant;
      relate(h, &row, &variant);
      if (!tt_table_has(row.c_str())) continue;
      handles->push_back(dispatcher.registerImpl(h.operator_name(), c10::DispatchKey::PrivateUse1,
                                                 c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<BoxedKernel>()),
                                                 std::nullopt, nullptr, "torch_tpu"));
      n++;
    }
  }
  return n;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&catch_all>()); }

}  // namespace tt
