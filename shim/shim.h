// What the shim's files share: errors, the digest of an overload, packing of arguments, storages as tensors.
//
// Depends on: include/tt, torch.
// Threads: everything is thread-safe unless a comment says otherwise; nothing here needs Python's GIL.
// The shim is the only place that includes torch. It packs what PyTorch's dispatcher hands over into the core's plain C
// values, and unpacks what comes back. It decides nothing about numbers.
#pragma once
#include "torch_headers.h"

#include "tt/eager.h"
#include "tt/graph.h"

namespace tt {

constexpr auto kTpu = c10::DeviceType::PrivateUse1;

// ---------------------------------------------------------------- errors (errors.cpp)
[[noreturn]] void raise(tt_status_t status);  // takes |status|, throws PyTorch's exception for its code
inline void ok(tt_status_t status) {
  if (C10_UNLIKELY(status != nullptr)) raise(status);
}
[[noreturn]] void raise_two_devices(c10::Device a, c10::Device b);

// ---------------------------------------------------------------- device (device.cpp)
extern std::atomic<bool> g_open;
void open_slow();  // asks Python which plugin, opens the runtime; takes the GIL
inline void ensure_open() {
  if (C10_UNLIKELY(!g_open.load(std::memory_order_acquire))) open_slow();
}
// At the interpreter's end (device.cpp). A daemon thread that comes back from the device then must not ask for the GIL:
// Python ends it there by unwinding, which in C++ aborts the process. One of these in each kernel that may take long keeps
// such a thread here for good.
extern std::atomic<bool> g_ending;
void stay_if_daemon();
struct Leaving {
  ~Leaving() {
    if (C10_UNLIKELY(g_ending.load(std::memory_order_relaxed))) stay_if_daemon();
  }
};
void begin_ending(std::vector<unsigned long> daemon_threads);  // pthread_t of each

int current_device();
void set_current_device(int index);  // checks the range
c10::Device device_or_current(std::optional<c10::Device> device);
tt_rng_t* rng_of(const at::Generator& generator);
void drain_transfers();              // waits for asynchronous copies to the host (copy.cpp)

// ---------------------------------------------------------------- dtypes
extern const uint8_t* const k_dtype_table;           // c10::ScalarType -> tt_dtype_t; 0: none
tt_dtype_t dtype_of(c10::ScalarType type);          // throws TypeError when the device has no such type
c10::ScalarType scalar_type_of(tt_dtype_t dtype);

// ---------------------------------------------------------------- storages (allocator.cpp)
void storage_deleter(void* context);
c10::DeviceAllocator* allocator();
[[noreturn]] void raise_foreign_storage();
inline tt_storage_t* storage_of(const c10::TensorImpl* impl) {
  const auto& storage = impl->unsafe_storage();
  if (C10_UNLIKELY(!storage)) return nullptr;
  const c10::DataPtr& data = storage.unsafeGetStorageImpl()->data_ptr();
  return C10_LIKELY(data.get_deleter() == &storage_deleter) ? static_cast<tt_storage_t*>(data.get_context()) : nullptr;
}
// Takes the reference to |storage|.
at::Tensor tensor_of(tt_storage_t* storage, tt_dtype_t dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides, int device);
void resize_storage(c10::StorageImpl* storage, size_t nbytes);
void describe(const at::Tensor& tensor, tt_tensor_t* out);  // |out| borrows from |tensor|
at::Tensor empty_on(int device, c10::IntArrayRef sizes, c10::ScalarType dtype);

// ---------------------------------------------------------------- copies (copy.cpp)
at::Tensor resolve_bits(const at::Tensor& tensor);  // conjugate and negative bits made values
at::Tensor& copy_(at::Tensor& dst, const at::Tensor& src, bool non_blocking);

// ---------------------------------------------------------------- overloads (overload.cpp)
enum class Kind : uint8_t {
  None, Tensor, Tensors, Int, Float, Bool, Scalar, Ints, Floats, Bools, Scalars, String, Dtype, Device, Generator, Ignored, Unknown
};
constexpr int8_t kFresh = -1;  // a return that is a new tensor; otherwise the argument that it is

// An ATen overload, digested once. Arguments are numbered as in its *functional* sibling, then come the outs: where
// the out= form drops dtype, layout, device and pin_memory, those are passed as None.
struct Overload {
  explicit Overload(const c10::OperatorHandle& handle);
  c10::OperatorHandle handle;
  std::string row;
  tt_op_t* op = nullptr;
  tt_variant_t variant;
  int n_args = 0, n_schema_args = 0, n_outs = 0;
  int device_arg = -1;                 // position in the schema; -1: none
  std::array<int8_t, TT_MAX_ARGS> at;  // packed position -> schema position, -1: None
  std::array<Kind, TT_MAX_ARGS> kinds; // of packed positions
  std::array<uint8_t, TT_MAX_ARGS> mutates;  // of packed positions
  std::vector<int8_t> returns;         // kFresh, or the schema position of the argument returned
  std::vector<uint8_t> return_is_list;
  std::vector<int8_t> return_length_of;  // an int return: the length (dim -2) of this argument; else -1
  int8_t indices_arg = -1;             // Tensor?[] indices whose masks are expanded and whose host tensors are moved
  std::optional<c10::OperatorHandle> functional;  // OUT: the sibling that allocates
  bool sized_late = false;             // its row's result has a size that values or the lowering alone say
  bool is_view = false;                // returns an alias without writing
  bool more_dtypes = false;            // takes dtypes that the CPU's kernel refuses
  bool has_numbers = false;            // takes a Scalar, which CPU kernels refuse where it does not fit
  bool takes_host = false;             // host tensors with dimensions are welcome
  std::atomic<int64_t> fallbacks{0};
  std::atomic<bool> warned{false};
  const std::string& name() const { return full_name_; }
 private:
  std::string full_name_;
};
Kind kind_of(const c10::TypePtr& type);
// The functional sibling's table name, and how the overload relates to it; for one without any, its own name.
void relate(const c10::OperatorHandle& handle, std::string* out_row, tt_variant_t* out_variant);
const c10::FunctionSchema* functional_schema(const std::string& row);  // NULL when there is none
std::vector<c10::OperatorHandle> overloads_of(const std::string& name);  // "aten::add"
Overload* overload_of(const c10::OperatorHandle& handle);              // digested at the first call, never freed

// ---------------------------------------------------------------- packing (pack.cpp)
// Memory for one call's values: on the stack for any ordinary op.
class Bump {
 public:
  template <class T>
  T* get(size_t n) {
    size_t bytes = (n * sizeof(T) + 15) & ~size_t{15};
    if (C10_LIKELY(used_ + bytes <= sizeof(first_))) {
      T* out = reinterpret_cast<T*>(first_ + used_);
      used_ += bytes;
      return out;
    }
    more_.push_back(std::make_unique<char[]>(bytes));
    return reinterpret_cast<T*>(more_.back().get());
  }

 private:
  alignas(16) char first_[3072];
  size_t used_ = 0;
  std::vector<std::unique_ptr<char[]>> more_;
};

// One call of an overload. Lives on the stack of the kernel; the callbacks get it back as |call|.
struct Call {
  Call(const Overload& overload_in, torch::jit::Stack* stack_in) : overload(overload_in), stack(stack_in) {}
  const Overload& overload;
  torch::jit::Stack* stack;            // the arguments are its last n_schema_args values
  int device = -1;
  const at::Tensor* host = nullptr;    // a host tensor with dimensions: an error unless the row takes them
  bool host_written = false;
  bool lazy_written = false;           // a written tensor has a conjugate or negative bit
  std::exception_ptr error;            // what a callback threw; rethrown when the dispatch has returned
  std::vector<std::unique_ptr<at::Tensor>> keep;
  Bump memory;
  tt_value_t values[TT_MAX_ARGS];

  const c10::IValue& arg(int schema_position) const {
    return (*stack)[stack->size() - static_cast<size_t>(overload.n_schema_args - schema_position)];
  }
  c10::IValue& arg(int schema_position) {
    return (*stack)[stack->size() - static_cast<size_t>(overload.n_schema_args - schema_position)];
  }
  void pack();
  void pack_tensor(const at::Tensor& tensor, tt_tensor_t* out, bool written);
  void pack_value(const c10::IValue& value, Kind kind, bool written, tt_value_t* out);
};
void pack_scalar(const at::Scalar& scalar, tt_value_t* out);
// A non-tensor argument.
void pack_plain(const c10::IValue& value, Kind kind, Bump& memory, tt_value_t* out);

// ---------------------------------------------------------------- precision of f32 products (device.cpp)
// torch.tpu.precision's choice, 0 default to 2 highest as in tt_precision_set; -1: what torch.set_float32_matmul_precision says.
extern std::atomic<int> g_precision;
void follow_settings();  // tells the core, where it or the default dtype changed; before anything is lowered

// ---------------------------------------------------------------- the CPU as reference (reference.cpp)
// Inside a scope below autograd. All raise_ throw what PyTorch's CPU kernel throws; values are never looked at.
void raise_in_cpu_words(const Call& call);              // the same call on zeros
void raise_if_cpu_refuses_dtypes(const Call& call);     // at a signature's first call: only what its dtypes are to blame for
bool numbers_may_not_fit(const Call& call);             // has the packed call a number that one of its dtypes may not hold?
void raise_if_a_number_does_not_fit(const Call& call);  // asked at every such call
bool speaks_of_the_backend(const c10::Error& error);  // the CPU has no kernel at all: that says nothing about the call

// ---------------------------------------------------------------- kernels (boxed.cpp, fallback.cpp, trace.cpp)
void run(Overload& overload, torch::jit::Stack* stack);
void run_on_cpu(Overload& overload, torch::jit::Stack* stack, const char* reason);
void announce_fallback(Overload& overload, const char* reason);  // counts it; warns once, or throws
tt_status_t infer(void* call, const tt_op_t* op, void* sink);
tt_status_t trace(void* call, const tt_op_t* op, tt_lower_t* lower);
// Meta twins of a call's arguments. |for_trace| gives functional arguments only, in the functional sibling's order.
torch::jit::Stack meta_arguments(const Call& call, bool for_trace);
void push_meta(void* sink, const at::Tensor& meta);
// New tensors of what the core gave; takes the storages.
std::vector<at::Tensor> take_results(tt_results_t* results, int device);
std::vector<Overload*> all_overloads();
int register_kernels();  // the number of kernels registered
void register_sparse();  // sparse.cpp
void register_profiler();  // profiler.cpp

enum class FallbackMode : int { Warn, Error, Off };
extern std::atomic<FallbackMode> g_fallback_mode;

// A results buffer of this thread, or a fresh one when a dispatch is already running on it.
class Results {
 public:
  Results();
  ~Results();
  tt_results_t* get() { return results_; }

 private:
  tt_results_t own_{};
  tt_results_t* results_;
};

}  // namespace tt
