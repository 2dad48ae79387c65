// The device as PyTorch sees it: guard, hooks, streams, events, pinned host memory, generators.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pybind11/pybind11.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "shim.h"

namespace tt {

// ---------------------------------------------------------------- opening, current device
std::atomic<bool> g_open{false};
static thread_local int t_device = 0;
static std::atomic<int> g_planned{-1};

void open_slow() {
  pybind11::gil_scoped_acquire gil;
  pybind11::module_::import("torch_tpu._loader").attr("open_runtime")();
}

int current_device() { return t_device; }

std::atomic<bool> g_ending{false};
static std::vector<unsigned long>* g_daemons = nullptr;  // set once, before g_ending

void begin_ending(std::vector<unsigned long> daemon_threads) {
  if (g_daemons != nullptr) return;
  g_daemons = new std::vector<unsigned long>(std::move(daemon_threads));
  g_ending.store(true, std::memory_order_release);
}

void stay_if_daemon() {
  std::atomic_thread_fence(std::memory_order_acquire);
  auto self = static_cast<unsigned long>(pthread_self());
  if (std::find(g_daemons->begin(), g_daemons->end(), self) == g_daemons->end()) return;
  if (PyGILState_Check() != 0) return;  // it has what it would have asked for
  for (;;) pause();
}

std::atomic<int> g_precision{-1};

static void follow_default_dtype() {
  static std::atomic<int> told{TT_F32};
  int wanted = k_dtype_table[static_cast<size_t>(c10::typeMetaToScalarType(c10::get_default_dtype()))];
  if (C10_LIKELY(wanted == told.load(std::memory_order_relaxed))) return;
  tt_default_dtype_set(static_cast<tt_dtype_t>(wanted));
  told.store(wanted);
}

void follow_settings() {
  follow_default_dtype();
  static std::atomic<int> told{2};  // the core starts with the highest, as PyTorch does
  int wanted = g_precision.load(std::memory_order_relaxed);
  if (wanted < 0) wanted = 2 - static_cast<int>(at::globalContext().float32MatmulPrecision());
  if (C10_LIKELY(wanted == told.load(std::memory_order_relaxed))) return;
  tt_precision_set(wanted);
  told.store(wanted);
}

static int planned_devices() {
  int n = g_planned.load();
  if (n >= 0) return n;
  pybind11::gil_scoped_acquire gil;
  n = pybind11::module_::import("torch_tpu._loader").attr("planned_device_count")().cast<int>();
  g_planned.store(n);
  return n;
}

// Before the runtime is open: how many devices it is going to have, as far as can be told from outside. PyTorch's
// autograd engine asks at the first backward of any program, and starts its threads by the answer.
static int device_count_quietly() noexcept {
  if (g_open.load()) return tt_device_count();
  try {
    return Py_IsInitialized() ? planned_devices() : 0;
  } catch (...) {
    return 0;
  }
}

void set_current_device(int index) {
  if (index == t_device) return;
  int n = device_count_quietly();
  TORCH_CHECK(index >= 0 && index < n, "tpu device ordinal ", index, " is out of range: there ", n == 1 ? "is " : "are ", n,
              n == 1 ? " device" : " devices");
  t_device = index;
}

c10::Device device_or_current(std::optional<c10::Device> device) {
  int index = device && device->has_index() ? device->index() : t_device;
  return c10::Device(kTpu, static_cast<c10::DeviceIndex>(index));
}

// ---------------------------------------------------------------- streams and events
namespace {

constexpr int kMaxDevices = 512;
std::atomic<int64_t> g_next_stream{1};
thread_local std::map<int, c10::StreamId> t_streams;  // device -> current stream; absent: the default one

struct Event {
  tt_event_t* event = nullptr;
  bool timing = false;
};

c10::Stream stream_at(int device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kTpu, static_cast<c10::DeviceIndex>(device)), id);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kTpu; }
  c10::Device exchangeDevice(c10::Device d) const override {
    auto old = getDevice();
    set_current_device(d.has_index() ? d.index() : t_device);
    return old;
  }
  c10::Device getDevice() const override { return c10::Device(kTpu, static_cast<c10::DeviceIndex>(t_device)); }
  void setDevice(c10::Device d) const override { set_current_device(d.has_index() ? d.index() : t_device); }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.has_index()) t_device = d.index();
  }
  c10::Stream getStream(c10::Device d) const override {
    int device = d.has_index() ? d.index() : t_device;
    auto it = t_streams.find(device);
    return stream_at(device, it == t_streams.end() ? 0 : it->second);
  }
  c10::Stream getDefaultStream(c10::Device d) const override { return stream_at(d.has_index() ? d.index() : t_device, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override { return getNewStream(d, 0); }
  c10::Stream getNewStream(c10::Device d, int) const override {
    return stream_at(d.has_index() ? d.index() : t_device, g_next_stream.fetch_add(1));
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    auto old = getStream(s.device());
    t_streams[s.device_index()] = s.id();
    return old;
  }
  void* getStreamNativeHandle(const c10::Stream s) const override { return reinterpret_cast<void*>(static_cast<intptr_t>(s.id())); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    auto* e = static_cast<Event*>(event);
    if (e == nullptr) return;
    if (e->event != nullptr) tt_event_release(e->event);
    delete e;
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    ensure_open();
    if (*event == nullptr) *event = new Event;
    auto* e = static_cast<Event*>(*event);
    e->timing = flag == c10::EventFlag::BACKEND_DEFAULT;
    tt_event_t* fresh = nullptr;
    ok(tt_event_record(stream.device_index(), static_cast<int>(stream.id()), e->timing, &fresh));
    if (e->event != nullptr) tt_event_release(e->event);
    e->event = fresh;
  }
  // Streams of a device are ordered with each other by the order of issue: what was recorded is already ahead.
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    auto* e = static_cast<Event*>(event);
    return e == nullptr || e->event == nullptr || tt_event_query(e->event);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count_quietly()); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability cap;
    cap.capability_data.capability_bits = 0;
    for (size_t s = 0; s < static_cast<size_t>(c10::ScalarType::NumOptions) && s < 64; s++) {
      if (k_dtype_table[s] != 0) cap.capability_data.capability_bits |= uint64_t{1} << s;
    }
    return cap;
  }
  bool queryStream(const c10::Stream& stream) const override {
    if (!g_open.load()) return true;
    tt_event_t* e = nullptr;
    ok(tt_event_record(stream.device_index(), static_cast<int>(stream.id()), false, &e));
    bool done = tt_event_query(e);
    tt_event_release(e);
    return done;
  }
  void synchronizeStream(const c10::Stream& stream) const override { synchronizeDevice(stream.device_index()); }
  void synchronizeEvent(void* event) const override {
    auto* e = static_cast<Event*>(event);
    if (e == nullptr || e->event == nullptr) return;
    ok(tt_event_wait(e->event));
    drain_transfers();
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    if (!g_open.load()) return;
    drain_transfers();
    ok(tt_device_synchronize(device < 0 ? t_device : device));
  }
  double elapsedTime(void* a, void* b, const c10::DeviceIndex) const override {
    auto *start = static_cast<Event*>(a), *end = static_cast<Event*>(b);
    TORCH_CHECK(start != nullptr && end != nullptr && start->event != nullptr && end->event != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    TORCH_CHECK(start->timing && end->timing, "Both events must be created with argument 'enable_timing=True'.");
    double ms = 0;
    ok(tt_event_elapsed_ms(start->event, end->event, &ms));
    return ms;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// ---------------------------------------------------------------- pinned host memory
// Ordinary aligned memory that we know about: the transfer engine reads it without a staging copy.
class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    if (n == 0) return c10::DataPtr(nullptr, c10::Device(c10::kCPU));
    void* data = c10::alloc_cpu(n);
    std::unique_lock<std::shared_mutex> lock(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(data)] = n;
    return c10::DataPtr(data, data, &free_block, c10::Device(c10::kCPU));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* dst, const void* src, std::size_t n) const override { default_copy_data(dst, src, n); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
  bool owns(const void* p) const {
    auto at = reinterpret_cast<uintptr_t>(p);
    std::shared_lock<std::shared_mutex> lock(mutex_);
    auto it = blocks_.upper_bound(at);
    if (it == blocks_.begin()) return false;
    --it;
    return at < it->first + it->second;
  }

 private:
  static void free_block(void* data);
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;
};

PinnedAllocator& pinned() {
  static PinnedAllocator* instance = new PinnedAllocator;
  return *instance;
}

void PinnedAllocator::free_block(void* data) {
  {
    std::unique_lock<std::shared_mutex> lock(pinned().mutex_);
    pinned().blocks_.erase(reinterpret_cast<uintptr_t>(data));
  }
  c10::free_cpu(data);
}

// ---------------------------------------------------------------- generators
class TpuGenerator final : public c10::GeneratorImpl {
 public:
  // The device's own state when |borrowed| is given; else a state of its own.
  TpuGenerator(c10::DeviceIndex device, tt_rng_t* borrowed)
      : c10::GeneratorImpl(c10::Device(kTpu, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), owned_(borrowed == nullptr) {
    if (borrowed != nullptr) {
      rng_ = borrowed;
      return;
    }
    ok(tt_rng_create(&rng_));
    tt_rng_set(rng_, c10::default_rng_seed_val, 0);
  }
  ~TpuGenerator() override {
    if (owned_) tt_rng_destroy(rng_);
  }
  void set_current_seed(uint64_t seed) override { tt_rng_set(rng_, seed, 0); }
  void set_offset(uint64_t offset) override { tt_rng_set(rng_, current_seed(), offset); }
  uint64_t get_offset() const override { return get().second; }
  uint64_t current_seed() const override { return get().first; }
  uint64_t seed() override {
    uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device_type() == c10::kCPU && state.dtype() == at::kByte && state.is_contiguous() &&
                    state.numel() == static_cast<int64_t>(2 * sizeof(uint64_t)),
                "RNG state must be a torch.ByteTensor of 16 elements on the CPU");
    uint64_t words[2];
    memcpy(words, state.data(), sizeof words);
    tt_rng_set(rng_, words[0], words[1]);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto out = at::detail::empty_cpu({static_cast<int64_t>(2 * sizeof(uint64_t))}, at::kByte);
    auto [seed, offset] = get();
    uint64_t words[2] = {seed, offset};
    memcpy(out.mutable_data_ptr(), words, sizeof words);
    return out.getIntrusivePtr();
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override {
    auto* other = dynamic_cast<TpuGenerator*>(state.get());
    TORCH_CHECK(other != nullptr, "graphsafe_set_state: expected a tpu generator");
    auto [seed, offset] = other->get();
    tt_rng_set(rng_, seed, offset);
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(clone_impl());
  }
  tt_rng_t* rng() const { return rng_; }
  static c10::DeviceType device_type() { return kTpu; }

 private:
  TpuGenerator* clone_impl() const override {
    auto* out = new TpuGenerator(device_.index(), nullptr);
    auto [seed, offset] = get();
    tt_rng_set(out->rng_, seed, offset);
    return out;
  }
  std::pair<uint64_t, uint64_t> get() const {
    uint64_t seed = 0, offset = 0;
    tt_rng_get(rng_, &seed, &offset);
    return {seed, offset};
  }
  tt_rng_t* rng_ = nullptr;
  bool owned_;
};

const at::Generator& default_generator(int device) {
  static std::mutex* mutex = new std::mutex;
  static auto* generators = new std::map<int, at::Generator>;
  ensure_open();
  if (device < 0) device = t_device;
  std::lock_guard<std::mutex> lock(*mutex);
  auto it = generators->find(device);
  if (it == generators->end()) {
    tt_rng_t* rng = tt_rng_default(device);
    TORCH_CHECK(rng != nullptr, "there is no device tpu:", device);
    it = generators->emplace(device, at::make_generator<TpuGenerator>(static_cast<c10::DeviceIndex>(device), rng)).first;
  }
  return it->second;
}

// ---------------------------------------------------------------- hooks
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override {
    if (g_open.load()) return true;
    return device_count_quietly() > 0;
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<TpuGenerator>(device < 0 ? static_cast<c10::DeviceIndex>(t_device) : device, nullptr);
  }
  at::Device getDeviceFromPtr(void*) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "memory of the tpu device has no address to make tensors from");
  }
  bool isPinnedPtr(const void* data) const override { return pinned().owns(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return g_open.load(); }
  void init() const override { ensure_open(); }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(device_count_quietly()); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(t_device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    int old = t_device;
    set_current_device(device);
    return static_cast<c10::DeviceIndex>(old);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? static_cast<c10::DeviceIndex>(t_device) : exchangeDevice(device);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), nbytes);
  }
};

const bool k_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  at::setHostAllocator(kTpu, &pinned(), 1);
  return true;
}();

}  // namespace

tt_rng_t* rng_of(const at::Generator& generator) {
  if (!generator.defined()) return nullptr;
  TORCH_CHECK(generator.device().type() == kTpu, "Expected a 'tpu' device type for generator but found '", generator.device().type(), "'");
  return static_cast<TpuGenerator*>(generator.unsafeGetGeneratorImpl())->rng();
}

}  // namespace tt
