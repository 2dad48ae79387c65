// Graphs for Python: tracing a decomposition into a lowering, and whole programs for torch.compile.
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include "graph.h"
#include "shim.h"

namespace py = pybind11;

namespace tt {

namespace {

// One value of a graph, as Python sees it.
struct Node {
  int id;
};

py::object to_python(const c10::IValue& v, const c10::TypePtr& type_in) {
  if (v.isNone()) return py::none();
  c10::TypePtr type = type_in;
  if (type->kind() == c10::TypeKind::OptionalType) type = type->castRaw<c10::OptionalType>()->getElementType();
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType: return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPDtype(v.toScalarType())));
    case c10::TypeKind::LayoutType: return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPLayout(v.toLayout())));
    case c10::TypeKind::MemoryFormatType: return py::reinterpret_steal<py::object>(torch::utils::getTHPMemoryFormat(v.toMemoryFormat()));
    // Tensors by themselves: the JIT's conversion turns wrapped numbers into Python numbers, which meta tensors have not.
    case c10::TypeKind::TensorType: return py::cast(v.toTensor());
    case c10::TypeKind::ListType: break;
    default: return torch::jit::toPyObject(v);
  }
  if (kind_of(type) != Kind::Tensors) return torch::jit::toPyObject(v);
  py::list out;
  for (const auto& e : v.toListRef()) out.append(e.isNone() ? py::object(py::none()) : py::cast(e.toTensor()));
  return std::move(out);
}

class Program {
 public:
  Program(tt_program_t* program, int device) : program_(program), device_(device) {}
  Program(const Program&) = delete;
  ~Program() { tt_program_release(program_); }

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& args, const std::optional<at::Generator>& generator) {
    std::vector<tt_tensor_t> tensors(args.size());
    for (size_t i = 0; i < args.size(); i++) describe(args[i], &tensors[i]);
    py::gil_scoped_release no_gil;
    Results results;
    ok(tt_program_run(program_, static_cast<int>(tensors.size()), tensors.data(), generator ? rng_of(*generator) : nullptr, results.get()));
    return take_results(results.get(), device_);
  }

  // As run, for arguments that may be smaller than the parameters: |numbers| is the value of Graph.sizes, |sizes| all
  // results' sizes one after another. Then as run_in_place.
  std::vector<at::Tensor> run_bounded(const std::vector<at::Tensor>& args, const std::vector<int64_t>& numbers,
                                      const std::vector<int64_t>& sizes, const std::vector<std::pair<int, at::Tensor>>& writes) {
    std::vector<tt_tensor_t> tensors(args.size());
    for (size_t i = 0; i < args.size(); i++) describe(args[i], &tensors[i]);
    py::gil_scoped_release no_gil;
    Results results;
    tt_true_sizes_t bounded = {static_cast<int>(numbers.size()), numbers.data(), sizes.data()};
    ok(tt_program_run_bounded(program_, static_cast<int>(tensors.size()), tensors.data(), &bounded, nullptr, results.get()));
    return write(take_results(results.get(), device_), writes);
  }

  // As run, and then results that stand for an argument's new value are in that argument: |writes| are (result,
  // tensor); those results come back undefined.
  std::vector<at::Tensor> run_in_place(const std::vector<at::Tensor>& args, const std::vector<std::pair<int, at::Tensor>>& writes) {
    return write(run(args, std::nullopt), writes);
  }

 private:
  static std::vector<at::Tensor> write(std::vector<at::Tensor> out, const std::vector<std::pair<int, at::Tensor>>& writes) {
    at::AutoDispatchBelowADInplaceOrView below;
    for (const auto& [result, target] : writes) {
      auto& value = out[static_cast<size_t>(result)];
      if (!value.defined()) continue;
      at::Tensor to = target;
      to.copy_(value);
      value = at::Tensor();
    }
    return out;
  }

  tt_program_t* program_;
  int device_;
};

class Graph {
 public:
  // |platform|: lower for that compiler, to be printed only; empty: for the device that is open.
  Graph(int device, const std::string& platform) : device_(device), owned_(true) {
    if (!platform.empty()) {
      ok(tt_graph_create_for(platform.c_str(), &graph_));
      return;
    }
    ensure_open();
    follow_settings();
    ok(tt_graph_create(device, &graph_));
  }
  Graph(tt_graph_t* borrowed, int device) : graph_(borrowed), device_(device), owned_(false) {}
  Graph(const Graph&) = delete;
  ~Graph() {
    if (owned_) tt_graph_destroy(graph_);
  }

  Node param(at::ScalarType dtype, const std::vector<int64_t>& sizes) {
    Node out{};
    ok(tt_graph_param(graph(), dtype_of(dtype), static_cast<int>(sizes.size()), sizes.data(), &out.id));
    return out;
  }

  // Process group |name|: |groups| lists of replica ids, all of one length.
  void group(const std::string& name, const std::vector<std::vector<int64_t>>& groups) {
    std::vector<int64_t> ids;
    size_t size = groups.empty() ? 0 : groups[0].size();
    for (const auto& g : groups) {
      TORCH_CHECK(g.size() == size, "group ", name, ": groups of different sizes");
      ids.insert(ids.end(), g.begin(), g.end());
    }
    ok(tt_graph_group(graph(), name.c_str(), static_cast<int64_t>(groups.size()), static_cast<int64_t>(size), ids.data()));
  }

  Node constant(const at::Tensor& tensor) {
    at::Tensor host = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
    Node out{};
    ok(tt_graph_constant(graph(), dtype_of(host.scalar_type()), static_cast<int>(host.dim()), host.sizes().data(),
                         host.const_data_ptr(), &out.id));
    return out;
  }

  // |outs|: (dtype, sizes) of the expected results, or None.
  std::vector<Node> call(const std::string& name, const py::args& args, const py::kwargs& kwargs) {
    const c10::FunctionSchema* schema = functional_schema(name);
    TORCH_CHECK(schema != nullptr, "no such operator: ", name);
    std::vector<tt_type_desc_t> types;
    std::vector<std::vector<int64_t>> dims;
    if (kwargs.contains("_outs") && !kwargs["_outs"].is_none()) {
      auto outs = py::cast<std::vector<std::pair<py::object, std::vector<int64_t>>>>(kwargs["_outs"]);
      dims.reserve(outs.size());
      for (auto& [dtype, sizes] : outs) {
        dims.push_back(sizes);
        auto type = dtype.is_none() ? TT_DT_NONE : dtype_of(reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type);
        types.push_back({type, static_cast<int32_t>(sizes.size()), dims.back().data()});
      }
    }
    Bump memory;
    std::vector<c10::IValue> keep;
    keep.reserve(schema->arguments().size());
    size_t n = schema->arguments().size();
    TORCH_CHECK(args.size() <= n && n <= TT_MAX_ARGS, name, ": takes ", n, " arguments, ", args.size(), " given");
    auto* values = memory.get<tt_value_t>(n);
    for (size_t i = 0; i < n; i++) {
      const auto& a = schema->arguments()[i];
      py::object v;
      if (i < args.size()) {
        v = args[i];
      } else if (kwargs.contains(a.name().c_str())) {
        v = kwargs[a.name().c_str()];
      } else {
        TORCH_CHECK(a.default_value().has_value() || a.type()->kind() == c10::TypeKind::OptionalType, name, ": argument '", a.name(), "' is missing");
        keep.push_back(a.default_value().value_or(c10::IValue()));
        pack(keep.back(), a, memory, &values[i]);
        continue;
      }
      pack_python(v, a, memory, keep, &values[i]);
    }
    std::vector<int> ids(64);
    int count = static_cast<int>(ids.size());
    tt_status_t status = tt_graph_call(graph(), name.c_str(), static_cast<int>(n), values, static_cast<int>(types.size()),
                                       types.empty() ? nullptr : types.data(), ids.data(), &count);
    if (status != nullptr && count > static_cast<int>(ids.size())) {
      tt_status_free(status);
      ids.resize(static_cast<size_t>(count));
      status = tt_graph_call(graph(), name.c_str(), static_cast<int>(n), values, static_cast<int>(types.size()),
                             types.empty() ? nullptr : types.data(), ids.data(), &count);
    }
    ok(status);
    std::vector<Node> out;
    for (int i = 0; i < count; i++) out.push_back({ids[static_cast<size_t>(i)]});
    return out;
  }

  void where(const std::optional<std::string>& name, const std::optional<std::string>& file, int line) {
    tt_graph_where(graph(), name ? name->c_str() : nullptr, file ? file->c_str() : nullptr, line);
  }

  py::tuple type(Node node) {
    tt_dtype_t dtype = TT_DT_NONE;
    int rank = 0;
    int64_t dims[TT_MAX_RANK];
    ok(tt_graph_type(graph(), node.id, &dtype, &rank, dims));
    auto d = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPDtype(scalar_type_of(dtype))));
    return py::make_tuple(d, std::vector<int64_t>(dims, dims + rank));
  }

  // |strides|: of each result in memory, None row-major.
  void outputs(const std::vector<Node>& nodes, const std::optional<std::vector<int>>& donate,
               const std::optional<std::vector<std::optional<std::vector<int64_t>>>>& strides) {
    std::vector<int> ids = ids_of(nodes);
    TORCH_CHECK(!donate || donate->size() == ids.size(), "donate: one entry per output");
    ok(tt_graph_outputs(graph(), static_cast<int>(ids.size()), ids.data(), donate ? donate->data() : nullptr));
    for (size_t i = 0; strides && i < strides->size(); i++) {
      const auto& s = (*strides)[i];
      if (s) ok(tt_graph_output_strides(graph(), static_cast<int>(i), static_cast<int>(s->size()), s->data()));
    }
  }

  py::str text() {
    char* text = nullptr;
    size_t n = 0;
    ok(tt_graph_text(graph(), &text, &n));
    py::str out(text, n);
    tt_text_free(text);
    return out;
  }

  void write_back(int output) { ok(tt_graph_write_back(graph(), output)); }
  void precision(int precision) { tt_graph_precision(graph(), precision); }

  // ---- control flow (tt/graph.h)
  int region_begin(int kind) {
    int region = -1;
    ok(tt_graph_region_begin(graph(), static_cast<tt_region_kind_t>(kind), &region));
    return region;
  }

  Node region_arg(int region, at::ScalarType dtype, const std::vector<int64_t>& sizes) {
    Node out{};
    ok(tt_graph_region_arg(graph(), region, dtype_of(dtype), static_cast<int>(sizes.size()), sizes.data(), &out.id));
    return out;
  }

  void region_end(int region, const std::vector<Node>& results) {
    std::vector<int> ids = ids_of(results);
    ok(tt_graph_region_end(graph(), region, static_cast<int>(ids.size()), ids.data()));
  }

  std::vector<Node> branch(Node pred, int then_region, int else_region, int n) {
    std::vector<int> ids(static_cast<size_t>(n));
    ok(tt_graph_if(graph(), pred.id, then_region, else_region, n, ids.data()));
    return nodes_of_ids(ids);
  }

  std::vector<Node> loop(const std::vector<Node>& init, int condition, int body) {
    std::vector<int> in = ids_of(init), ids(in.size());
    ok(tt_graph_while(graph(), static_cast<int>(in.size()), in.data(), condition, body, ids.data()));
    return nodes_of_ids(ids);
  }

  Node row(Node x, Node index) {
    Node out{};
    ok(tt_graph_row(graph(), x.id, index.id, &out.id));
    return out;
  }

  Node set_row(Node x, Node index, Node value) {
    Node out{};
    ok(tt_graph_set_row(graph(), x.id, index.id, value.id, &out.id));
    return out;
  }

  // ---- bounded sizes (tt/graph.h)
  Node sizes(int n) {
    Node out{};
    ok(tt_graph_sizes(graph(), n, &out.id));
    return out;
  }

  Node slice(Node x, int dim, Node start, int64_t size) {
    Node out{};
    ok(tt_graph_slice(graph(), x.id, dim, start.id, size, &out.id));
    return out;
  }

  Node update(Node x, Node update, int dim, Node start) {
    Node out{};
    ok(tt_graph_update(graph(), x.id, update.id, dim, start.id, &out.id));
    return out;
  }

  // |factors|: (size or None for all of it, bound), outermost first.
  using Factors = std::vector<std::pair<std::optional<Node>, int64_t>>;
  static std::vector<tt_factor_t> factors_of(const Factors& factors) {
    std::vector<tt_factor_t> out;
    for (const auto& [size, bound] : factors) out.push_back({size ? size->id : -1, bound});
    return out;
  }

  Node mask(const Factors& factors) {
    auto f = factors_of(factors);
    Node out{};
    ok(tt_graph_mask(graph(), static_cast<int>(f.size()), f.data(), &out.id));
    return out;
  }

  Node regroup(Node x, int dim, const Factors& from, const Factors& to) {
    auto f = factors_of(from), t = factors_of(to);
    Node out{};
    ok(tt_graph_regroup(graph(), x.id, dim, static_cast<int>(f.size()), f.data(), static_cast<int>(t.size()), t.data(), &out.id));
    return out;
  }

  // IndexError with |message| when |bad| is true at a run.
  void check_index(Node bad, Node value, const std::string& message) {
    ok(tt_graph_check(graph(), bad.id, value.id, TT_OUT_OF_RANGE, message.c_str()));
  }

  std::unique_ptr<Program> compile(const std::string& overrides) {
    tt_program_t* program = nullptr;
    {
      py::gil_scoped_release no_gil;
      ok(tt_graph_compile(graph(), overrides.empty() ? nullptr : overrides.c_str(), &program));
    }
    return std::make_unique<Program>(program, device_);
  }

  void close() { graph_ = nullptr; }  // a borrowed graph is gone when its lowering is

 private:
  static std::vector<int> ids_of(const std::vector<Node>& nodes) {
    std::vector<int> ids;
    for (auto& n : nodes) ids.push_back(n.id);
    return ids;
  }

  static std::vector<Node> nodes_of_ids(const std::vector<int>& ids) {
    std::vector<Node> out;
    for (int id : ids) out.push_back({id});
    return out;
  }

  tt_graph_t* graph() {
    TORCH_CHECK(graph_ != nullptr, "this graph is closed");
    return graph_;
  }

  void pack(const c10::IValue& v, const c10::Argument& a, Bump& memory, tt_value_t* out) {
    Kind kind = kind_of(a.real_type());
    *out = tt_value_t{};
    if (kind == Kind::Tensor || kind == Kind::Tensors) return;  // a default tensor is always None
    pack_plain(v, kind, memory, out);
  }

  int node_of(py::handle v, const c10::Argument& a) {
    if (v.is_none()) return -1;
    if (py::isinstance<Node>(v)) return v.cast<Node>().id;
    if (THPVariable_Check(v.ptr())) return constant(THPVariable_Unpack(v.ptr())).id;
    if (PyBool_Check(v.ptr())) return constant(at::scalar_tensor(v.cast<bool>(), at::kBool)).id;
    if (PyLong_Check(v.ptr())) return constant(at::scalar_tensor(v.cast<int64_t>(), at::kLong)).id;
    if (PyFloat_Check(v.ptr())) return constant(at::scalar_tensor(v.cast<double>(), at::kDouble)).id;
    if (PyComplex_Check(v.ptr())) return constant(at::scalar_tensor(v.cast<c10::complex<double>>(), at::kComplexDouble)).id;
    TORCH_CHECK_TYPE(false, "argument '", a.name(), "': a node of the graph or a number is expected");
  }

  void pack_python(py::handle v, const c10::Argument& a, Bump& memory, std::vector<c10::IValue>& keep, tt_value_t* out) {
    Kind kind = kind_of(a.real_type());
    *out = tt_value_t{};
    if (v.is_none()) return;
    if (kind == Kind::Tensor) {
      out->kind = TT_V_NODE;
      out->n = 1;
      out->u.i = node_of(v, a);
      return;
    }
    if (kind == Kind::Tensors) {
      auto list = py::reinterpret_borrow<py::sequence>(v);
      auto* ids = memory.get<int64_t>(list.size());
      for (size_t i = 0; i < list.size(); i++) ids[i] = node_of(list[i], a);
      out->kind = TT_V_NODES;
      out->n = static_cast<int32_t>(list.size());
      out->u.ints = ids;
      return;
    }
    if (kind == Kind::Ignored || kind == Kind::Device) return;
    if (kind == Kind::Generator) {
      out->kind = TT_V_GENERATOR;
      return;
    }
    if (kind == Kind::Dtype && THPDtype_Check(v.ptr())) {
      out->kind = TT_V_DTYPE;
      out->u.i = dtype_of(reinterpret_cast<THPDtype*>(v.ptr())->scalar_type);
      return;
    }
    keep.push_back(torch::jit::toIValue(v, a.type()));
    pack_plain(keep.back(), kind, memory, out);
  }

  tt_graph_t* graph_ = nullptr;
  int device_;
  bool owned_;
};

// The values of the op's tensor arguments, in the shape of its arguments.
py::list nodes_of(const Call& call, tt_lower_t* lower) {
  const Overload& o = call.overload;
  py::list nodes;
  for (int i = 0; i < o.n_args - o.n_outs; i++) {
    const tt_value_t& v = call.values[i];
    if (v.kind == TT_V_TENSOR) {
      nodes.append(Node{tt_lower_arg(lower, i, 0)});
    } else if (v.kind == TT_V_TENSORS) {
      py::list items;
      for (int k = 0; k < v.n; k++) {
        int id = tt_lower_arg(lower, i, k);
        items.append(id < 0 ? py::object(py::none()) : py::cast(Node{id}));
      }
      nodes.append(items);
    } else {
      nodes.append(py::none());
    }
  }
  return nodes;
}

}  // namespace

tt_status_t trace(void* p, const tt_op_t*, tt_lower_t* lower) {
  Call& call = *static_cast<Call*>(p);
  const Overload& o = call.overload;
  if (o.variant == TT_FUNCTIONAL && o.handle.schema().is_mutable()) {  // results would be dropped: nothing takes them
    return tt_status_create(TT_DECLINED, "it writes to its arguments and has no functional form");
  }
  try {
    torch::jit::Stack stack = meta_arguments(call, true);
    const auto& arguments = o.handle.schema().arguments();
    py::gil_scoped_acquire gil;
    py::list args;
    for (int i = 0; i < o.n_args - o.n_outs; i++) {
      args.append(o.at[i] < 0 ? py::object(py::none()) : to_python(stack[static_cast<size_t>(i)], arguments[static_cast<size_t>(o.at[i])].real_type()));
    }
    auto graph = std::make_shared<Graph>(tt_lower_graph(lower), call.device);
    py::object result = py::module_::import("torch_tpu._decompose").attr("trace")(o.row, args, nodes_of(call, lower), graph);
    graph->close();
    if (py::isinstance<py::str>(result)) {  // the reason why not
      return tt_status_create(TT_DECLINED, result.cast<std::string>().c_str());
    }
    int i = 0;
    for (auto node : result.cast<std::vector<Node>>()) {
      tt_status_t status = tt_lower_result(lower, i++, node.id);
      if (status != nullptr) return status;
    }
    return nullptr;
  } catch (...) {
    call.error = std::current_exception();
  }
  return tt_status_create(TT_CANCELLED, "raised while tracing a decomposition");
}

void bind_graph(py::module_& m) {
  m.def("executable_export", [](int device, const std::string& text, const std::string& overrides) -> py::object {
    ensure_open();
    char* data = nullptr;
    size_t n = 0;
    ok(tt_executable_export(device, text.data(), text.size(), overrides.c_str(), &data, &n));
    if (data == nullptr) return py::none();
    py::bytes out(data, n);
    tt_text_free(data);
    return out;
  });
  m.def("executable_import", [](int device, const std::string& text, const std::string& overrides, const std::string& data) {
    ensure_open();
    ok(tt_executable_import(device, text.data(), text.size(), overrides.c_str(), data.data(), data.size()));
  });
  py::class_<Node>(m, "Node")
      .def_readonly("id", &Node::id)
      .def("__repr__", [](const Node& n) { return "Node(" + std::to_string(n.id) + ")"; });
  py::class_<Program>(m, "Program")
      .def("run", &Program::run, py::arg("args"), py::arg("generator") = py::none())
      .def("run_in_place", &Program::run_in_place)
      .def("run_bounded", &Program::run_bounded);
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Graph")
      .def(py::init<int, const std::string&>(), py::arg("device") = 0, py::arg("platform") = "")
      .def("param", [](Graph& g, py::object dtype, const std::vector<int64_t>& sizes) {
        return g.param(reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type, sizes);
      })
      .def("constant", &Graph::constant)
      .def("group", &Graph::group)
      .def("call", &Graph::call)
      .def("where", &Graph::where, py::arg("name") = py::none(), py::arg("file") = py::none(), py::arg("line") = 0)
      .def("type", &Graph::type)
      .def("outputs", &Graph::outputs, py::arg("nodes"), py::arg("donate") = py::none(), py::arg("strides") = py::none())
      .def("text", &Graph::text)
      .def("write_back", &Graph::write_back)
      .def("precision", &Graph::precision)
      .def("region_begin", &Graph::region_begin)
      .def("region_arg", [](Graph& g, int region, py::object dtype, const std::vector<int64_t>& sizes) {
        return g.region_arg(region, reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type, sizes);
      })
      .def("region_end", &Graph::region_end)
      .def("branch", &Graph::branch)
      .def("loop", &Graph::loop)
      .def("row", &Graph::row)
      .def("set_row", &Graph::set_row)
      .def("sizes", &Graph::sizes)
      .def("slice", &Graph::slice)
      .def("update", &Graph::update)
      .def("mask", &Graph::mask)
      .def("regroup", &Graph::regroup)
      .def("check_index", &Graph::check_index)
      .def("compile", &Graph::compile, py::arg("overrides") = "");
}

}  // namespace tt
