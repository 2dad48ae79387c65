// Sparse tensors (COO and the compressed layouts): indices and values are dense tensors of the device, and every op is
// a composition of dense ops over them.
//
// Three kinds of kernel. PyTorch's own kernels of the SparseCPU and SparseCsrCPU keys that only compose ops over indices
// and values know no device: those are called for ours too. Those that touch memory have a composition here. The rest
// run on the CPU, counted and announced as every fallback.
#include <ATen/ATen.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/ReductionType.h>

#include "shim.h"

namespace tt {

namespace {

using at::Scalar;
using at::Tensor;
using c10::DispatchKey;

// Calls the kernel that another backend registered for the same overload.
template <DispatchKey kKey>
void as_backend(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
  handle.redispatchBoxed(c10::DispatchKeySet(kKey), stack);
}

template <DispatchKey kKey>
c10::KernelFunction forwarder() {
  return c10::KernelFunction::makeFromBoxedFunction<&as_backend<kKey>>();
}

// Kernels of the CPU read indices as contiguous, so that none may be kept otherwise.
void new_coo(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
  c10::IValue& indices = (*stack)[stack->size() - handle.schema().arguments().size() + 3];
  indices = indices.toTensor().contiguous();
  handle.redispatchBoxed(c10::DispatchKeySet(DispatchKey::SparseCPU), stack);
}

// ---------------------------------------------------------------- on the CPU
Tensor moved(const Tensor& t, c10::Device device) { return t.defined() && t.device() != device ? t.to(device) : t; }

template <class Move>
c10::IValue map_tensors(const c10::IValue& v, Move move) {
  if (v.isTensor()) return move(v.toTensor());
  if (!v.isTensorList()) return v;
  c10::List<Tensor> list;
  for (const auto& e : v.toListRef()) list.push_back(move(e.toTensor()));
  return list;
}

template <DispatchKey kKey>
void on_cpu(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Overload* o = overload_of(handle);
  announce_fallback(*o, "sparse tensors of the device have no composition for it");
  const auto& schema = handle.schema();
  const size_t n = schema.arguments().size(), base = stack->size() - n;
  c10::Device device(kTpu, static_cast<c10::DeviceIndex>(current_device()));
  torch::jit::Stack host;
  for (size_t i = 0; i < n; i++) {
    const c10::IValue& v = (*stack)[base + i];
    host.push_back(v.isDevice() ? c10::IValue(c10::Device(c10::kCPU)) : map_tensors(v, [&](const Tensor& t) {
      if (t.defined() && t.device().type() == kTpu) device = t.device();
      return moved(t, c10::kCPU);
    }));
  }
  torch::jit::Stack given = host;
  handle.redispatchBoxed(c10::DispatchKeySet(kKey), &host);
  for (size_t i = 0; i < n; i++) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite() || !given[i].isTensor()) continue;
    Tensor real = (*stack)[base + i].toTensor();
    if (real.defined()) real.copy_(given[i].toTensor());
  }
  torch::jit::Stack out;
  for (size_t r = 0; r < schema.returns().size(); r++) {
    const auto* alias = schema.returns()[r].alias_info();
    int written = -1;
    for (size_t i = 0; alias != nullptr && alias->isWrite() && i < n; i++) {
      const auto* a = schema.arguments()[i].alias_info();
      if (a != nullptr && *a == *alias) written = static_cast<int>(i);
    }
    if (written >= 0) out.push_back((*stack)[base + static_cast<size_t>(written)]);
    else out.push_back(map_tensors(host[r], [&](const Tensor& t) { return moved(t, device); }));
  }
  torch::jit::drop(*stack, n);
  for (auto& v : out) stack->push_back(std::move(v));
}

// ---------------------------------------------------------------- COO
Tensor coo(const Tensor& like, const Tensor& indices, const Tensor& values, bool coalesced) {
  return at::_sparse_coo_tensor_with_dims_and_tensors(like.sparse_dim(), like.dense_dim(), like.sizes(), indices, values,
                                                      values.options().layout(at::kSparse), coalesced);
}

// Positions in the row-major order of the sparse dims, i64[nnz].
Tensor flat_positions(const Tensor& self) {
  Tensor indices = self._indices(), flat = at::zeros({indices.size(1)}, indices.options());
  for (int64_t d = 0; d < self.sparse_dim(); d++) flat = flat.mul(self.size(d)).add(indices.select(0, d));
  return flat;
}

int64_t sparse_numel(const Tensor& self) { return c10::multiply_integers(self.sizes().slice(0, static_cast<size_t>(self.sparse_dim()))); }

// Sums of the values that share a position; of bools, whether any is true.
Tensor sum_into(const Tensor& zeros, const Tensor& positions, const Tensor& values) {
  if (values.scalar_type() != at::kBool) return zeros.index_add(0, positions, values);
  return zeros.to(at::kInt).index_add(0, positions, values.to(at::kInt)).ne(0);
}

Tensor coalesce(const Tensor& self) {
  if (self._nnz() < 2) {
    Tensor out = self.clone();
    out._coalesced_(true);
    return out;
  }
  auto [unique, inverse, counts] = at::_unique2(flat_positions(self), true, true, false);
  Tensor values = self._values();
  auto sizes = values.sizes().vec();
  sizes[0] = unique.size(0);
  std::vector<Tensor> rows(static_cast<size_t>(self.sparse_dim()));
  for (int64_t d = self.sparse_dim() - 1; d >= 0; d--) {
    rows[static_cast<size_t>(d)] = unique.remainder(self.size(d));
    unique = unique.div(self.size(d), "floor");
  }
  Tensor indices = rows.empty() ? self._indices().slice(1, 0, sizes[0]) : at::stack(rows);
  return coo(self, indices, sum_into(at::zeros(sizes, values.options()), inverse, values), true);
}

// dense + alpha * sparse.
Tensor add_dense(const Tensor& dense, const Tensor& sparse, const Scalar& alpha, at::ScalarType type) {
  TORCH_CHECK(dense.sizes() == sparse.sizes(), "add: expected 'self' and 'other' to have the same sizes, but self has size ",
              dense.sizes(), " while other has size ", sparse.sizes(), " (FYI: dense-sparse addition does not support broadcasting)");
  Tensor values = sparse._values().to(type);
  if (!alpha.equal(1)) values = values.mul(alpha);
  auto flat = values.sizes().vec();
  flat[0] = sparse_numel(sparse);
  return sum_into(dense.to(type).reshape(flat), flat_positions(sparse), values).reshape(dense.sizes());
}

Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  auto type = at::result_type(self, other);
  if (!self.is_sparse()) return add_dense(self, other, alpha, type);
  TORCH_CHECK(other.is_sparse(), "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(), " != ", other.sizes());
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(), "add: expected 'self' and 'other' to have same number of sparse dimensions");
  Tensor right = other._values().to(type);
  if (!alpha.equal(1)) right = right.mul(alpha);
  Tensor out = coo(self, at::cat({self._indices(), other._indices()}, 1), at::cat({self._values().to(type), right}), false);
  return self.is_coalesced() && other.is_coalesced() ? out.coalesce() : out;
}

Tensor& add_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  Tensor sum = at::add(self, other, alpha);
  TORCH_CHECK(at::can_cast(sum.scalar_type(), self.scalar_type()), "Can't convert result type ", sum.scalar_type(), " to output ", self.scalar_type());
  return self.copy_(sum);
}

Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha) { return at::add(self, other, -alpha); }

// Rows of the dense dims that are zero throughout have no entry.
Tensor to_sparse_dim(const Tensor& self, int64_t sparse_dim) {
  TORCH_CHECK(sparse_dim >= (self.dim() > 0 ? 1 : 0) && sparse_dim <= self.dim(), "sparse_dim argument must be in >=",
              self.dim() > 0 ? 1 : 0, " and <=", self.dim(), ", got ", sparse_dim);
  auto sizes = self.sizes().vec();
  std::vector<int64_t> rows(sizes.begin(), sizes.begin() + sparse_dim), merged{c10::multiply_integers(rows)};
  merged.insert(merged.end(), sizes.begin() + sparse_dim, sizes.end());
  Tensor flat = self.reshape(merged), kept = flat.reshape({merged[0], flat.numel() / std::max<int64_t>(merged[0], 1)}).ne(0).any(1);
  Tensor positions = kept.nonzero().squeeze(1), indices = kept.reshape(rows).nonzero().t();
  return at::_sparse_coo_tensor_with_dims_and_tensors(sparse_dim, self.dim() - sparse_dim, sizes, indices, flat.index_select(0, positions),
                                                      self.options().layout(at::kSparse), true);
}

// Products with a number keep the indices; others meet where both have values.
bool is_number(const Tensor& t) { return t.layout() == at::kStrided && t.dim() == 0; }

// The values of a dense tensor at a sparse tensor's positions, [nnz, dense dims].
Tensor gather(const Tensor& dense, const Tensor& at_sparse) {
  auto flat = dense.sizes().slice(static_cast<size_t>(at_sparse.sparse_dim())).vec();
  flat.insert(flat.begin(), sparse_numel(at_sparse));
  return dense.reshape(flat).index_select(0, flat_positions(at_sparse));
}

Tensor mul(const Tensor& self, const Tensor& other) {
  if (!self.is_sparse()) return at::mul(other, self);
  if (is_number(other)) return coo(self, self._indices(), self._values().mul(other), self.is_coalesced());
  TORCH_CHECK(self.sizes() == other.sizes(), "mul(sparse, ", other.is_sparse() ? "sparse" : "dense",
              ") on the tpu device wants equal sizes, got ", self.sizes(), " and ", other.sizes());
  Tensor left = self.coalesce();
  const bool coalesced = self.is_coalesced() && (!other.is_sparse() || other.is_coalesced());  // what PyTorch says of it
  if (!other.is_sparse()) return coo(left, left._indices(), left._values().mul(gather(other, left)), coalesced);
  Tensor here = gather(other.to_dense(), left);  // where |other| has no value the product is left out
  Tensor mark = coo(other, other._indices(), at::ones({other._nnz()}, other._values().options().dtype(at::kInt)), false);
  Tensor flags = at::zeros({sparse_numel(other)}, mark._values().options()).index_add(0, flat_positions(other), mark._values());
  Tensor keep = flags.index_select(0, flat_positions(left)).ne(0).nonzero().squeeze(1);
  return coo(left, left._indices().index_select(1, keep), left._values().mul(here).index_select(0, keep), coalesced);
}

Tensor div(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(is_number(other), "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape ", other.sizes(), " for divisor)");
  return coo(self, self._indices(), self._values().div(other), self.is_coalesced());
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(self.sizes() == mask.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ", self.sizes(), " but mask has size ", mask.sizes());
  Tensor dense = self.layout() == at::kStrided ? self : self.to_dense();
  return coo(mask, mask._indices().clone(), gather(dense, mask), mask.is_coalesced());
}

// ---------------------------------------------------------------- products with dense matrices
// Rows, columns and values of a sparse matrix of any layout that has them one by one.
std::tuple<Tensor, Tensor, Tensor> entries(const Tensor& m) {
  if (m.layout() == at::kSparseCsr) {
    Tensor rows = at::_convert_indices_from_csr_to_coo(m.crow_indices(), m.col_indices()).select(0, 0);
    return {rows, m.col_indices().to(rows.scalar_type()), m.values()};
  }
  Tensor c = m.is_sparse() ? m : m.to_sparse();
  return {c._indices().select(0, 0), c._indices().select(0, 1), c._values()};
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "addmm: matrices expected, got ", mat1.dim(), "D and ", mat2.dim(), "D tensors");
  TORCH_CHECK(mat1.size(1) == mat2.size(0), "addmm: mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x", mat1.size(1), " and ",
              mat2.size(0), "x", mat2.size(1), ")");
  if (mat1.layout() == at::kStrided) {  // dense @ sparse, turned round
    return at::addmm(self.t(), mat2.layout() == at::kSparseCsr ? mat2.to_sparse().t() : mat2.t(), mat1.t(), beta, alpha).t();
  }
  Tensor right = mat2.layout() == at::kStrided ? mat2 : mat2.to_dense();
  Tensor base = self.layout() == at::kStrided ? self : self.to_dense();
  auto [rows, cols, values] = entries(mat1);
  Tensor start = base.expand({mat1.size(0), mat2.size(1)});
  start = beta.equal(0) ? at::zeros(start.sizes(), start.options()) : beta.equal(1) ? start : start.mul(beta);
  return start.index_add(0, rows, right.index_select(0, cols).mul(values.unsqueeze(1)), alpha);
}

Tensor mm(const Tensor& self, const Tensor& other) {
  if (self.layout() == at::kSparse && other.layout() == at::kSparse) return at::_sparse_sparse_matmul(self, other);
  Tensor like = other.layout() == at::kStrided ? other : self.layout() == at::kStrided ? self : other.to_dense();
  Tensor out = at::addmm(at::zeros({}, like.options()).expand({self.size(0), other.size(1)}), self, other, 0, 1);
  return self.layout() != at::kStrided && other.layout() != at::kStrided ? out.to_sparse(self.layout()) : out;
}

Tensor mv(const Tensor& self, const Tensor& vec) { return at::mm(self, vec.unsqueeze(1)).squeeze(1); }

template <auto kFn, class... A>
Tensor& into(A... args, Tensor& out) {
  Tensor result = kFn(args...);
  if (out.layout() == at::kStrided && out.sizes() != result.sizes()) out.resize_(result.sizes());
  return out.copy_(result);
}

Tensor& addmm_(Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return self.copy_(tt::addmm(self, mat1, mat2, beta, alpha));
}
Tensor& addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  return into<&addmm, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&>(self, mat1, mat2, beta, alpha, out);
}
Tensor& mm_out(const Tensor& self, const Tensor& other, Tensor& out) { return into<&mm, const Tensor&, const Tensor&>(self, other, out); }
Tensor& mul_(Tensor& self, const Tensor& other) { return self.copy_(at::mul(self, other)); }

// The same compressed positions, of any of the layouts, with other values.
Tensor compressed(const Tensor& like, const Tensor& values) {
  const bool by_row = like.layout() == at::kSparseCsr || like.layout() == at::kSparseBsr;
  return at::_sparse_compressed_tensor_unsafe(by_row ? like.crow_indices() : like.ccol_indices(), by_row ? like.col_indices() : like.row_indices(),
                                              values, like.sizes(), values.options().layout(like.layout()));
}

// ---------------------------------------------------------------- products at the positions of a CSR matrix
// Kernels of the CPU would do, but what they keep for the gradient depends on whether an argument requires one, which a
// copy on the CPU no longer knows.
at::native::ReductionType reduction_of(c10::string_view reduce) {
  at::native::ReductionType r = at::native::get_reduction_enum(reduce);
  TORCH_CHECK(r != at::native::ReductionType::PROD, "sparse_mm_reduce: reduce type of prod has not been enabled.");
  return r;
}

// How many entries each row has, at least 1, as a column of |like|'s dtype.
Tensor row_counts(const Tensor& m, const Tensor& like) {
  return m.crow_indices().diff().clamp_min(1).to(like.scalar_type()).unsqueeze(1);
}

// Row i of the result: sum, mean, amax or amin over the entries k of row i of values[k] * other[column of k]; zero where a row
// has none. Second result, for amax and amin: which entry won, nnz for none; empty when no gradient will ask for it.
std::tuple<Tensor, Tensor> mm_reduce(const Tensor& self, const Tensor& other, c10::string_view reduce) {
  TORCH_CHECK(self.layout() == at::kSparseCsr, "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "Expected tensor for argument #1 'other' to have scalar type ",
              c10::toString(self.scalar_type()), "; but got torch.", c10::toString(other.scalar_type()), "Tensor instead (while checking arguments for sparse_mm_reduce)");
  TORCH_CHECK(other.dim() == 2 && other.size(0) == self.size(1), "Expected a tensor of dimension 2 and tensor.size[0] == ", self.size(1),
              " but got: dimension ", other.dim(), " and tensor.size[0] = ", other.dim() > 0 ? other.size(0) : 0);
  const at::native::ReductionType r = reduction_of(reduce);
  auto [rows, cols, values] = entries(self);
  const int64_t nnz = values.size(0);
  Tensor out = at::zeros({self.size(0), other.size(1)}, other.options()), which = at::empty({0}, self.col_indices().options());
  if (nnz == 0) return {out, which};
  Tensor terms = other.index_select(0, cols).mul(values.unsqueeze(1));
  if (r == at::native::ReductionType::SUM) return {out.index_add(0, rows, terms), which};
  if (r == at::native::ReductionType::MEAN) return {out.index_add(0, rows, terms).div(row_counts(self, other)), which};
  Tensor at_rows = rows.unsqueeze(1).expand(terms.sizes());
  out = out.scatter_reduce(0, at_rows, terms, r == at::native::ReductionType::MAX ? "amax" : "amin", /*include_self=*/false);
  if (at::GradMode::is_enabled() && (self.requires_grad() || other.requires_grad())) {
    Tensor best = out.index_select(0, rows);
    Tensor won = terms.eq(best).logical_or(terms.isnan().logical_and(best.isnan()));
    Tensor k = at::arange(nnz, which.options()).unsqueeze(1);
    which = at::full(out.sizes(), nnz, which.options()).scatter_reduce(0, at_rows, at::where(won, k, nnz), "amin");
  }
  return {out, which};
}

std::tuple<Tensor, Tensor> mm_reduce_backward(const Tensor& self, const Tensor& grad, const Tensor& weight, c10::string_view reduce,
                                              const Tensor& which, std::array<bool, 2> wanted) {
  const at::native::ReductionType r = reduction_of(reduce);
  auto [rows, cols, values] = entries(self);
  const int64_t nnz = values.size(0);
  Tensor grad_self, grad_other;
  if (nnz == 0) {
    if (wanted[0]) grad_self = compressed(self, at::zeros_like(values));
    if (wanted[1]) grad_other = at::zeros_like(weight);
  } else if (r == at::native::ReductionType::SUM || r == at::native::ReductionType::MEAN) {
    Tensor g = (r == at::native::ReductionType::MEAN ? grad.div(row_counts(self, grad)) : grad).index_select(0, rows);
    if (wanted[0]) grad_self = compressed(self, g.mul(weight.index_select(0, cols)).sum(1));
    if (wanted[1]) grad_other = at::zeros_like(weight).index_add(0, cols, g.mul(values.unsqueeze(1)));
  } else {  // each result has one entry that made it
    TORCH_CHECK(which.sizes() == grad.sizes(), "sparse_mm_reduce: the forward call kept no positions: no argument required a gradient");
    Tensor is_any = which.lt(nnz), k = at::where(is_any, which, 0).reshape(-1);
    Tensor g = at::where(is_any, grad, at::zeros({}, grad.options())), col = cols.index_select(0, k).reshape(which.sizes());
    if (wanted[0]) grad_self = compressed(self, at::zeros_like(values).index_add(0, k, weight.gather(0, col).mul(g).reshape(-1)));
    if (wanted[1]) grad_other = at::zeros_like(weight).scatter_add(0, col, values.index_select(0, k).reshape(which.sizes()).mul(g));
  }
  return {grad_self, grad_other};
}

// beta * self + alpha * (mat1 @ mat2) at self's positions.
Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  TORCH_CHECK(self.layout() == at::kSparseCsr, "sampled_addmm: Expected result to have sparse csr layout, but got ", self.layout());
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(), "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got ",
              mat1.scalar_type(), " and ", mat2.scalar_type());
  TORCH_CHECK(mat1.scalar_type() == self.scalar_type(), "sampled_addmm: Expected mat1 and self to have the same dtype, but got ",
              mat1.scalar_type(), " and ", self.scalar_type());
  TORCH_CHECK(self.dim() == 2 && mat1.dim() == 2 && mat2.dim() == 2, "sampled_addmm: batches are not on the tpu device yet");
  TORCH_CHECK(mat1.size(1) == mat2.size(0), "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x", mat1.size(1),
              " and ", mat2.size(0), "x", mat2.size(1), ")");
  TORCH_CHECK(self.size(0) == mat1.size(0), "sampled_addmm: self.shape[-2] must match mat1.shape[-2]");
  TORCH_CHECK(self.size(1) == mat2.size(1), "sampled_addmm: self.shape[-1] must match mat2.shape[-1]");
  auto [rows, cols, values] = entries(self);
  Tensor products = mat1.index_select(0, rows).mul(mat2.t().index_select(0, cols)).sum(1).mul(alpha);
  return compressed(self, beta.equal(0) ? products : values.mul(beta).add(products));
}

Tensor& sampled_addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  return into<&sampled_addmm, const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&>(self, mat1, mat2, beta, alpha, out);
}

// ---------------------------------------------------------------- compressed layouts
Tensor coo_to_csr(const Tensor& self, int64_t size, bool out_int32) {
  return at::searchsorted(self, at::arange(size + 1, self.options()), out_int32);
}

Tensor csr_to_coo(const Tensor& crow, const Tensor& col, bool out_int32, bool transpose) {
  auto type = out_int32 ? at::kInt : at::kLong;
  TORCH_CHECK(crow.dim() == 1, "batched compressed tensors are not on the tpu device yet; use .to_dense() or the CPU");
  Tensor which = at::searchsorted(crow, at::arange(col.size(0), crow.options()), true, true).sub(1).to(type);
  return transpose ? at::stack({col.to(type), which}) : at::stack({which, col.to(type)});
}

// What has no composition here goes to the CPU's kernel, announced; from inside one that has a composition for some layouts.
template <class R, class... A>
R on_cpu_typed(const char* name, const char* overload, A... args) {
  auto h = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  torch::jit::Stack stack;
  torch::jit::push(stack, args...);
  on_cpu<DispatchKey::SparseCsrCPU>(h, {}, &stack);
  return stack.back().to<R>();
}

bool is_compressed(const Tensor& t) { return at::sparse_csr::is_sparse_compressed(t); }

// The elements of a dense matrix at these positions.
Tensor picked(const Tensor& dense, const Tensor& rows, const Tensor& cols) {
  return dense.reshape(-1).index_select(0, rows.mul(dense.size(1)).add(cols));
}

Tensor compressed_mul(const Tensor& self, const Tensor& other) {
  if (!is_compressed(self)) return at::mul(other, self);
  if (is_number(other)) return compressed(self, self.values().mul(other));
  if (self.layout() == at::kSparseCsr && self.dim() == 2 && other.layout() == at::kStrided && other.sizes() == self.sizes()) {
    auto [rows, cols, values] = entries(self);
    return compressed(self, values.mul(picked(other, rows, cols)));
  }
  return on_cpu_typed<Tensor>("aten::mul", "Tensor", self, other);
}
Tensor compressed_mul_number(const Tensor& self, const Scalar& other) { return compressed(self, self.values().mul(other)); }

Tensor compressed_add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (self.layout() == at::kStrided) return self.add(other.to_dense(), alpha);
  if (other.layout() == at::kStrided) return self.to_dense().add(other, alpha);
  return on_cpu_typed<Tensor>("aten::add", "Tensor", self, other, alpha);
}

Tensor sum_of_values(const Tensor& self, std::optional<at::ScalarType> dtype) {
  return (is_compressed(self) ? self.values() : self._values()).sum(dtype);
}

Tensor compressed_mask(const Tensor& self, const Tensor& mask) {
  if (self.layout() == at::kSparseCsr && mask.layout() == at::kSparseCsr && self.sizes() == mask.sizes() &&
      self.crow_indices().equal(mask.crow_indices()) && self.col_indices().equal(mask.col_indices()))
    return self.clone();  // a gradient at the positions of what it is of
  if (self.layout() != at::kStrided || mask.layout() != at::kSparseCsr || mask.dim() != 2 || self.sizes() != mask.sizes())
    return on_cpu_typed<Tensor>("aten::sparse_mask", "", self, mask);
  auto [rows, cols, values] = entries(mask);
  return compressed(mask, picked(self, rows, cols));
}

void validate_compressed(bool is_crow, const Tensor& compressed, const Tensor& plain, int64_t cdim, int64_t dim, int64_t nnz) {
  at::_validate_compressed_sparse_indices(is_crow, compressed.cpu(), plain.cpu(), cdim, dim, nnz);
}

// ---------------------------------------------------------------- registration
// Of the values alone, in their place too: 0 stays 0.
const char* const k_of_values[] = {
    "abs", "neg", "sqrt", "sin", "tan", "tanh", "relu", "sgn", "sign", "signbit", "expm1", "log1p", "floor", "ceil", "round", "trunc", "frac",
    "asin", "asinh", "atan", "atanh", "sinh", "erf", "erfinv", "isnan", "isinf", "isposinf", "isneginf", "deg2rad", "rad2deg", "conj_physical",
    "_conj_physical", "threshold_backward",
};
const char* const k_coo_without_device[] = {
    "_sparse_coo_tensor_with_dims", "_coalesced_", "_dimI", "_dimV", "_indices",
    "_values", "_nnz", "dense_dim", "sparse_dim", "indices", "values", "is_coalesced", "empty", "empty_like", "clone", "copy_",
    "copy_sparse_to_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_", "zero_", "_to_dense",
    "_to_sparse", "_to_sparse_csr", "_to_sparse_csc", "unsqueeze", "permute", "_sparse_sum_backward", "any", "cat", "nan_to_num", "pow",
};
const char* const k_compressed_without_device[] = {
    "crow_indices", "col_indices", "ccol_indices", "row_indices", "values", "_nnz", "dense_dim", "sparse_dim", "clone", "copy_",
    "empty", "empty_like", "resize_", "_to_dense", "_to_sparse", "_to_sparse_csr", "_to_sparse_csc", "zero_",
};
const char* const k_dense_without_device[] = {"_to_sparse", "_to_sparse_csr", "_to_sparse_csc"};

void forward(const c10::OperatorHandle& h, DispatchKey from, DispatchKey to, const c10::KernelFunction& kernel) {
  static auto* handles = new std::vector<c10::RegistrationHandleRAII>;
  if (!h.hasKernelForDispatchKey(from) || h.hasKernelForDispatchKey(to)) return;
  handles->push_back(c10::Dispatcher::singleton().registerImpl(h.operator_name(), to, kernel, std::nullopt, nullptr, "torch_tpu"));
}

template <size_t kN>
void forward(const char* const (&names)[kN], DispatchKey from, DispatchKey to, const c10::KernelFunction& kernel, bool in_place = false) {
  for (const char* name : names) {
    const std::string full = std::string("aten::") + name;
    for (const auto& h : overloads_of(full)) forward(h, from, to, kernel);
    if (!in_place) continue;
    for (const auto& h : overloads_of(full + "_")) forward(h, from, to, kernel);
  }
}

// Every other op that PyTorch wrote for a layout. Without a kernel of its own for our key, one that is also composed of other
// ops would take that composition, which knows strided tensors only.
template <DispatchKey kFrom>
void rest_on_cpu(DispatchKey to) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getRegistrationsForDispatchKey(kFrom)) {
    if (name.name == "aten::is_pinned" || name.name == "aten::_pin_memory") continue;  // questions about the CPU's memory
    if (auto h = dispatcher.findSchema(name)) forward(*h, kFrom, to, c10::KernelFunction::makeFromBoxedFunction<&on_cpu<kFrom>>());
  }
}

}  // namespace

void register_sparse() {
  const auto coo = forwarder<DispatchKey::SparseCPU>(), compressed = forwarder<DispatchKey::SparseCsrCPU>();
  forward(k_coo_without_device, DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1, coo);
  forward(k_of_values, DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1, coo, true);
  forward(k_compressed_without_device, DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrPrivateUse1, compressed);
  forward(k_of_values, DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrPrivateUse1, compressed, true);
  forward(k_dense_without_device, DispatchKey::CPU, DispatchKey::PrivateUse1, forwarder<DispatchKey::CPU>());
  rest_on_cpu<DispatchKey::SparseCPU>(DispatchKey::SparsePrivateUse1);
  rest_on_cpu<DispatchKey::SparseCsrCPU>(DispatchKey::SparseCsrPrivateUse1);
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu<DispatchKey::SparseCPU>>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu<DispatchKey::SparseCsrCPU>>()); }

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", torch::CppFunction::makeFromBoxedFunction<&new_coo>());
  m.impl("_coalesce", TORCH_FN(coalesce));
  m.impl("add.Tensor", TORCH_FN(add));
  m.impl("add_.Tensor", TORCH_FN(add_));
  m.impl("sub.Tensor", TORCH_FN(sub));
  m.impl("mul.Tensor", TORCH_FN(mul));
  m.impl("mul_.Tensor", TORCH_FN(mul_));
  m.impl("div.Tensor", TORCH_FN(div));
  m.impl("sum", TORCH_FN(sum_of_values));
  m.impl("sparse_mask", TORCH_FN(sparse_mask));
  m.impl("addmm", TORCH_FN(addmm));
  m.impl("addmm_", TORCH_FN(addmm_));
  m.impl("addmm.out", TORCH_FN(addmm_out));
  m.impl("mm", TORCH_FN(mm));
  m.impl("mm.out", TORCH_FN(mm_out));
  m.impl("mv", TORCH_FN(mv));
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("mul.Tensor", TORCH_FN(compressed_mul));
  m.impl("mul.Scalar", TORCH_FN(compressed_mul_number));
  m.impl("mul_.Tensor", TORCH_FN(mul_));
  m.impl("add.Tensor", TORCH_FN(compressed_add));
  m.impl("sum", TORCH_FN(sum_of_values));
  m.impl("sparse_mask", TORCH_FN(compressed_mask));
  m.impl("_sparse_mm_reduce_impl", TORCH_FN(mm_reduce));
  m.impl("_sparse_mm_reduce_impl_backward", TORCH_FN(mm_reduce_backward));
  m.impl("sparse_sampled_addmm", TORCH_FN(sampled_addmm));
  m.impl("sparse_sampled_addmm.out", TORCH_FN(sampled_addmm_out));
  m.impl("addmm", TORCH_FN(addmm));
  m.impl("addmm.out", TORCH_FN(addmm_out));
  m.impl("mm", TORCH_FN(mm));
  m.impl("mm.out", TORCH_FN(mm_out));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_to_sparse.sparse_dim", TORCH_FN(to_sparse_dim));
  m.impl("_convert_indices_from_coo_to_csr", TORCH_FN(coo_to_csr));
  m.impl("_convert_indices_from_csr_to_coo", TORCH_FN(csr_to_coo));
  m.impl("_validate_compressed_sparse_indices", TORCH_FN(validate_compressed));
}

}  // namespace tt
