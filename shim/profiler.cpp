// What PyTorch's profiler asks of a device: marks in its stream of work, and the time between two of them.
//
// With these, autograd.profiler.profile(use_device="tpu") reports device time for each operation: from
// the moment the work before it was done to the moment its own is. torch.profiler's ProfilerActivity.PrivateUse1 works but
// takes device time from an activity profiler of Kineto, which is not there.
#include <torch/csrc/profiler/stubs/base.h>

#include <chrono>

#include "shim.h"

namespace tt {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct Stubs : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    ensure_open();
    int index = current_device();
    if (device != nullptr) *device = static_cast<c10::DeviceIndex>(index);
    tt_event_t* mark = nullptr;
    ok(tt_event_record(index, 0, true, &mark));
    *event = std::shared_ptr<void>(mark, [](void* p) { tt_event_release(static_cast<tt_event_t*>(p)); });
    if (cpu_ns != nullptr) {
      *cpu_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
  }
  float elapsed(const ProfilerVoidEventStub* start, const ProfilerVoidEventStub* end) const override {  // microseconds
    auto *first = static_cast<tt_event_t*>(start->get()), *last = static_cast<tt_event_t*>(end->get());
    ok(tt_event_wait(first));
    ok(tt_event_wait(last));
    double ms = 0;
    ok(tt_event_elapsed_ms(first, last, &ms));
    return static_cast<float>(ms * 1e3);
  }
  // Ranges belong to tools that PJRT does not know of.
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> op) const override {
    if (!g_open.load()) return;
    for (int i = 0; i < tt_device_count(); i++) op(i);
  }
  void synchronize() const override {
    if (!g_open.load()) return;
    for (int i = 0; i < tt_device_count(); i++) ok(tt_device_synchronize(i));
  }
};

}  // namespace

void register_profiler() {
  static Stubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
}

}  // namespace tt
