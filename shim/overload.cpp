// Digesting ATen overloads: which row of the op table serves them, and how their arguments map to it.
//
// One rule for all: the functional overload names the row; `op_` and `op.out` are recognised by comparing schemas, so
// that nobody writes variants by hand. An overload which has no functional sibling goes by its own name.
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "shim.h"

namespace tt {

namespace {

using c10::Argument;
using c10::FunctionSchema;
using c10::OperatorHandle;

bool is_written(const Argument& a) { return a.alias_info() != nullptr && a.alias_info()->isWrite(); }
bool is_out(const Argument& a) { return a.kwarg_only() && is_written(a); }

bool is_tensor_option(const Argument& a) {
  const std::string& n = a.name();
  return n == "dtype" || n == "layout" || n == "device" || n == "pin_memory";
}

bool same(const Argument& a, const Argument& b) { return a.name() == b.name() && *a.real_type() == *b.real_type(); }

bool is_functional(const FunctionSchema& s) {
  for (const auto& a : s.arguments()) {
    if (is_written(a)) return false;
  }
  return true;
}

// Every operator, by name without overload.
class Index {
 public:
  const std::vector<OperatorHandle>& find(const std::string& name) {
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      auto it = map_.find(name);
      if (it != map_.end()) return it->second;
    }
    std::unique_lock<std::shared_mutex> lock(mutex_);
    if (map_.empty()) {
      for (const auto& n : c10::Dispatcher::singleton().getAllOpNames()) {
        if (auto h = c10::Dispatcher::singleton().findSchema(n)) map_[n.name].push_back(*h);
      }
    }
    return map_[name];  // an operator defined later has no siblings: it goes by its own name
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string, std::vector<OperatorHandle>> map_;
};

Index& index() {
  static Index* instance = new Index;
  return *instance;
}

// True when |f| takes the arguments of |s| without its outs; |at| maps |f|'s arguments to |s|'s, -1 for dropped options.
// An out= form may write what |f| writes too (running statistics).
bool matches(const FunctionSchema& f, const FunctionSchema& s, bool out, std::vector<int8_t>* at) {
  if (!out && !is_functional(f)) return false;
  at->clear();
  size_t n = s.arguments().size(), next = 0;
  while (out && n > 0 && is_out(s.arguments()[n - 1])) n--;
  for (const auto& a : f.arguments()) {
    if (next < n && same(a, s.arguments()[next])) {
      if (is_written(a) && !is_written(s.arguments()[next])) return false;
      at->push_back(static_cast<int8_t>(next++));
    } else if (out && is_tensor_option(a)) {
      at->push_back(-1);
    } else {
      return false;
    }
  }
  return next == n;
}

std::string row_name(const std::string& name, const std::string& overload) {
  std::string base = name.rfind("aten::", 0) == 0 ? name.substr(6) : name;
  return overload.empty() ? base : base + "." + overload;
}

// __ilshift__ and its like write what __lshift__ returns.
bool is_inplace_dunder(const std::string& name) {
  return name.compare(0, 9, "aten::__i") == 0 && name.size() > 11 && name.compare(name.size() - 2, 2, "__") == 0;
}

// In-place operators whose functional form has another name.
std::string functional_base(const std::string& name) {
  if (name == "aten::normal_") return "aten::normal_functional";
  if (is_inplace_dunder(name)) return "aten::__" + name.substr(9);
  return name.substr(0, name.size() - 1);
}

bool is_inplace_name(const std::string& name) {
  return name.size() > 7 && name.back() == '_' && (name[name.size() - 2] != '_' || is_inplace_dunder(name));
}

struct Relation {
  std::string row;
  tt_variant_t variant;
  std::vector<int8_t> at;
};

bool find_sibling(const std::string& base, const FunctionSchema& s, bool out, Relation* r) {
  bool found = false;
  std::vector<int8_t> at;
  for (const auto& h : index().find(base)) {
    const auto& f = h.schema();
    if (!matches(f, s, out, &at)) continue;
    std::string row = row_name(f.name(), f.overload_name());
    bool has = tt_table_has(row.c_str());
    if (found && !has) continue;
    r->row = std::move(row);
    r->at = at;
    found = true;
    if (has) break;
  }
  return found;
}

Relation relation_of(const OperatorHandle& handle) {
  const FunctionSchema& s = handle.schema();
  Relation r;
  r.row = row_name(s.name(), s.overload_name());
  r.variant = TT_FUNCTIONAL;
  size_t n = s.arguments().size();
  bool functional = is_functional(s);
  bool out = n > 0 && is_out(s.arguments()[n - 1]);
  bool inplace = !functional && !out && is_inplace_name(s.name());
  if (!tt_table_has(r.row.c_str())) {
    // Where the functional form is only a wrapper, the operator behind it has the row: _adaptive_avg_pool2d, …
    bool found = out && find_sibling(s.name(), s, true, &r);
    if (out && (!found || !tt_table_has(r.row.c_str()))) {
      Relation behind;
      if (find_sibling("aten::_" + s.name().substr(6), s, true, &behind) && tt_table_has(behind.row.c_str())) {
        r = behind;
        found = true;
      }
    }
    if (found) {
      r.variant = TT_OUT;
      return r;
    }
    if (inplace && find_sibling(functional_base(s.name()), s, false, &r)) {
      r.variant = TT_INPLACE;
      return r;
    }
  }
  // Its own row, or none. What it returns are its written arguments: the row's results are those.
  if (inplace && !s.returns().empty()) r.variant = TT_INPLACE;
  r.at.resize(n);
  for (size_t i = 0; i < n; i++) r.at[i] = static_cast<int8_t>(i);
  return r;
}

// Operators that update running statistics without saying so in their schema.
bool writes_silently(const FunctionSchema& s, const Argument& a) {
  static const char* const names[] = {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm",
                                      "aten::batch_norm_update_stats"};
  if (a.name() != "running_mean" && a.name() != "running_var") return false;
  for (const char* n : names) {
    if (s.name() == n) return true;
  }
  return false;
}

}  // namespace

Kind kind_of(const c10::TypePtr& type_in) {
  c10::TypePtr type = type_in;
  if (type->kind() == c10::TypeKind::OptionalType) type = type->castRaw<c10::OptionalType>()->getElementType();
  switch (type->kind()) {
    case c10::TypeKind::TensorType: return Kind::Tensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return Kind::Int;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType: return Kind::Float;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType: return Kind::Bool;
    case c10::TypeKind::NumberType: return Kind::Scalar;
    case c10::TypeKind::AnyType:  // the name of a process group
    case c10::TypeKind::StringType: return Kind::String;
    case c10::TypeKind::ScalarTypeType: return Kind::Dtype;
    case c10::TypeKind::DeviceObjType: return Kind::Device;
    case c10::TypeKind::GeneratorType: return Kind::Generator;
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType: return Kind::Ignored;
    case c10::TypeKind::ListType: break;
    default: return Kind::Unknown;
  }
  switch (kind_of(type->castRaw<c10::ListType>()->getElementType())) {
    case Kind::Tensor: return Kind::Tensors;
    case Kind::Int: return Kind::Ints;
    case Kind::Float: return Kind::Floats;
    case Kind::Bool: return Kind::Bools;
    case Kind::Scalar: return Kind::Scalars;
    default: return Kind::Unknown;
  }
}

void relate(const OperatorHandle& handle, std::string* out_row, tt_variant_t* out_variant) {
  Relation r = relation_of(handle);
  *out_row = std::move(r.row);
  *out_variant = r.variant;
}

static std::optional<OperatorHandle> functional_handle(const std::string& row) {
  size_t dot = row.find('.');
  std::string base = row.substr(0, dot);
  c10::OperatorName name(base.find("::") == std::string::npos ? "aten::" + base : base,
                         dot == std::string::npos ? "" : row.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchema(name);
}

const FunctionSchema* functional_schema(const std::string& row) {
  auto h = functional_handle(row);
  return h ? &h->schema() : nullptr;
}

std::vector<OperatorHandle> overloads_of(const std::string& name) { return index().find(name); }

Overload::Overload(const OperatorHandle& handle_in) : handle(handle_in) {
  const FunctionSchema& s = handle.schema();
  Relation r = relation_of(handle);
  row = r.row;
  variant = r.variant;
  full_name_ = s.name() + (s.overload_name().empty() ? "" : "." + s.overload_name());
  n_schema_args = static_cast<int>(s.arguments().size());
  size_t first_out = s.arguments().size();
  if (variant == TT_OUT) {
    while (first_out > 0 && is_out(s.arguments()[first_out - 1])) first_out--;
    n_outs = n_schema_args - static_cast<int>(first_out);
    for (size_t i = first_out; i < s.arguments().size(); i++) r.at.push_back(static_cast<int8_t>(i));
    functional = functional_handle(row);
  }
  TORCH_CHECK(r.at.size() <= TT_MAX_ARGS, full_name_, ": too many arguments");
  n_args = static_cast<int>(r.at.size());

  tt_op_desc_t desc{};
  desc.name = full_name_.c_str();
  desc.row = row.c_str();
  desc.variant = static_cast<uint8_t>(variant);
  desc.n_args = static_cast<uint8_t>(n_args);
  desc.n_returns = static_cast<uint8_t>(s.returns().size());
  desc.n_outs = static_cast<uint8_t>(n_outs);
  for (int i = 0; i < n_args; i++) {
    at[i] = r.at[i];
    kinds[i] = Kind::None;
    mutates[i] = 0;
    if (at[i] < 0) continue;
    const Argument& a = s.arguments()[at[i]];
    kinds[i] = kind_of(a.real_type());
    mutates[i] = desc.mutates[i] = is_written(a) || writes_silently(s, a);
    bool scalar = kinds[i] == Kind::Scalar || kinds[i] == Kind::Float || kinds[i] == Kind::Scalars || kinds[i] == Kind::Floats;
    desc.is_scalar[i] = scalar;
    has_numbers |= kinds[i] == Kind::Scalar || kinds[i] == Kind::Scalars;
    if (kinds[i] == Kind::Device) device_arg = at[i];
    if (a.name() == "indices" && kinds[i] == Kind::Tensors && row.find("index") != std::string::npos) indices_arg = at[i];
  }
  for (const auto& ret : s.returns()) {
    int8_t which = kFresh;
    if (ret.alias_info() != nullptr) {
      if (!ret.alias_info()->isWrite()) is_view = true;
      for (int i = 0; i < n_schema_args && ret.alias_info()->isWrite(); i++) {
        const auto* info = s.arguments()[i].alias_info();
        if (info != nullptr && info->beforeSets() == ret.alias_info()->beforeSets()) which = static_cast<int8_t>(i);
      }
    }
    returns.push_back(which);
    // The only ints that ops return beside tensors: attention's sequence lengths.
    return_length_of.push_back(kind_of(ret.real_type()) != Kind::Int ? -1 : ret.name() == "max_k" ? 1 : 0);
    return_is_list.push_back(kind_of(ret.real_type()) == Kind::Tensors);
  }
  uint32_t flags = tt_table_flags(row.c_str());
  takes_host = (flags & TT_OP_HOST_OPERANDS) != 0;
  more_dtypes = (flags & TT_OP_MORE_DTYPES) != 0;
  sized_late = (flags & TT_OP_DATA_DEPENDENT) != 0 || ((flags & TT_OP_NO_META) != 0 && !takes_host);
  ok(tt_op_create(&desc, &op));
}

namespace {
std::shared_mutex g_overloads_mutex;
std::unordered_map<c10::OperatorName, Overload*> g_overloads;
}  // namespace

Overload* overload_of(const OperatorHandle& handle) {
  {
    std::shared_lock<std::shared_mutex> lock(g_overloads_mutex);
    auto it = g_overloads.find(handle.operator_name());
    if (it != g_overloads.end()) return it->second;
  }
  auto made = std::make_unique<Overload>(handle);
  std::unique_lock<std::shared_mutex> lock(g_overloads_mutex);
  auto& slot = g_overloads[handle.operator_name()];
  if (slot == nullptr) slot = made.release();
  return slot;
}

std::vector<Overload*> all_overloads() {
  std::shared_lock<std::shared_mutex> lock(g_overloads_mutex);
  std::vector<Overload*> out;
  out.reserve(g_overloads.size());
  for (auto& kv : g_overloads) out.push_back(kv.second);
  return out;
}

}  // namespace tt
