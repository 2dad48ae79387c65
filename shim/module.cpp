// The extension module torch_tpu._C: what the Python side needs from the core and from the shim.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/python_headers.h>
#include <torch/csrc/utils/pybind.h>

#include "graph.h"
#include "shim.h"

namespace py = pybind11;

namespace tt {
namespace {

// "file.py:12 in f" of the innermost frame that is the user's: outside torch and this package.
void where(char* out, size_t size) {
  out[0] = 0;
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire gil;
  static const std::string torch_dir = [] {
    std::string file = py::module_::import("torch").attr("__file__").cast<std::string>();
    return file.substr(0, file.rfind('/') + 1);
  }();
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    bool inside = file != nullptr && (strncmp(file, torch_dir.c_str(), torch_dir.size()) == 0 || strstr(file, "/torch_tpu/") != nullptr);
    if (file != nullptr && !inside) {
      const char* base = strrchr(file, '/');
      const char* name = PyUnicode_AsUTF8(code->co_name);
      snprintf(out, size, "%s:%d in %s", base != nullptr ? base + 1 : file, PyFrame_GetLineNumber(frame), name != nullptr ? name : "?");
    }
    PyErr_Clear();
    Py_DECREF(code);
    PyFrameObject* back = out[0] != 0 ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
}

void open(const std::string& plugin, int cpu_devices, const std::string& client_options, const std::string& cache_dir, int64_t cache_limit) {
  tt_runtime_options_t options{};
  options.plugin_path = plugin.c_str();
  options.cpu_device_count = cpu_devices;
  options.client_options = client_options.empty() ? nullptr : client_options.c_str();
  options.cache_dir = cache_dir.c_str();
  options.cache_limit_bytes = cache_limit;
  {
    py::gil_scoped_release no_gil;
    ok(tt_runtime_open(&options));
  }
  g_open.store(true, std::memory_order_release);
}

py::dict counters() {
  py::dict out;
  for (int i = 0;; i++) {
    const char* name = tt_counter_name(i);
    if (name == nullptr) return out;
    out[name] = tt_counter(name);
  }
}

py::dict memory_stats(int device) {
  tt_memory_stats_t m{};
  if (g_open.load()) {
    ok(tt_defer_run("memory statistics"));
    tt_memory_stats(device, &m);
  }
  py::dict out;
  out["allocated"] = m.allocated;
  out["peak_allocated"] = m.peak_allocated;
  out["total_allocated"] = m.total_allocated;
  out["total_freed"] = m.total_freed;
  out["live_storages"] = m.live_storages;
  out["allocations"] = m.allocations;
  out["frees"] = m.frees;
  out["oom_count"] = m.oom_count;
  return out;
}

py::dict fallback_counts() {
  py::dict out;
  for (Overload* o : all_overloads()) {
    int64_t n = o->fallbacks.load();
    if (n != 0) out[o->name().c_str()] = n;
  }
  return out;
}

void set_fallback_mode(const std::string& mode) {
  if (mode == "warn") {
    g_fallback_mode.store(FallbackMode::Warn);
  } else if (mode == "error") {
    g_fallback_mode.store(FallbackMode::Error);
  } else if (mode == "off") {
    g_fallback_mode.store(FallbackMode::Off);
  } else {
    throw py::value_error("TORCH_TPU_FALLBACK: 'warn', 'error' or 'off', not '" + mode + "'");
  }
}

std::string memory_report(int device) {
  std::string out(16384, '\0');
  int n = tt_memory_largest(device, out.data(), out.size());
  out.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return out;
}

py::tuple row_relation(const std::string& name, const std::string& overload) {
  auto h = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!h) throw py::key_error(name + "." + overload);
  std::string row;
  tt_variant_t variant = TT_FUNCTIONAL;
  relate(*h, &row, &variant);
  return py::make_tuple(row, static_cast<int>(variant));
}

}  // namespace
}  // namespace tt

PYBIND11_MODULE(_C, m) {
  using namespace tt;
  // The number changes whenever infer() starts to answer differently: cached signatures carry its answers.
  static const tt_frontend_t frontend = {&infer, &trace, &where, "torch " TT_TORCH_VERSION " metas 4"};
  tt_frontend_set(&frontend);
  m.attr("torch_version") = TT_TORCH_VERSION;
  m.attr("kernels") = register_kernels();
  register_sparse();
  register_profiler();

  // torch's own table of exceptions, so that a status surfaces as the type PyTorch would raise.
  py::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (...) {
      try {
        torch::translate_exception_to_python(std::current_exception());
      } catch (...) {
        std::rethrow_exception(p);
      }
    }
  });

  m.def("open", &open);
  m.def("is_open", &tt_runtime_is_open);
  m.def("in_bad_fork", &tt_runtime_in_bad_fork);
  m.def("shutdown", [] {
    {
      py::gil_scoped_release no_gil;
      try {
        drain_transfers();
      } catch (const std::exception&) {
      }
      tt_runtime_shutdown();
    }
    g_open.store(false);
  });
  m.def("device_count", [] { return tt_device_count(); });
  m.def("device_kind", [](int device) { return std::string(tt_device_kind(device)); });
  m.def("runtime_info", [](const std::string& what) { return std::string(tt_runtime_info(what.c_str())); });
  m.def("current_device", [] { return current_device(); });
  m.def("set_device", [](int device) { set_current_device(device); });
  m.def("synchronize", [](int device) {
    py::gil_scoped_release no_gil;
    Leaving leaving;
    drain_transfers();
    ok(tt_device_synchronize(device));
  });
  m.def("mem_info", [](int device) {
    int64_t free = 0, total = 0;
    ok(tt_device_mem_info(device, &free, &total));
    return py::make_tuple(free, total);
  });
  m.def("memory_stats", &memory_stats);
  m.def("memory_report", &memory_report);
  m.def("reset_peak_memory_stats", [](int device) {
    if (!g_open.load()) return;
    ok(tt_defer_run("memory statistics"));
    tt_memory_reset_peak(device);
  });
  m.def("reset_accumulated_memory_stats", [](int device) { if (g_open.load()) tt_memory_reset_accumulated(device); });
  m.def("counters", &counters);
  m.def("mode_set", [](int mode) { tt_mode_set(static_cast<tt_mode_t>(mode)); });
  m.def("mode_get", [] { return static_cast<int>(tt_mode_get()); });
  m.def("mode_set_default", [](int mode) { tt_mode_set_default(static_cast<tt_mode_t>(mode)); });
  m.def("defer_wait", [] {
    pybind11::gil_scoped_release no_gil;
    tt_defer_wait();
  });
  m.def("defer_plan", [](int64_t whole, int parts, int64_t smallest) { tt_defer_plan(whole, parts, smallest); });
  m.def("defer_report", [] {
    char* text = tt_defer_report();
    TORCH_CHECK(text != nullptr, "host memory is exhausted");
    py::str out(text);
    tt_text_free(text);
    return out;
  });
  m.def("precision_set", [](int precision) { g_precision.store(precision); });
  m.def("precision_get", [] { return g_precision.load(); });
  m.def("begin_ending", &begin_ending);
  m.def("default_generator", [](int device) { return at::globalContext().defaultGenerator(c10::Device(kTpu, static_cast<c10::DeviceIndex>(device))); });
  m.def("rows", [] {
    std::vector<std::string> out;
    for (int i = 0; i < tt_table_count(); i++) out.emplace_back(tt_table_name(i));
    return out;
  });
  m.def("has_row", [](const std::string& name) { return tt_table_has(name.c_str()); });
  m.def("row_flags", [](const std::string& name) { return tt_table_flags(name.c_str()); });
  m.attr("OP_POINTWISE") = static_cast<uint32_t>(TT_OP_POINTWISE);
  m.attr("OP_RANDOM") = static_cast<uint32_t>(TT_OP_RANDOM);
  m.attr("OP_DATA_DEPENDENT") = static_cast<uint32_t>(TT_OP_DATA_DEPENDENT);
  m.attr("OP_CHECKS") = static_cast<uint32_t>(TT_OP_CHECKS);
  m.def("relate", &row_relation);
  m.def("fallback_counts", &fallback_counts);
  m.def("reset_fallback_counts", [] {
    for (Overload* o : all_overloads()) o->fallbacks.store(0);
  });
  m.def("set_fallback_mode", &set_fallback_mode);
  bind_graph(m);
  bind_aot(m);
}
