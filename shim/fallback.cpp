// Running an op on the CPU when the device has neither a row nor a decomposition for it. Never silent: counted, and
// said once per op with the reason, or refused.
#include <ATen/CPUGeneratorImpl.h>

#include "shim.h"

namespace tt {

std::atomic<FallbackMode> g_fallback_mode{FallbackMode::Warn};

void announce_fallback(Overload& o, const char* reason) {
  o.fallbacks.fetch_add(1, std::memory_order_relaxed);
  FallbackMode mode = g_fallback_mode.load(std::memory_order_relaxed);
  const char* why = reason != nullptr && reason[0] != 0 ? reason : "the tpu device has no lowering for it";
  if (mode == FallbackMode::Error) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, o.name(), " would run on the CPU: ", why, ". TORCH_TPU_FALLBACK=error forbids it.");
  }
  if (mode == FallbackMode::Warn && !o.warned.exchange(true)) {
    TORCH_WARN(o.name(), " runs on the CPU: ", why, ". It is right but slow; TORCH_TPU_FALLBACK=error forbids it, =off silences this.");
  }
}

namespace {

at::Tensor to_cpu(const at::Tensor& t, c10::SmallVectorImpl<std::pair<at::Tensor, at::Tensor>>& seen) {
  if (!t.defined() || t.device().type() != kTpu) return t;
  for (auto& [from, to] : seen) {
    if (from.is_same(t)) return to;
  }
  at::Tensor host = t.cpu();
  seen.emplace_back(t, host);
  return host;
}

at::Tensor to_device(const at::Tensor& t, int device) {
  if (!t.defined()) return t;
  TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == at::kStrided, "the tpu device has no tensors of layout ", t.layout());
  at::Tensor out = at::empty_strided(t.sizes(), t.strides(), t.options().device(c10::Device(kTpu, static_cast<c10::DeviceIndex>(device))));
  out.copy_(t);
  return out;
}

// A CPU generator that continues a device generator's sequence; the device's offset moves on.
at::Generator cpu_generator(const at::Generator& g, int device) {
  tt_rng_t* rng = g.defined() ? rng_of(g) : tt_rng_default(device);
  uint64_t seed = 0, offset = 0;
  tt_rng_get(rng, &seed, &offset);
  tt_rng_set(rng, seed, offset + 1);
  return at::detail::createCPUGenerator(seed ^ (offset * 0x9E3779B97F4A7C15ull));
}

void copy_back(const at::Tensor& device_tensor, const at::Tensor& host) {
  if (device_tensor.sizes() != host.sizes()) {
    device_tensor.resize_(host.sizes());
    if (host.is_non_overlapping_and_dense()) device_tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
  }
  at::Tensor dst = device_tensor;
  dst.copy_(host);
}

}  // namespace

void run_on_cpu(Overload& o, torch::jit::Stack* stack, const char* reason) {
  announce_fallback(o, reason);
  Call call(o, stack);
  call.pack();
  const int device = call.device;
  const auto& arguments = o.handle.schema().arguments();
  torch::jit::Stack host;
  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 8> seen;
  for (int i = 0; i < o.n_schema_args; i++) {
    const c10::IValue& v = call.arg(i);
    Kind kind = kind_of(arguments[static_cast<size_t>(i)].real_type());
    if (kind == Kind::Device) {
      host.emplace_back(c10::Device(c10::kCPU));
    } else if (kind == Kind::Generator) {
      host.emplace_back(cpu_generator(v.isNone() ? at::Generator() : v.toGenerator(), device));
    } else if (v.isNone()) {
      host.push_back(v);
    } else if (kind == Kind::Tensor) {
      host.emplace_back(to_cpu(v.toTensor(), seen));
    } else if (kind == Kind::Tensors && v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const auto& e : v.toListRef()) list.push_back(to_cpu(e.toTensor(), seen));
      host.emplace_back(std::move(list));
    } else if (kind == Kind::Tensors) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& e : v.toListRef()) list.push_back(e.isNone() ? std::optional<at::Tensor>() : to_cpu(e.toTensor(), seen));
      host.emplace_back(std::move(list));
    } else {
      host.push_back(v);
    }
  }
  torch::jit::Stack given = host;
  o.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &host);

  // What the op wrote into, also where its schema does not say so.
  c10::SmallVector<int, 4> written;
  for (int i = 0; i < o.n_args; i++) {
    if (o.mutates[i] && o.at[i] >= 0) written.push_back(o.at[i]);
  }
  for (int i : written) {
    const c10::IValue &real = call.arg(i), &twin = given[static_cast<size_t>(i)];
    if (real.isTensor() && real.toTensor().defined()) {
      copy_back(real.toTensor(), twin.toTensor());
    } else if (real.isList()) {
      for (size_t k = 0; k < real.toListRef().size(); k++) {
        const auto& e = real.toListRef()[k];
        if (!e.isNone() && e.toTensor().defined()) copy_back(e.toTensor(), twin.toListRef()[k].toTensor());
      }
    }
  }
  c10::SmallVector<c10::IValue, 4> out;
  for (size_t i = 0; i < o.returns.size(); i++) {
    const c10::IValue& v = host[host.size() - o.returns.size() + i];
    if (o.returns[i] != kFresh) {
      out.push_back(call.arg(o.returns[i]));
    } else if (v.isTensor()) {
      out.emplace_back(to_device(v.toTensor(), device));
    } else if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const auto& e : v.toListRef()) list.push_back(to_device(e.toTensor(), device));
      out.emplace_back(std::move(list));
    } else {
      out.push_back(v);
    }
  }
  torch::jit::drop(*stack, static_cast<size_t>(o.n_schema_args));
  for (auto& v : out) stack->push_back(std::move(v));
}

}  // namespace tt
