// Ops whose result is as large as a value says, with no bound in the shapes: the value is read first.
#include "shim.h"

namespace tt {

namespace {

// PyTorch's own kernel refuses what is wrong, in its own words.
at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, c10::SymInt minlength) {
  int64_t least = minlength.guard_int(__FILE__, __LINE__);
  bool weighted = weights.has_value() && weights->defined();
  bool integral = at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  bool fits = self.dim() == 1 && self.numel() > 0 && integral && least >= 0;
  if (fits && weighted) {
    fits = weights->dim() == 1 && weights->size(0) == self.size(0) && weights->device() == self.device() && !weights->is_complex();
  }
  int64_t largest = -1;
  at::Tensor positions;
  if (fits) {
    positions = self.to(at::kLong);
    auto [low, high] = at::aminmax(positions);
    fits = low.item<int64_t>() >= 0;
    largest = high.item<int64_t>();
  }
  if (!fits) {
    return at::bincount(self.cpu(), weighted ? std::optional<at::Tensor>(weights->cpu()) : std::nullopt, least).to(self.device());
  }
  int64_t size = std::max(largest + 1, least), room = least;
  while (room < size) room = std::max<int64_t>(16, room * 2);  // sizes of a few kinds: a largest value compiles no program of its own
  at::ScalarType dtype = at::kLong;
  if (weighted) dtype = weights->scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
  at::Tensor counted = at::zeros({room}, self.options().dtype(dtype));
  at::Tensor added = weighted ? weights->to(dtype) : at::ones_like(positions);
  return counted.scatter_add_(0, positions, added).narrow(0, 0, size);
}

void repeat_interleave(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
  c10::IValue& size = stack->back();
  const at::Tensor& repeats = (stack->end() - 2)->toTensor();
  bool counts = repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt;
  if (size.isNone() && repeats.dim() == 1 && counts) {
    size = std::max<int64_t>(repeats.sum().item<int64_t>(), 0);  // negative repeats are refused by the row's check
  }
  run(*overload_of(handle), stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("bincount", TORCH_FN(bincount));
  m.impl("repeat_interleave.Tensor", torch::CppFunction::makeFromBoxedFunction<&repeat_interleave>());
}

}  // namespace tt
