// Packing: IValues on PyTorch's stack -> the core's tagged values, without heap for any ordinary call.
#include "shim.h"

namespace tt {

// A tensor made from an address of the device (torch.save does that with a storage's): whose is it?
static void find_storage(const c10::TensorImpl* impl, tt_tensor_t* out) {
  const auto* data = static_cast<const char*>(impl->unsafe_storage().data());
  out->storage = tt_storage_find(data);
  if (out->storage == nullptr) raise_foreign_storage();
  out->offset += (data - static_cast<const char*>(tt_storage_address(out->storage))) / static_cast<int64_t>(impl->dtype().itemsize());
}

void describe(const at::Tensor& tensor, tt_tensor_t* out) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const auto sizes = impl->sizes();
  out->sizes = sizes.data();
  out->strides = impl->strides().data();
  out->rank = static_cast<int32_t>(sizes.size());
  TORCH_CHECK(out->rank <= TT_MAX_RANK, "the tpu device supports tensors of up to ", TT_MAX_RANK, " dimensions, got ", out->rank);
  out->dtype = static_cast<uint8_t>(dtype_of(c10::typeMetaToScalarType(impl->dtype())));
  out->offset = impl->storage_offset();
  uint8_t flags = 0;
  if (impl->is_conj()) flags |= TT_T_CONJ;
  if (impl->is_neg()) flags |= TT_T_NEG;
  if (impl->device_type() == kTpu) {
    out->storage = storage_of(impl);
    if (C10_UNLIKELY(out->storage == nullptr) && impl->numel() != 0) find_storage(impl, out);
    out->host_data = nullptr;
    out->device = impl->device().index();
  } else {
    out->storage = nullptr;
    out->host_data = impl->numel() == 0 ? nullptr : tensor.const_data_ptr();
    out->offset = 0;  // it is in the pointer
    out->device = -1;
    flags |= TT_T_HOST;
    if (impl->is_wrapped_number()) flags |= TT_T_WRAPPED;
  }
  out->flags = flags;
}

void Call::pack_tensor(const at::Tensor& tensor, tt_tensor_t* out, bool written) {
  if (!tensor.defined()) {
    *out = tt_tensor_t{};
    out->flags = TT_T_UNDEFINED;
    return;
  }
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (C10_LIKELY(impl->device_type() == kTpu)) {
    int index = impl->device().index();
    if (device < 0) {
      device = index;
    } else if (C10_UNLIKELY(device != index)) {
      raise_two_devices(c10::Device(kTpu, static_cast<c10::DeviceIndex>(device)), impl->device());
    }
  } else {
    if (C10_UNLIKELY(impl->device_type() != c10::DeviceType::CPU)) {
      raise_two_devices(c10::Device(kTpu, static_cast<c10::DeviceIndex>(device < 0 ? current_device() : device)), impl->device());
    }
    if (impl->dim() != 0 || written) host = &tensor;
    host_written |= written;
  }
  if (C10_UNLIKELY(impl->key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative})))) {
    // PyTorch resolves the bits before most ops; what lets them through (mm, …) gets values here.
    if (written) {
      lazy_written = true;
    } else {
      keep.push_back(std::make_unique<at::Tensor>(resolve_bits(tensor)));
      describe(*keep.back(), out);
      return;
    }
  }
  describe(tensor, out);
}

void pack_scalar(const at::Scalar& scalar, tt_value_t* out) {
  if (scalar.isBoolean()) {
    out->kind = TT_V_BOOL;
    out->u.i = scalar.toBool();
  } else if (scalar.isComplex()) {
    auto c = scalar.toComplexDouble();
    out->kind = TT_V_COMPLEX;
    out->u.f = c.real();
    out->im = c.imag();
  } else if (scalar.isFloatingPoint()) {
    out->kind = TT_V_FLOAT;
    out->u.f = scalar.toDouble();
  } else {
    out->kind = TT_V_INT;
    // A u64 beyond i64 keeps its bits.
    out->u.i = scalar.type() == c10::ScalarType::UInt64 ? static_cast<int64_t>(scalar.toUInt64()) : scalar.toLong();
  }
}

namespace {

int64_t int_of(const c10::IValue& v) {
  if (C10_LIKELY(v.isInt())) return v.toInt();
  return v.toSymInt().guard_int(__FILE__, __LINE__);
}

double float_of(const c10::IValue& v) {
  if (v.isDouble()) return v.toDouble();
  return v.toScalar().toDouble();
}

void pack_list(const c10::IValue& value, Kind kind, Bump& memory, tt_value_t* out) {
  c10::ArrayRef<c10::IValue> list = value.toListRef();
  size_t n = list.size();
  out->n = static_cast<int32_t>(n);
  switch (kind) {
    case Kind::Ints: {
      auto* ints = memory.get<int64_t>(n);
      for (size_t i = 0; i < n; i++) ints[i] = int_of(list[i]);
      out->kind = TT_V_INTS;
      out->u.ints = ints;
      break;
    }
    case Kind::Floats: {
      auto* floats = memory.get<double>(n);
      for (size_t i = 0; i < n; i++) floats[i] = float_of(list[i]);
      out->kind = TT_V_FLOATS;
      out->u.floats = floats;
      break;
    }
    case Kind::Bools: {
      auto* bools = memory.get<uint8_t>(n);
      for (size_t i = 0; i < n; i++) bools[i] = list[i].toBool();
      out->kind = TT_V_BOOLS;
      out->u.bools = bools;
      break;
    }
    default: {
      auto* items = memory.get<tt_value_t>(n);
      for (size_t i = 0; i < n; i++) {
        items[i] = tt_value_t{};
        pack_scalar(list[i].toScalar(), &items[i]);
      }
      out->kind = TT_V_SCALARS;
      out->u.items = items;
    }
  }
}

}  // namespace

void pack_plain(const c10::IValue& value, Kind kind, Bump& memory, tt_value_t* out) {
  *out = tt_value_t{};
  if (value.isNone()) return;  // TT_V_NONE
  switch (kind) {
    case Kind::Int:
      out->kind = TT_V_INT;
      out->u.i = int_of(value);
      return;
    case Kind::Float:
      out->kind = TT_V_FLOAT;
      out->u.f = float_of(value);
      return;
    case Kind::Bool:
      out->kind = TT_V_BOOL;
      out->u.i = value.isBool() ? value.toBool() : value.toSymBool().guard_bool(__FILE__, __LINE__);
      return;
    case Kind::Scalar:
      if (value.isInt()) {
        out->kind = TT_V_INT;
        out->u.i = value.toInt();
      } else if (value.isDouble()) {
        out->kind = TT_V_FLOAT;
        out->u.f = value.toDouble();
      } else {
        pack_scalar(value.toScalar(), out);
      }
      return;
    case Kind::Ints:
    case Kind::Floats:
    case Kind::Bools:
    case Kind::Scalars:
      if (!value.isList()) {  // a number where a list is declared: int[2] given as 3
        auto* items = memory.get<tt_value_t>(1);
        Kind one = kind == Kind::Ints ? Kind::Int : kind == Kind::Floats ? Kind::Float : kind == Kind::Bools ? Kind::Bool : Kind::Scalar;
        pack_plain(value, one, memory, items);
        *out = *items;
        return;
      }
      pack_list(value, kind, memory, out);
      return;
    case Kind::String: {
      if (!value.isString()) return;
      const std::string& text = value.toStringRef();
      out->kind = TT_V_STRING;
      out->n = static_cast<int32_t>(text.size());
      out->u.string = text.c_str();
      return;
    }
    case Kind::Dtype:
      out->kind = TT_V_DTYPE;
      out->u.i = dtype_of(value.toScalarType());
      return;
    case Kind::Generator:
      out->kind = TT_V_GENERATOR;
      out->u.generator = rng_of(value.toGenerator());
      return;
    default: return;  // devices, layouts and memory formats say nothing to a lowering
  }
}

void Call::pack_value(const c10::IValue& value, Kind kind, bool written, tt_value_t* out) {
  if (kind == Kind::Tensor) {
    *out = tt_value_t{};
    if (value.isNone() || !value.toTensor().defined()) return;
    auto* tensor = memory.get<tt_tensor_t>(1);
    pack_tensor(value.toTensor(), tensor, written);
    out->kind = TT_V_TENSOR;
    out->n = 1;
    out->u.tensor = tensor;
    return;
  }
  if (kind == Kind::Tensors) {
    *out = tt_value_t{};
    if (value.isNone()) return;
    c10::ArrayRef<c10::IValue> list = value.toListRef();
    auto* tensors = memory.get<tt_tensor_t>(list.size());
    static const at::Tensor undefined;
    for (size_t i = 0; i < list.size(); i++) {
      pack_tensor(list[i].isNone() ? undefined : list[i].toTensor(), &tensors[i], written);
    }
    out->kind = TT_V_TENSORS;
    out->n = static_cast<int32_t>(list.size());
    out->u.tensor = tensors;
    return;
  }
  pack_plain(value, kind, memory, out);
}

void Call::pack() {
  device = -1;
  host = nullptr;
  host_written = lazy_written = false;
  static const c10::IValue none;
  for (int i = 0; i < overload.n_args; i++) {
    int position = overload.at[i];
    pack_value(position < 0 ? none : arg(position), overload.kinds[i], overload.mutates[i] != 0, &values[i]);
  }
  if (device >= 0) return;
  if (overload.device_arg >= 0) {
    const c10::IValue& v = arg(overload.device_arg);
    if (!v.isNone() && v.toDevice().has_index()) device = v.toDevice().index();
  }
  if (device < 0) device = current_device();
}

}  // namespace tt
