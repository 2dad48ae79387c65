// The boxed kernel of every op: pack, dispatch, unpack; and the callback that asks PyTorch's meta kernels.
#include <algorithm>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <torch/csrc/Exceptions.h>

#include "shim.h"

namespace tt {

// ---------------------------------------------------------------- results
namespace {
thread_local tt_results_t t_results{};
thread_local bool t_results_busy = false;
struct ThreadResults {
  ~ThreadResults() { tt_results_free(&t_results); }
};
thread_local ThreadResults t_free_results;
}  // namespace

Results::Results() {
  if (t_results_busy) {
    results_ = &own_;
  } else {
    (void)&t_free_results;
    t_results_busy = true;
    results_ = &t_results;
  }
  results_->n = 0;
  results_->must_resize = false;
  results_->n_resize = 0;
}

Results::~Results() {
  for (int i = 0; i < results_->n; i++) tt_storage_release(results_->items[i].storage);
  results_->n = 0;
  if (results_ == &own_) {
    tt_results_free(&own_);
  } else {
    t_results_busy = false;
  }
}

static at::Tensor take_result(tt_result_t* r, int device) {
  const tt_meta_t& m = *r->meta;
  if (!m.defined) return at::Tensor();
  tt_storage_t* storage = r->storage;
  r->storage = nullptr;
  c10::IntArrayRef sizes(m.sizes, static_cast<size_t>(m.rank)), strides(m.strides, static_cast<size_t>(m.rank));
  if (C10_LIKELY(r->true_size < 0)) return tensor_of(storage, m.dtype, sizes, strides, device);
  // The padded strides say in which order the dims lie; the true ones follow from the true sizes.
  c10::SmallVector<int64_t, 8> true_sizes(sizes.begin(), sizes.end()), true_strides(strides.begin(), strides.end());
  if (!true_sizes.empty()) true_sizes[static_cast<size_t>(m.sized_dim)] = r->true_size;
  c10::SmallVector<size_t, 8> order;
  for (size_t d = 0; d < true_sizes.size(); d++) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return strides[x] > strides[y]; });
  int64_t step = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    true_strides[*d] = step;
    step *= std::max<int64_t>(true_sizes[*d], 1);
  }
  return tensor_of(storage, m.dtype, true_sizes, true_strides, device);
}

std::vector<at::Tensor> take_results(tt_results_t* results, int device) {
  std::vector<at::Tensor> out;
  out.reserve(static_cast<size_t>(results->n));
  for (int i = 0; i < results->n; i++) out.push_back(take_result(&results->items[i], device));
  return out;
}

// ---------------------------------------------------------------- inference through the meta kernels
namespace {

// Meta twins of real tensors; twins of tensors that share storage share one too, so that overlap is seen.
class MetaTwins {
 public:
  at::Tensor of(const at::Tensor& t) {
    if (!t.defined()) return t;
    const c10::TensorImpl* impl = t.unsafeGetTensorImpl();
    // A Python number stays on the CPU, as PyTorch's own meta calls have it; kernels written in Python insist on that.
    if (impl->is_wrapped_number()) return t;
    auto twin = at::detail::make_tensor<c10::TensorImpl>(storage(impl->unsafe_storage()),
                                                        c10::DispatchKeySet(c10::DispatchKey::Meta), impl->dtype());
    c10::TensorImpl* m = twin.unsafeGetTensorImpl();
    m->set_sizes_and_strides(impl->sizes(), impl->strides(), impl->storage_offset());
    if (impl->is_conj()) twin._set_conj(true);
    if (impl->is_neg()) twin._set_neg(true);
    return twin;
  }

 private:
  c10::Storage storage(const c10::Storage& real) {
    const void* key = real ? real.unsafeGetStorageImpl() : nullptr;
    if (key != nullptr) {
      for (auto& [k, s] : made_) {
        if (k == key) return s;
      }
    }
    c10::Storage s = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), real ? real.nbytes() : 0,
                                                           c10::GetAllocator(c10::kMeta), true);
    made_.emplace_back(key, s);
    return s;
  }
  c10::SmallVector<std::pair<const void*, c10::Storage>, 4> made_;
};

c10::IValue meta_value(const c10::IValue& v, Kind kind, const c10::TypePtr& type, MetaTwins& twins) {
  if (kind == Kind::Device) return c10::IValue(c10::Device(c10::kMeta));
  if (kind == Kind::Generator) return c10::IValue();
  if (v.isNone()) return v;
  if (kind == Kind::Tensor) return twins.of(v.toTensor());
  if (kind != Kind::Tensors) return v;
  if (v.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const auto& e : v.toListRef()) list.push_back(twins.of(e.toTensor()));
    return list;
  }
  c10::List<std::optional<at::Tensor>> list;
  for (const auto& e : v.toListRef()) {
    list.push_back(e.isNone() ? std::optional<at::Tensor>() : std::optional<at::Tensor>(twins.of(e.toTensor())));
  }
  return list;
}

// Drops PyTorch's word about resized outputs while shapes are being asked: the real resize says it.
class QuietResize : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("An output with one or more elements was resized") != std::string::npos) return;
    outer_->process(warning);
  }
  c10::WarningHandler* outer_ = c10::WarningUtils::get_warning_handler();
};

// Shapes are asked below autograd, and outside any torch function mode (a default device would redirect factories).
class InferScope {
 public:
  InferScope() : mode_(at::impl::PythonTorchFunctionTLS::get_disabled_state()), handler_(&quiet_) {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  ~InferScope() { at::impl::PythonTorchFunctionTLS::set_disabled_state(mode_); }

 private:
  at::impl::TorchFunctionDisabledState mode_;
  QuietResize quiet_;
  c10::WarningUtils::WarningHandlerGuard handler_;
  at::AutoDispatchBelowADInplaceOrView guard_;
};

}  // namespace

void push_meta(void* sink, const at::Tensor& t) {
  tt_meta_t meta;
  meta.defined = t.defined();
  meta.sized_dim = 0;
  meta.rank = 0;
  meta.dtype = TT_DT_NONE;
  if (t.defined()) {
    TORCH_CHECK(t.dim() <= TT_MAX_RANK, "the tpu device supports tensors of up to ", TT_MAX_RANK, " dimensions, got ", t.dim());
    meta.rank = static_cast<int32_t>(t.dim());
    meta.dtype = dtype_of(t.scalar_type());
    for (int64_t i = 0; i < t.dim(); i++) {
      meta.sizes[i] = t.size(i);
      meta.strides[i] = t.stride(i);
    }
  }
  TORCH_CHECK(tt_metas_push(sink, &meta), "host memory is exhausted");
}

torch::jit::Stack meta_arguments(const Call& call, bool for_trace) {
  const Overload& o = call.overload;
  const auto& arguments = o.handle.schema().arguments();
  MetaTwins twins;
  torch::jit::Stack stack;
  if (for_trace) {
    for (int i = 0; i < o.n_args - o.n_outs; i++) {
      if (o.at[i] < 0) {
        stack.emplace_back();
      } else {
        stack.push_back(meta_value(call.arg(o.at[i]), o.kinds[i], arguments[static_cast<size_t>(o.at[i])].real_type(), twins));
      }
    }
    return stack;
  }
  for (int i = 0; i < o.n_schema_args; i++) {
    const auto& type = arguments[static_cast<size_t>(i)].real_type();
    stack.push_back(meta_value(call.arg(i), kind_of(type), type, twins));
  }
  return stack;
}

static void push_meta_value(void* sink, const c10::IValue& v) {
  if (v.isTensor()) {
    push_meta(sink, v.toTensor());
  } else if (v.isList()) {
    for (const auto& e : v.toListRef()) push_meta(sink, e.isNone() ? at::Tensor() : e.toTensor());
  } else if (v.isNone()) {
    push_meta(sink, at::Tensor());
  } else if (!v.isInt()) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "an op that returns no tensor");
  }
}

// What an out= call's functional sibling gives, and whether the outputs have those shapes already.
struct Wanted {
  std::vector<at::Tensor> metas;  // with the outputs' own dtypes, which are kept
  bool known = false, fits = false;
};

static void flatten(const c10::IValue& v, std::vector<at::Tensor>* out) {
  if (v.isTensor()) {
    out->push_back(v.toTensor());
  } else if (v.isList()) {
    for (const auto& e : v.toListRef()) out->push_back(e.isNone() ? at::Tensor() : e.toTensor());
  }
}

static const at::Tensor& tensor_in(const at::Tensor& t) { return t; }
static const at::Tensor& tensor_in(const c10::IValue& v) { return v.toTensor(); }

// In eval mode PyTorch's kernels save no statistics; its meta kernel says they do. |saved|: result i of the call.
template <class Saved>
static void save_nothing_in_eval(const Call& call, Saved saved) {
  const Overload& o = call.overload;
  bool legit = o.row == "_native_batch_norm_legit", no_stats = o.row == "_native_batch_norm_legit.no_stats";
  if (!legit && !no_stats && o.row != "native_batch_norm" && o.row != "_native_batch_norm_legit_functional") return;
  if (no_stats || call.arg(5).toBool()) return;
  for (int i = 1; i < 3; i++) {
    const at::Tensor t = tensor_in(saved(i));
    if (t.defined()) saved(i) = at::empty({0}, t.options());
  }
}

static void infer_wanted(const Call& call, Wanted* wanted) {
  const Overload& o = call.overload;
  torch::jit::Stack stack = meta_arguments(call, true);
  o.functional->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  std::vector<at::Tensor> outs;
  for (const auto& v : stack) flatten(v, &wanted->metas);
  save_nothing_in_eval(call, [&](int i) -> at::Tensor& { return wanted->metas[static_cast<size_t>(i)]; });
  for (int i = o.n_schema_args - o.n_outs; i < o.n_schema_args; i++) flatten(call.arg(i), &outs);
  wanted->known = wanted->metas.size() == outs.size();
  wanted->fits = true;
  for (size_t i = 0; wanted->known && i < outs.size(); i++) {
    at::Tensor& w = wanted->metas[i];
    if (!w.defined() || !outs[i].defined()) continue;
    wanted->fits &= outs[i].sizes() == w.sizes();
    w = at::empty_strided(w.sizes(), w.strides(), w.options().dtype(outs[i].scalar_type()).device(at::kMeta));
  }
}

// Which out= kernels give an output that they resize the strides they would give a result of their own.
static bool resizes_as_result(const Overload& o) { return o.row.find("linalg") != std::string::npos || o.row == "geqrf"; }

// The meta kernels of these give outputs that they resize rows, the CPU's give columns as in a result of its own; that
// of svd knows better than the functional form.
static bool meta_loses_strides(const Overload& o) { return resizes_as_result(o) && o.row != "_linalg_svd"; }

static const char k_no_meta[] = "PyTorch has no meta kernel that says what its results are";

static bool is_not_implemented(PyObject* type) {
  pybind11::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_NotImplementedError) != 0;
}

static void keep_error(Call& call) {
  call.error = std::current_exception();
  try {
    InferScope scope;
    raise_in_cpu_words(call);
  } catch (const c10::NotImplementedError&) {
  } catch (const c10::Error&) {
    call.error = std::current_exception();
  } catch (const std::runtime_error&) {  // a number that overflows
    call.error = std::current_exception();
  } catch (...) {
  }
}

// Where a lowering has no form for the dtypes, or cannot make sense of the shapes, and the CPU's kernel cannot either, the
// CPU's words are thrown.
static void prefer_cpu_words(const Call& call) {
  InferScope scope;
  try {
    raise_in_cpu_words(call);
  } catch (const c10::Error& e) {
    if (speaks_of_the_backend(e)) return;
    throw;
  }
}

// Real backends give convolutions the memory format of their input or weight, and unpooling that of its input; the meta
// kernels, which ask for none of the real devices, give rows.
static void keep_channels_last(const Call& call, torch::jit::Stack* results) {
  const Overload& o = call.overload;
  bool convolution = o.row.find("convolution") != std::string::npos;
  if (!convolution && o.row.compare(0, 10, "max_unpool") != 0) return;
  int input = o.row.find("backward") != std::string::npos ? 1 : 0;
  if (o.n_schema_args < input + 2 || !call.arg(input).isTensor() || !call.arg(input + 1).isTensor()) return;
  c10::MemoryFormat format = call.arg(input).toTensor().suggest_memory_format();
  if (convolution && format == c10::MemoryFormat::Contiguous) format = call.arg(input + 1).toTensor().suggest_memory_format();
  if (format != c10::MemoryFormat::ChannelsLast && format != c10::MemoryFormat::ChannelsLast3d) return;
  int64_t rank = format == c10::MemoryFormat::ChannelsLast ? 4 : 5;
  for (auto v = results->end() - static_cast<int64_t>(o.returns.size()); v != results->end(); ++v) {
    if (v->isTensor() && v->toTensor().defined() && v->toTensor().dim() == rank) {
      v->toTensor().unsafeGetTensorImpl()->empty_tensor_restride(format);
    }
  }
}

tt_status_t infer(void* p, const tt_op_t*, void* sink) {
  Call& call = *static_cast<Call*>(p);
  const Overload& o = call.overload;
  Wanted wanted;
  auto push_wanted = [&] {
    for (const auto& t : wanted.metas) push_meta(sink, t);
    return tt_status_t{nullptr};
  };
  auto unimplemented = [&] { return wanted.known ? push_wanted() : tt_status_create(TT_DECLINED, k_no_meta); };
  try {
    InferScope scope;
    raise_if_cpu_refuses_dtypes(call);
  } catch (...) {
    call.error = std::current_exception();
    return tt_status_create(TT_CANCELLED, "raised by the CPU's kernel");
  }
  if (sink == nullptr) return nullptr;
  try {
    InferScope scope;
    if (o.variant == TT_OUT && o.functional) {
      infer_wanted(call, &wanted);
    }
    if (wanted.known && !wanted.fits && meta_loses_strides(o)) return push_wanted();
    torch::jit::Stack stack = meta_arguments(call, false);
    if (wanted.known && !wanted.fits) {
      // Empty outputs in place of those that do not fit: it resizes them as it likes, and nobody warns of it.
      for (auto v = stack.end() - o.n_outs; v != stack.end(); ++v) {
        if (!v->isTensor() || !v->toTensor().defined()) return push_wanted();
        *v = at::empty({0}, v->toTensor().options());
      }
    }
    torch::jit::Stack outs;
    if (o.variant == TT_OUT) outs.assign(stack.end() - o.n_outs, stack.end());
    o.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
    if (o.variant == TT_OUT) {
      save_nothing_in_eval(call, [&](int i) -> c10::IValue& { return outs[static_cast<size_t>(i)]; });
      for (const auto& v : outs) push_meta_value(sink, v);
      return nullptr;
    }
    keep_channels_last(call, &stack);
    auto first = stack.end() - static_cast<int64_t>(o.returns.size());
    save_nothing_in_eval(call, [&](int i) -> c10::IValue& { return *(first + i); });
    for (size_t i = 0; i < o.returns.size(); i++) {
      if (o.returns[i] == kFresh) push_meta_value(sink, stack[stack.size() - o.returns.size() + i]);
    }
    return nullptr;
  } catch (const c10::NotImplementedError&) {
    return unimplemented();
  } catch (python_error& e) {
    if (is_not_implemented(e.type)) return unimplemented();
    keep_error(call);
  } catch (pybind11::error_already_set& e) {
    if (is_not_implemented(e.type().ptr())) return unimplemented();
    keep_error(call);
  } catch (...) {
    keep_error(call);
  }
  return tt_status_create(TT_CANCELLED, "raised by the meta kernel");
}

// ---------------------------------------------------------------- index arguments
namespace {

// As PyTorch's own index kernels: masks become index tensors, host tensors move. True when the op is done.
bool prepare_indices(Overload& o, Call& call) {
  c10::IValue& v = call.arg(o.indices_arg);
  const c10::IValue& self_value = call.arg(0);
  if (!v.isList() || !self_value.isTensor()) return false;
  const at::Tensor& self = self_value.toTensor();
  bool change = false, mask = false;
  for (const auto& e : v.toListRef()) {
    if (e.isNone() || !e.toTensor().defined()) continue;
    const at::Tensor& t = e.toTensor();
    bool is_mask = t.scalar_type() == at::kBool || t.scalar_type() == at::kByte;
    mask |= is_mask;
    change |= is_mask || t.device() != self.device();
  }
  if (!change || !self.defined() || self.device().type() != kTpu) return false;
  c10::List<std::optional<at::Tensor>> list;
  for (const auto& e : v.toListRef()) {
    if (e.isNone() || !e.toTensor().defined()) {
      list.push_back(std::nullopt);
    } else {
      const at::Tensor& t = e.toTensor();
      if (t.device() != self.device() && t.device().type() != c10::kCPU) raise_two_devices(self.device(), t.device());
      list.push_back(t.to(self.device()));
    }
  }
  if (mask && o.variant == TT_INPLACE && o.n_schema_args >= 3 && call.arg(2).isTensor()) {
    // x[mask] = number: one select, no index is ever made.
    const at::Tensor& values = call.arg(2).toTensor();
    bool accumulate = o.n_schema_args >= 4 && call.arg(3).isBool() && call.arg(3).toBool();
    if (!accumulate && values.numel() == 1) {
      auto [can, where] = at::native::canDispatchToMaskedFill(self, list, at::empty({1}, at::kCPU));
      if (can) {
        at::Tensor out = self;
        out.masked_fill_(where, values.reshape({}).to(self.scalar_type()));
        return true;
      }
    }
  }
  if (mask) {
    at::native::checkIndexTensorTypes(list, true);
    std::vector<at::Tensor> expanded = at::native::expandTensors(self, list, true);
    list.clear();
    for (auto& t : expanded) list.push_back(t.defined() ? std::optional<at::Tensor>(t) : std::nullopt);
  }
  v = list;
  return false;
}

void return_results(Overload& o, Call& call, tt_results_t* results, torch::jit::Stack* stack) {
  // Fast path: one fresh tensor.
  if (o.returns.size() == 1 && o.returns[0] == kFresh && !o.return_is_list[0]) {
    TORCH_INTERNAL_ASSERT(results->n == 1, o.name(), ": one result expected, got ", results->n);
    at::Tensor out = take_result(&results->items[0], call.device);
    torch::jit::drop(*stack, static_cast<size_t>(o.n_schema_args));
    stack->emplace_back(std::move(out));
    return;
  }
  int fresh = 0;
  for (size_t i = 0; i < o.returns.size(); i++) fresh += o.returns[i] == kFresh && !o.return_is_list[i] && o.return_length_of[i] < 0;
  c10::SmallVector<c10::IValue, 4> out;
  int next = 0;
  for (size_t i = 0; i < o.returns.size(); i++) {
    if (o.returns[i] != kFresh) {
      out.push_back(call.arg(o.returns[i]));
    } else if (o.return_length_of[i] >= 0) {
      out.emplace_back(call.arg(o.return_length_of[i]).toTensor().size(-2));
    } else if (o.return_is_list[i]) {
      c10::List<at::Tensor> list;
      for (int n = results->n - fresh; n > 0 && next < results->n; n--) list.push_back(take_result(&results->items[next++], call.device));
      out.emplace_back(std::move(list));
    } else {
      TORCH_INTERNAL_ASSERT(next < results->n, o.name(), ": too few results");
      out.emplace_back(take_result(&results->items[next++], call.device));
    }
  }
  torch::jit::drop(*stack, static_cast<size_t>(o.n_schema_args));
  for (auto& v : out) stack->push_back(std::move(v));
}

void resize_outs(Overload& o, Call& call, tt_results_t* results) {
  std::vector<tt_meta_t> wanted(results->resize_to, results->resize_to + results->n_resize);
  int k = 0;
  for (int i = 0; i < o.n_outs; i++) {
    const c10::IValue& v = call.arg(o.n_schema_args - o.n_outs + i);
    auto one = [&](const at::Tensor& t) {
      const tt_meta_t& m = wanted[static_cast<size_t>(k++)];
      c10::IntArrayRef sizes(m.sizes, static_cast<size_t>(m.rank)), strides(m.strides, static_cast<size_t>(m.rank));
      if (t.defined() && at::native::resize_output(t, sizes)) t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    };
    if (v.isTensor()) {
      one(v.toTensor());
    } else {
      for (const auto& e : v.toListRef()) one(e.toTensor());
    }
  }
}

// out= of an op whose result's size no meta kernel says: the functional form, then a copy into what the caller gave.
void out_through_functional(Overload& o, torch::jit::Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  auto first = stack->end() - o.n_schema_args, outs = stack->end() - o.n_outs;
  torch::jit::Stack inner(first, outs);
  o.functional->callBoxed(&inner);
  torch::jit::Stack given(outs, stack->end());
  for (size_t i = 0; i < given.size() && i < inner.size(); i++) {
    const at::Tensor &out = given[i].toTensor(), &result = inner[i].toTensor();
    TORCH_CHECK(at::can_cast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
                " can't be cast to the desired output type ", out.scalar_type());
    if (at::native::resize_output(out, result.sizes()) && resizes_as_result(o)) {
      at::Tensor like = at::empty_like(result, result.options().device(at::kMeta));  // without holes
      out.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
    }
    out.copy_(result);
  }
  torch::jit::drop(*stack, static_cast<size_t>(o.n_schema_args));
  for (auto& v : given) stack->push_back(std::move(v));
}

}  // namespace

// ---------------------------------------------------------------- the kernel
void run(Overload& o, torch::jit::Stack* stack) {
  Leaving leaving;
  ensure_open();
  follow_settings();
  if (C10_UNLIKELY(o.variant == TT_OUT) && o.functional.has_value() && o.sized_late) {
    out_through_functional(o, stack);
    return;
  }
  Call call(o, stack);
  if (C10_UNLIKELY(o.is_view)) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, o.name(), " is a view operation that the tpu device does not have");
  }
  if (C10_UNLIKELY(o.indices_arg >= 0) && prepare_indices(o, call)) {
    c10::IValue self = call.arg(0);
    torch::jit::drop(*stack, static_cast<size_t>(o.n_schema_args));
    stack->push_back(std::move(self));
    return;
  }
  for (int attempt = 0;; attempt++) {
    call.pack();
    if (C10_UNLIKELY(call.host != nullptr) && (call.host_written || !o.takes_host)) {
      raise_two_devices(c10::Device(kTpu, static_cast<c10::DeviceIndex>(call.device)), call.host->device());
    }
    if (C10_UNLIKELY(o.has_numbers) && C10_UNLIKELY(numbers_may_not_fit(call))) {
      InferScope scope;
      raise_if_a_number_does_not_fit(call);
    }
    if (C10_UNLIKELY(call.lazy_written)) {
      run_on_cpu(o, stack, "it writes to a tensor whose conjugate or negative bit is set");
      return;
    }
    Results results;
    tt_status_t status = tt_dispatch(o.op, call.device, call.values, &call, results.get());
    if (C10_UNLIKELY(call.error != nullptr)) {
      tt_status_free(status);
      std::rethrow_exception(call.error);
    }
    if (C10_UNLIKELY(status != nullptr)) {
      tt_code_t code = tt_status_code(status);
      if (code == TT_UNIMPLEMENTED || code == TT_INVALID_ARGUMENT) prefer_cpu_words(call);
      if (tt_status_code(status) != TT_DECLINED) raise(status);
      std::string reason = tt_status_message(status);
      tt_status_free(status);
      run_on_cpu(o, stack, reason.c_str());
      return;
    }
    if (C10_UNLIKELY(results.get()->must_resize) && attempt == 0) {
      resize_outs(o, call, results.get());
      continue;
    }
    return_results(o, call, results.get(), stack);
    return;
  }
}

}  // namespace tt
