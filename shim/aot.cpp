// Ahead of time for Python: _C.Topology compiles StableHLO for chips that are not here.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

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

  std::unique_ptr<Compiled> compile(const std::string& text, int partitions, const std::string& flags) {
    tt_aot_program_t* program = nullptr;
    {
      py::gil_scoped_release no_gil;
      ok(tt_aot_compile(aot_, text.data(), text.size(), flags.empty() ? nullptr : flags.c_str(), partitions, &program));
    }
    return std::make_unique<Compiled>(program);
  }

 private:
  tt_aot_t* aot_ = nullptr;
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
      .def("compile", &Topology::compile, py::arg("text"), py::arg("partitions") = 1, py::arg("flags") = "");
}

}  // namespace tt
