// Copies between host and device, between devices, and reading one number.
//
// Conjugate and negative bits are views that PyTorch makes without work; here they are honoured on both sides: the
// destination's bits are moved onto the source, the source's are resolved.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include <deque>
#include <mutex>

#include "shim.h"

namespace tt {

// ---------------------------------------------------------------- asynchronous copies to the host
namespace {

struct Transfer {
  tt_event_t* event;
  at::Tensor host;  // keeps the memory that is being written
};
std::mutex g_transfers_mutex;
std::deque<Transfer> g_transfers;

void finish(Transfer& t) {
  tt_status_t status = tt_event_wait(t.event);
  tt_event_release(t.event);
  ok(status);
}

void push_transfer(tt_event_t* event, const at::Tensor& host) {
  std::lock_guard<std::mutex> lock(g_transfers_mutex);
  while (!g_transfers.empty() && tt_event_query(g_transfers.front().event)) {
    tt_event_release(g_transfers.front().event);
    g_transfers.pop_front();
  }
  g_transfers.push_back({event, host});
}

}  // namespace

void drain_transfers() {
  std::deque<Transfer> all;
  {
    std::lock_guard<std::mutex> lock(g_transfers_mutex);
    all.swap(g_transfers);
  }
  for (auto& t : all) finish(t);
}

namespace {

bool is_tpu(const at::Tensor& t) { return t.device().type() == kTpu; }

// The order of dims in which |t| is row-major, when it is dense without overlap; false otherwise.
bool dense_order(const at::Tensor& t, c10::SmallVectorImpl<int64_t>* order) {
  if (!t.is_non_overlapping_and_dense()) return false;
  for (int64_t i = 0; i < t.dim(); i++) order->push_back(i);
  std::stable_sort(order->begin(), order->end(), [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
  return t.permute(*order).is_contiguous();
}

void to_host(const at::Tensor& dst, const at::Tensor& src, bool non_blocking) {
  at::Tensor from = src, to = dst;
  bool direct = dst.scalar_type() == src.scalar_type() && dst.sizes() == src.sizes() && dst.layout() == at::kStrided;
  if (direct && !dst.is_contiguous()) {
    // A channels-last destination: read the source in the destination's own order.
    c10::SmallVector<int64_t, 8> order;
    direct = dense_order(dst, &order);
    if (direct) {
      to = dst.permute(order);
      from = src.permute(order);
    }
  }
  tt_tensor_t t;
  describe(from, &t);
  if (!direct) {
    at::Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU).pinned_memory(false));
    if (host.numel() != 0) ok(tt_copy_to_host(&t, host.mutable_data_ptr()));
    to.copy_(host);
    return;
  }
  if (to.numel() == 0) return;
  if (non_blocking && to.is_pinned()) {
    tt_event_t* event = nullptr;
    ok(tt_copy_to_host_async(&t, to.mutable_data_ptr(), &event));
    push_transfer(event, to);
    return;
  }
  ok(tt_copy_to_host(&t, to.mutable_data_ptr()));
}

void copy_on_device(const at::Tensor& dst, const at::Tensor& src) {
  tt_tensor_t d, s;
  describe(dst, &d);
  describe(src, &s);
  ok(tt_copy_device(&d, &s));
}

void from_host(const at::Tensor& dst, const at::Tensor& src) {
  at::Tensor host = src.resolve_conj().resolve_neg();
  if (host.layout() != at::kStrided) host = host.to_dense();
  // Convert where fewer bytes travel.
  if (host.scalar_type() != dst.scalar_type() &&
      (dst.element_size() <= host.element_size() || k_dtype_table[static_cast<size_t>(host.scalar_type())] == 0)) {
    host = host.to(dst.scalar_type());
  }
  if (host.numel() < dst.numel()) {  // a broadcast: send the small one
    at::Tensor small = empty_on(dst.device().index(), host.sizes(), host.scalar_type());
    from_host(small, host);
    copy_on_device(dst, small.expand(dst.sizes()));
    return;
  }
  at::Tensor to = dst;
  host = host.expand(dst.sizes());
  if (!host.is_contiguous()) {
    c10::SmallVector<int64_t, 8> order;
    if (dense_order(host, &order)) {
      host = host.permute(order);
      to = dst.permute(order);
    }
    host = host.contiguous();
  }
  tt_tensor_t t;
  describe(to, &t);
  ok(tt_copy_from_host(&t, host.const_data_ptr(), dtype_of(host.scalar_type())));
}

}  // namespace

at::Tensor resolve_bits(const at::Tensor& tensor) {
  at::Tensor out = tensor;
  bool conj = out.is_conj(), neg = out.is_neg();
  if (conj) out = out.conj();
  if (neg) out = out._neg_view();
  if (conj) out = at::_conj_physical(out);
  if (neg) out = at::neg(out);
  return out;
}

at::Tensor& copy_(at::Tensor& dst_in, const at::Tensor& src_in, bool non_blocking) {
  if (dst_in.is_same(src_in)) return dst_in;
  Leaving leaving;
  at::Tensor dst = dst_in, src = src_in;
  if (src._is_zerotensor()) return dst_in.zero_();
  TORCH_CHECK_NOT_IMPLEMENTED(!src.is_meta(), "Cannot copy out of meta tensor; no data!");
  TORCH_CHECK(is_tpu(dst) || dst.is_cpu(), "cannot copy from ", src.device(), " to ", dst.device());
  TORCH_CHECK(is_tpu(src) || src.is_cpu(), "cannot copy from ", src.device(), " to ", dst.device());
  ensure_open();
  if (dst.sizes() != src.sizes()) {
    auto shape = at::infer_size(dst.sizes(), src.sizes());
    TORCH_CHECK(dst.sizes() == c10::IntArrayRef(shape), "output with shape ", dst.sizes(), " doesn't match the broadcast shape ",
                c10::IntArrayRef(shape));
  }
  at::assert_no_internal_overlap(dst);
  if (is_tpu(dst) && is_tpu(src)) at::assert_no_partial_overlap(dst, src);
  if (dst.numel() == 0) return dst_in;
  if (src.is_complex() && !dst.is_complex() && dst.scalar_type() != at::kBool) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
    src = at::real(src);
  }
  if (dst.is_conj()) {
    dst = dst.conj();
    src = src.is_complex() ? src.conj() : src;
  }
  if (dst.is_neg()) {
    dst = dst._neg_view();
    src = src._neg_view();
  }
  if (is_tpu(src)) src = resolve_bits(src);
  if (!is_tpu(src)) {
    from_host(dst, src);
  } else if (!is_tpu(dst)) {
    to_host(dst, src.dim() == dst.dim() ? src : src.expand(dst.sizes()), non_blocking);
  } else {
    copy_on_device(dst, src.expand(dst.sizes()));
  }
  return dst_in;
}

namespace {

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor out = dst;
  copy_(out, self, non_blocking);
  return out;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.sizes() != self.sizes()) dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  Leaving leaving;
  at::Tensor host = at::detail::empty_cpu({}, self.scalar_type());
  at::Tensor one = resolve_bits(self.dim() == 0 ? self : self.reshape({}));
  tt_tensor_t t;
  describe(one, &t);
  ok(tt_copy_to_host(&t, host.mutable_data_ptr()));
  return host.item();
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  if (self.device() != other.device()) raise_two_devices(self.device(), other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return at::eq(self, other).all().item<bool>();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("copy_", TORCH_FN(tt::copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("equal", TORCH_FN(equal));
}
// Copies handle both bits themselves; the keys' own fallbacks would copy to resolve them, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace tt
