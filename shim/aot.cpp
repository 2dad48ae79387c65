// Ahead of time for Python: _C.Topology compiles StableHLO for chips that are not here.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "graph.h"
#include "shim.h"
#include "tt/aot.h"

namespace py = pybind11;

namespace tt {

namespace {

class Compiled {
 public:
  explicit Compiled(tt_aot_program_t* program) : program_(program) {}
  Compiled(const Compiled&) = delete;
  ~Compiled() { tt_aot_program_free(program_); }

  // Bytes by kind; kinds the compiler does not tell are missing.
  py::dict memory() {
    tt_aot_memory_t m{};
    ok(tt_aot_memory(program_, &m));
    py::dict out;
    const std::pair<const char*, int64_t> items[] = {{"code", m.code_bytes},     {"arguments", m.argument_bytes}, {"outputs", m.output_bytes},
                                                     {"aliased", m.alias_bytes}, {"temporaries", m.temp_bytes},   {"peak", m.peak_bytes}};
    for (const auto& [name, bytes] : items) {
      if (bytes >= 0) out[name] = bytes;
    }
    return out;
  }

  py::dict costs() {
    py::dict out;
    ok(tt_aot_costs(program_, [](void* ctx, const char* name, double value) { (*static_cast<py::dict*>(ctx))[name] = value; }, &out));
    return out;
  }

  // (format, bytes)
  py::tuple optimized() {
    char format[32] = "";
    void* bytes = nullptr;
    size_t n = 0;
    ok(tt_aot_optimized(program_, format, &bytes, &n));
    py::bytes data(static_cast<const char*>(bytes), n);
    tt_aot_bytes_free(bytes);
    return py::make_tuple(std::string(format), data);
  }

  py::bytes serialize() {
    void* bytes = nullptr;
    size_t n = 0;
    ok(tt_aot_serialize(program_, &bytes, &n));
    py::bytes data(static_cast<const char*>(bytes), n);
    tt_aot_bytes_free(bytes);
    return data;
  }

 private:
  tt_aot_program_t* program_;
};

class Topology {
 public:
  Topology(const std::string& library, const std::string& name) {
    py::gil_scoped_release no_gil;
    ok(tt_aot_open(library.c_str(), name.c_str(), &aot_));
  }
  Topology(const Topology&) = delete;
  ~Topology() { tt_aot_close(aot_); }

  int devices() const { return tt_aot_devices(aot_); }
  std::string kind() const { return tt_aot_device_kind(aot_); }
  std::string version() const { return tt_aot_platform_version(aot_); }

  std::unique_ptr<Compiled> compile(const std::string& text, int partitions, const std::string& flags, int replicas) {
    tt_aot_program_t* program = nullptr;
    {
      py::gil_scoped_release no_gil;
      ok(tt_aot_compile(aot_, text.data(), text.size(), flags.empty() ? nullptr : flags.c_str(), replicas, partitions, &program));
    }
    return std::make_unique<Compiled>(program);
  }

 private:
  tt_aot_t* aot_ = nullptr;
};

// Several devices of a client of its own, for programs that many replicas run.
class Replicas {
 public:
  Replicas(const std::string& library, int replicas) : replicas_(replicas) {
    py::gil_scoped_release no_gil;
    ok(tt_replicas_open(library.c_str(), replicas, &r_));
  }
  Replicas(const Replicas&) = delete;
  ~Replicas() { tt_replicas_close(r_); }

  // |args| and |results| by replica: CPU tensors, dense; the latter are filled.
  void run(const std::string& text, const std::vector<std::vector<at::Tensor>>& args, const std::vector<std::vector<at::Tensor>>& results) {
    auto in = arrays(args), out = arrays(results);
    py::gil_scoped_release no_gil;
    ok(tt_replicas_run(r_, text.data(), text.size(), static_cast<int>(args[0].size()), in.data(),
                       static_cast<int>(results[0].size()), out.data()));
  }

 private:
  std::vector<tt_host_array_t> arrays(const std::vector<std::vector<at::Tensor>>& tensors) const {
    TORCH_CHECK(static_cast<int>(tensors.size()) == replicas_, tensors.size(), " lists of tensors for ", replicas_, " replicas");
    std::vector<tt_host_array_t> out;
    for (const auto& list : tensors) {
      TORCH_CHECK(list.size() == tensors[0].size(), "replicas have different numbers of tensors");
      for (const auto& t : list) {
        TORCH_CHECK(t.device().is_cpu() && t.is_contiguous(), "a dense CPU tensor is expected");
        out.push_back({dtype_of(t.scalar_type()), static_cast<int>(t.dim()), t.sizes().data(), t.data_ptr()});
      }
    }
    return out;
  }

  tt_replicas_t* r_ = nullptr;
  int replicas_;
};

}  // namespace

void bind_aot(py::module_& m) {
  py::class_<Compiled>(m, "Compiled")
      .def("memory", &Compiled::memory)
      .def("costs", &Compiled::costs)
      .def("optimized", &Compiled::optimized)
      .def("serialize", &Compiled::serialize);
  py::class_<Topology>(m, "Topology")
      .def(py::init<const std::string&, const std::string&>(), py::arg("library"), py::arg("name"))
      .def_property_readonly("devices", &Topology::devices)
      .def_property_readonly("kind", &Topology::kind)
      .def_property_readonly("version", &Topology::version)
      .def("compile", &Topology::compile, py::arg("text"), py::arg("partitions") = 1, py::arg("flags") = "", py::arg("replicas") = 1);
  py::class_<Replicas>(m, "Replicas")
      .def(py::init<const std::string&, int>(), py::arg("library"), py::arg("replicas"))
      .def("run", &Replicas::run, py::arg("text"), py::arg("args"), py::arg("results"));
}

}  // namespace tt
