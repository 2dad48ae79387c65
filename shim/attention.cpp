// scaled_dot_product_attention: the choice of the fused form, and the op behind it.
//
// PyTorch's op for devices like this one also returns two integers, which no row of the op table can. So its kernel is
// written here, over an op of our own that returns tensors only.
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>

#include "shim.h"

namespace tt {

namespace {

bool plain(const at::Tensor& t) {
  auto dtype = t.scalar_type();
  bool floating = dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16;
  return floating && t.layout() == at::kStrided && (t.dim() == 3 || t.dim() == 4) && t.sym_numel() != 0;
}

// The fused op takes [batch, heads, length, width] (or without batch) of one dtype; PyTorch's composition takes the
// rest, and says what is wrong with what is wrong.
bool fused_takes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& mask,
                 bool enable_gqa) {
  if (!plain(q) || !plain(k) || !plain(v) || k.dim() != q.dim() || v.dim() != q.dim()) return false;
  if (k.scalar_type() != q.scalar_type() || v.scalar_type() != q.scalar_type()) return false;
  if (q.dim() == 4 && (q.sym_size(0) != k.sym_size(0) || q.sym_size(0) != v.sym_size(0))) return false;
  auto heads = q.sym_size(-3), kv_heads = k.sym_size(-3);
  if (kv_heads != v.sym_size(-3) || k.sym_size(-2) != v.sym_size(-2) || q.sym_size(-1) != k.sym_size(-1)) return false;
  if (heads != kv_heads && (!enable_gqa || heads % kv_heads != 0)) return false;
  return !mask.has_value() || !mask->defined() || mask->dim() <= 4;
}

int64_t choose(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& mask,
               double, bool, std::optional<double>, bool enable_gqa) {
  bool fused = at::globalContext().userEnabledOverrideableSDP() && fused_takes(q, k, v, mask, enable_gqa);
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                               const std::optional<at::Tensor>&, double, bool,
                                                               std::optional<double>);

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& bias,
                double dropout_p, bool is_causal, bool, std::optional<double> scale) {
  static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("tpu::attention", "").typed<Forward>();
  auto [out, logsumexp, seed] = op.call(q, k, v, bias, dropout_p, is_causal, scale);
  return {out, logsumexp, at::Tensor(), at::Tensor(), q.sym_size(-2), k.sym_size(-2), seed, seed, at::Tensor()};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(tpu, m) {
  m.def("attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, float dropout_p, bool is_causal, "
        "float? scale) -> (Tensor, Tensor, Tensor)");
  // Of programs that many replicas run (src/ops/collective.c).
  m.def("replica_index(int base, int[] strides, int[] sizes, int[] steps) -> Tensor");
  m.def("narrow_at(Tensor x, int dim, Tensor start, int length) -> Tensor");
  m.def("after(Tensor x, Tensor y) -> Tensor");
}

TORCH_LIBRARY_IMPL(tpu, CompositeExplicitAutograd, m) {
  m.impl("after", [](const at::Tensor& x, const at::Tensor&) { return x.clone(); });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(fused_attention));
}

}  // namespace tt

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tt::choose)
}
