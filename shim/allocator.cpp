// Memory: PyTorch's device allocator over the core's storages, factories, resizing, and the view kernels.
//
// A data pointer of the device is an address that nobody may dereference; the core's storage travels as the context of
// the DataPtr.
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/Resize.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "shim.h"

namespace tt {

void storage_deleter(void* context) { tt_storage_release(static_cast<tt_storage_t*>(context)); }

void raise_foreign_storage() {
  TORCH_CHECK(false, "this tensor's memory does not belong to torch_tpu, whose tensors cannot be made from addresses");
}

static c10::Device device_at(int index) { return c10::Device(kTpu, static_cast<c10::DeviceIndex>(index)); }

static c10::DataPtr data_of(tt_storage_t* storage, int device) {
  return c10::DataPtr(tt_storage_address(storage), storage, &storage_deleter, device_at(device));
}

namespace {

struct TpuAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t n) override {
    ensure_open();
    int device = current_device();
    if (n == 0) return c10::DataPtr(nullptr, nullptr, &storage_deleter, device_at(device));
    tt_storage_t* storage = nullptr;
    ok(tt_storage_create(device, n, &storage));
    return data_of(storage, device);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "memory of the tpu device has no address that could be copied from");
  }
  bool initialized() override { return g_open.load(); }
  void emptyCache(c10::MempoolId_t) override {}  // nothing is kept back: a freed buffer goes to the plugin at once
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    tt_memory_stats_t m{};
    if (g_open.load()) {
      ok(tt_defer_run("memory statistics"));
      tt_memory_stats(device, &m);
    }
    c10::CachingDeviceAllocator::DeviceStats out;
    auto bytes = [&](auto& stat) {
      auto& s = stat[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
      s.current = m.allocated;
      s.peak = m.peak_allocated;
      s.allocated = m.total_allocated;
      s.freed = m.total_freed;
    };
    bytes(out.allocated_bytes);
    bytes(out.reserved_bytes);
    bytes(out.active_bytes);
    bytes(out.requested_bytes);
    auto counts = [&](auto& stat) {
      auto& s = stat[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
      s.current = m.live_storages;
      s.peak = m.live_storages;
      s.allocated = m.allocations;
      s.freed = m.frees;
    };
    counts(out.allocation);
    counts(out.active);
    counts(out.segment);
    out.num_device_alloc = m.allocations;
    out.num_device_free = m.frees;
    out.num_ooms = m.oom_count;
    return out;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    if (g_open.load()) tt_memory_reset_accumulated(device);
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    if (!g_open.load()) return;
    ok(tt_defer_run("memory statistics"));
    tt_memory_reset_peak(device);
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    ensure_open();
    int64_t free = 0, total = 0;
    ok(tt_device_mem_info(device, &free, &total));
    return {static_cast<size_t>(free), static_cast<size_t>(total)};
  }
};

TpuAllocator& the_allocator() {
  static TpuAllocator* instance = new TpuAllocator;
  return *instance;
}

const bool k_registered = [] {
  c10::SetAllocator(kTpu, &the_allocator());
  return true;
}();

// Makes |device| current while in scope, without any check.
class Here {
 public:
  explicit Here(c10::Device device) : before_(current_device()) {
    if (device.index() != before_) set_current_device(device.index());
  }
  ~Here() {
    if (current_device() != before_) set_current_device(before_);
  }

 private:
  int before_;
};

c10::Device check_options(std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory,
                          c10::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::Layout::Strided, "the tpu device has no tensors of layout ", *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  (void)dtype_of(dtype);
  ensure_open();
  return device_or_current(device);
}

constexpr c10::DispatchKeySet k_keys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  auto type = c10::dtype_or_default(dtype);
  Here here(check_options(layout, device, pin_memory, type));
  return at::detail::empty_generic(size, &the_allocator(), k_keys, type, format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  auto type = c10::dtype_or_default(dtype);
  Here here(check_options(layout, device, pin_memory, type));
  return at::detail::empty_strided_generic(size, stride, &the_allocator(), k_keys, type);
}

at::Tensor efficientzerotensor(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                               std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  auto type = c10::dtype_or_default(dtype);
  Here here(check_options(layout, device, pin_memory, type));
  auto keys = k_keys.add(c10::DispatchKey::ZeroTensor);
  static struct ZeroAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t) override { return c10::DataPtr(nullptr, device_at(current_device())); }
    void copy_data(void*, const void*, std::size_t) const override {}
  } zeros;
  return at::detail::empty_generic(size, &zeros, keys, type, std::nullopt);
}

// Gives |self| new geometry and, where it needs more bytes than there are, a larger storage.
void resize_impl(c10::TensorImpl* self, c10::IntArrayRef size, at::OptionalIntArrayRef stride) {
  if (self->sizes() == size && (!stride || self->strides() == *stride)) return;
  size_t nbytes = 0, item = self->dtype().itemsize();
  auto offset = static_cast<size_t>(self->storage_offset());
  if (stride) {
    self->set_sizes_and_strides(size, *stride);
    nbytes = at::detail::computeStorageNbytes(size, *stride, item, offset);
  } else {
    self->generic_set_sizes_contiguous(size);
    nbytes = at::detail::computeStorageNbytesContiguous(size, item, offset);
  }
  if (self->numel() == 0) return;
  const c10::Storage& storage = self->unsafe_storage();
  if (!storage) {
    Here here(self->device());
    self->set_storage_keep_dtype(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), nbytes, the_allocator().allocate(nbytes), &the_allocator(), true));
  } else if (nbytes > storage.nbytes()) {
    resize_storage(storage.unsafeGetStorageImpl(), nbytes);
  }
}

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
  for (int64_t n : size) {
    TORCH_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", size);
  }
  resize_impl(self.unsafeGetTensorImpl(), size, std::nullopt);
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& result, at::Storage storage, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  at::native::checkSetStorage<int64_t>(result, storage, offset, size, stride);
  result.unsafeGetTensorImpl()->set_storage_offset(offset);
  resize_impl(result.unsafeGetTensorImpl(), size, stride.data() != nullptr ? at::OptionalIntArrayRef(stride) : std::nullopt);
  return result;
}

at::Tensor& set_whole_storage(at::Tensor& result, at::Storage storage) {
  auto n = static_cast<int64_t>(storage.nbytes() / result.dtype().itemsize());
  return set_storage(result, std::move(storage), 0, {n}, {});
}

at::Tensor& set_nothing(at::Tensor& result) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, the_allocator().allocate(0), &the_allocator(), true);
  return set_storage(result, std::move(storage), 0, {0}, {});
}

at::Tensor& set_tensor(at::Tensor& result, const at::Tensor& source) {
  if (result.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return result;
  return set_storage(result, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

void record_stream(at::Tensor&, c10::Stream) {}

// Lets `module.to()` put the new data into the parameter that is there, so that parameters which are shared stay so.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  auto dense = [](const at::Tensor& t) { return t.layout() == at::kStrided && (t.device().type() == kTpu || t.is_cpu()); };
  return dense(self) && dense(from);
}

}  // namespace

c10::DeviceAllocator* allocator() { return &the_allocator(); }

void resize_storage(c10::StorageImpl* storage, size_t nbytes) {
  auto* old = static_cast<tt_storage_t*>(storage->data_ptr().get_context());
  int device = storage->device().index();
  if (old == nullptr) {
    Here here(storage->device());
    storage->set_data_ptr_noswap(the_allocator().allocate(nbytes));
  } else {
    ok(tt_storage_resize(old, nbytes));
    if (tt_storage_address(old) != storage->data_ptr().get()) {
      tt_storage_retain(old);  // the DataPtr replaced drops the reference it had
      storage->set_data_ptr_noswap(data_of(old, device));
    }
  }
  storage->set_nbytes(nbytes);
}

at::Tensor tensor_of(tt_storage_t* storage, tt_dtype_t dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides, int device) {
  c10::DataPtr data = storage != nullptr ? data_of(storage, device) : c10::DataPtr(nullptr, nullptr, &storage_deleter, device_at(device));
  size_t nbytes = storage != nullptr ? tt_storage_nbytes(storage) : 0;
  auto out = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), nbytes, std::move(data),
                                                         &the_allocator(), true)),
      k_keys, c10::scalarTypeToTypeMeta(scalar_type_of(dtype)));
  out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return out;
}

at::Tensor empty_on(int device, c10::IntArrayRef sizes, c10::ScalarType dtype) {
  Here here(device_at(device));
  return at::detail::empty_generic(sizes, &the_allocator(), k_keys, dtype, std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(efficientzerotensor));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
}

}  // namespace tt
