// Packing a call into its signature.
#include <string.h>

#include "base/alloc.h"
#include "runtime/entry.h"

int64_t rt_slot_elements(const rt_slot_t* s, tt_dtype_t dtype) {
  int64_t bytes = s->layout ? s->layout->size_bytes : (int64_t)s->nbytes;
  return bytes / (int64_t)tt_dtype_size(dtype);
}

static void put(rt_call_t* c, const void* data, size_t n) { tt_strbuf_append(&c->key, data, n); }
static void put8(rt_call_t* c, uint8_t v) { put(c, &v, 1); }
static void put32(rt_call_t* c, uint32_t v) { put(c, &v, 4); }
static void put64(rt_call_t* c, int64_t v) { put(c, &v, 8); }

static int slot_of(rt_call_t* c, tt_storage_t* s) {
  if (s->mark >> 20 == c->stamp) return (int)(s->mark & 0xfffff);
  if (!tt_grow(&c->slots, c->n_slots, &c->cap_slots, sizeof *c->slots)) return -1;
  s->mark = c->stamp << 20 | (uint64_t)c->n_slots;
  c->slots[c->n_slots] = (rt_slot_t){s, s->cell ? s->cell->layout : NULL, s->nbytes};
  return c->n_slots++;
}

static bool is_standard(const tt_tensor_t* t, const rt_layout_t* l) {
  if (!l || t->offset || l->dtype != (tt_dtype_t)t->dtype || l->rank != t->rank)
    return false;
  int64_t expect = 1;
  for (int d = t->rank - 1; d >= 0; d--) {
    if (l->dims[d] != t->sizes[d] || t->strides[d] != expect) return false;
    expect *= t->sizes[d] > 1 ? t->sizes[d] : 1;
  }
  return true;
}

static void put_layout(rt_call_t* c, const rt_layout_t* l, bool portable) {
  if (!portable) {
    put32(c, l ? l->id : 0);
    return;
  }
  put8(c, l ? (uint8_t)l->dtype : 0);
  if (!l) return;
  put8(c, (uint8_t)l->rank);
  put(c, l->dims, (size_t)l->rank * 8);
  put(c, l->physical, (size_t)l->rank * 8);
}

static tt_status_t pack_view(rt_call_t* c, const tt_tensor_t* t, rt_tref_t* ref) {
  tt_view_plan_t plan;
  const rt_slot_t* slot = &c->slots[ref->slot];
  int64_t total = rt_slot_elements(slot, (tt_dtype_t)t->dtype);
  tt_view_plan(total, t->rank, t->sizes, t->strides, t->offset, &plan);
  put(c, t->sizes, (size_t)t->rank * 8);
  put(c, t->strides, (size_t)t->rank * 8);
  if (!slot->layout) put64(c, (int64_t)slot->nbytes);
  put8(c, (uint8_t)plan.form);
  ref->first_digit = c->n_digits;
  if (plan.form == TT_VIEW_EMPTY) return NULL;
  int64_t last = t->offset;
  for (int d = 0; d < t->rank; d++) last += (t->sizes[d] - 1) * t->strides[d];
  if (last >= total)
    return tt_error(TT_OUT_OF_RANGE, "a view ends at element %lld of a storage of %lld elements (%zu bytes)",
                    (long long)last + 1, (long long)total, t->storage->nbytes);
  uint32_t moving = 0;
  for (int i = 0; i < plan.n; i++) {
    if (!tt_grow(&c->digits, c->n_digits, &c->cap_digits, sizeof *c->digits))
      return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    c->digits[c->n_digits++] = plan.start[i];
    if (plan.start[i]) moving |= 1u << i;
  }
  put32(c, moving);
  return NULL;
}

static tt_status_t pack_tensor(rt_call_t* c, const tt_tensor_t* t, bool written, bool portable) {
  if (t->flags & TT_T_UNDEFINED) {
    put8(c, 'U');
    return NULL;
  }
  if (!tt_grow(&c->trefs, c->n_trefs, &c->cap_trefs, sizeof *c->trefs))
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  rt_tref_t* ref = &c->trefs[c->n_trefs++];
  *ref = (rt_tref_t){.t = t, .slot = -1, .first_digit = c->n_digits, .written = written};
  if (t->flags & TT_T_HOST) {
    if (t->rank != 0)
      return tt_error(TT_INVALID_ARGUMENT,
                      "Expected all tensors to be on the same device, but found at least two devices, tpu:%d and cpu!", c->device);
    put8(c, 'H');
    put8(c, t->dtype);
    put8(c, t->flags);
    return NULL;
  }
  if (!t->storage) {  // no memory at all: must be empty
    put8(c, 'E');
    put8(c, t->dtype);
    put8(c, (uint8_t)t->rank);
    put(c, t->sizes, (size_t)t->rank * 8);
    put(c, t->strides, (size_t)t->rank * 8);
    return NULL;
  }
  if (t->storage->device != c->device)
    return tt_error(TT_INVALID_ARGUMENT,
                    "Expected all tensors to be on the same device, but found at least two devices, tpu:%d and tpu:%d!", c->device,
                    t->storage->device);
  ref->slot = slot_of(c, t->storage);
  if (ref->slot < 0) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  const rt_slot_t* slot = &c->slots[ref->slot];
  ref->standard = is_standard(t, slot->layout);
  put8(c, ref->standard ? 'S' : 'V');
  put32(c, (uint32_t)ref->slot);
  put_layout(c, slot->layout, portable);
  if (written) put64(c, (int64_t)slot->nbytes);
  if (ref->standard) return NULL;
  put8(c, t->dtype);
  put8(c, (uint8_t)t->rank);
  return pack_view(c, t, ref);
}

static void pack_scalar(rt_call_t* c, const tt_value_t* v, uint8_t cls) {
  put8(c, v->kind);
  if (cls == RT_ARG_RUNTIME) return;
  if (cls == RT_ARG_UNIT) {
    put8(c, v->kind == TT_V_FLOAT ? v->u.f == 1.0 : v->kind == TT_V_COMPLEX ? 0 : v->u.i == 1);
    return;
  }
  put64(c, v->u.i);  // the bits, whatever the kind
  if (v->kind == TT_V_COMPLEX) put(c, &v->im, 8);
}

static tt_status_t pack_value(rt_call_t* c, const tt_value_t* v, uint8_t cls, bool written, bool portable) {
  switch (v->kind) {
    case TT_V_TENSOR: return pack_tensor(c, v->u.tensor, written, portable);
    case TT_V_TENSORS:
      put8(c, 'L');
      put32(c, (uint32_t)v->n);
      for (int i = 0; i < v->n; i++) TT_TRY(pack_tensor(c, &v->u.tensor[i], written, portable));
      return NULL;
    case TT_V_INT: case TT_V_FLOAT: case TT_V_BOOL: case TT_V_COMPLEX: case TT_V_DTYPE: pack_scalar(c, v, cls); return NULL;
    case TT_V_INTS: case TT_V_FLOATS:
      put8(c, v->kind);
      put32(c, (uint32_t)v->n);
      if (cls == RT_ARG_STATIC) put(c, v->u.ints, (size_t)v->n * 8);
      return NULL;
    case TT_V_BOOLS:
      put8(c, v->kind);
      put32(c, (uint32_t)v->n);
      put(c, v->u.bools, (size_t)v->n);
      return NULL;
    case TT_V_SCALARS:
      put8(c, v->kind);
      put32(c, (uint32_t)v->n);
      for (int i = 0; i < v->n; i++) pack_scalar(c, &v->u.items[i], cls);
      return NULL;
    case TT_V_STRING:
      put8(c, v->kind);
      put32(c, (uint32_t)v->n);
      put(c, v->u.string, (size_t)v->n);
      return NULL;
    default: put8(c, v->kind); return NULL;
  }
}

// ---------------------------------------------------------------- 0-d host tensors
static int category(tt_dtype_t d) { return d == TT_BOOL ? 0 : tt_is_int(d) ? 1 : tt_is_float(d) ? 2 : 3; }

static bool fits(const tt_tensor_t* t, tt_dtype_t to) {
  unsigned char narrow[16], back[16];
  tt_dtype_t own = (tt_dtype_t)t->dtype;
  if (!tt_is_int(own) || !tt_is_int(to)) return true;
  rt_host_scalar_bits(t->host_data, own, to, narrow);
  rt_host_scalar_bits(narrow, to, own, back);
  return memcmp(back, t->host_data, tt_dtype_size(own)) == 0;
}

// A 0-d host tensor takes part in promotion by category only: give it to the program in the dtype the operation will
// use anyway, so that no f64 appears on a device that has none.
static void present_host_tensors(rt_call_t* c) {
  tt_dtype_t dims = TT_DT_NONE, zero = TT_DT_NONE;
  bool any = false;
  for (int i = 0; i < c->n_trefs; i++) {
    const rt_tref_t* r = &c->trefs[i];
    if (r->t->flags & TT_T_HOST) {
      any = true;
      continue;
    }
    tt_dtype_t d = (tt_dtype_t)r->t->dtype;
    if (r->t->rank) dims = tt_lattice_promote(dims, d);
    else zero = tt_lattice_promote(zero, d);
  }
  if (!any) return;
  bool wide = c->op->row && (c->op->row->flags & TT_OP_WIDE_NUMBERS);
  for (int i = 0; i < c->n_trefs; i++) {
    rt_tref_t* r = &c->trefs[i];
    if (!(r->t->flags & TT_T_HOST)) continue;
    tt_dtype_t own = (tt_dtype_t)r->t->dtype, common = dims != TT_DT_NONE ? dims : zero, as = own;
    bool wrapped = r->t->flags & TT_T_WRAPPED;
    if (common == TT_DT_NONE) as = own;
    else if (category(own) <= category(common) && (wrapped || dims != TT_DT_NONE)) as = common;
    else if (category(own) <= category(common)) as = tt_lattice_promote(own, common);
    else if (tt_is_complex(own)) as = common == TT_F64 || (g_rt.default_dtype == TT_F64 && !tt_is_float(common)) ? TT_C128 : TT_C64;
    else if (tt_is_float(own) && wrapped) as = g_rt.default_dtype;
    // The operation may compute in a wider dtype than the tensor's: uint8 / 300 divides by 300.
    if (!fits(r->t, as)) as = own;
    if (wide && as == common && (as == TT_BF16 || as == TT_F16)) as = TT_F32;
    r->present_as = (uint8_t)as;
  }
  for (int i = 0; i < c->n_trefs; i++)
    if (c->trefs[i].t->flags & TT_T_HOST) put8(c, c->trefs[i].present_as);
}

// ---------------------------------------------------------------- overlap
// PyTorch's rule: two dense tensors over one storage that share memory without being the same elements in the same order.
static bool partly_overlap(const tt_tensor_t* a, const tt_tensor_t* b) {
  int64_t na = rt_numel(a), nb = rt_numel(b);
  if (!na || !nb) return false;
  if (!tt_view_is_dense(a->rank, a->sizes, a->strides, NULL) || !tt_view_is_dense(b->rank, b->sizes, b->strides, NULL)) return false;
  int64_t sa = (int64_t)tt_dtype_size((tt_dtype_t)a->dtype), sb = (int64_t)tt_dtype_size((tt_dtype_t)b->dtype);
  int64_t a0 = a->offset * sa, a1 = a0 + na * sa, b0 = b->offset * sb, b1 = b0 + nb * sb;
  if (a0 == b0 && a1 == b1)
    return a->rank != b->rank || (a->rank && memcmp(a->strides, b->strides, (size_t)a->rank * sizeof(int64_t)) != 0);
  return a0 < b1 && b0 < a1;
}

// Writing through one tensor while reading another that shares part of its memory has no defined result. Offsets are
// not in the signature, so this is asked at every call in which a storage appears twice.
static tt_status_t refuse_overlap(const rt_call_t* c) {
  enum { MAX_PAIRS_OF = 64 };  // lists of parameters in one flat buffer do not overlap and are too many to compare
  if (c->op->desc.variant == TT_FUNCTIONAL || c->n_trefs <= c->n_slots || c->n_trefs > MAX_PAIRS_OF) return NULL;
  for (int i = 0; i < c->n_trefs; i++) {
    const rt_tref_t* w = &c->trefs[i];
    if (!w->written || w->slot < 0) continue;
    for (int j = 0; j < c->n_trefs; j++)
      if (j != i && c->trefs[j].slot == w->slot && partly_overlap(w->t, c->trefs[j].t))
        return tt_error(TT_INVALID_ARGUMENT,
                        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                        "memory location. Please clone() the tensor before performing the operation.");
  }
  return NULL;
}

tt_status_t rt_call_pack(rt_call_t* c, bool portable) {
  const tt_op_t* op = c->op;
  c->n_trefs = c->n_slots = c->n_digits = 0;
  c->stamp = ++g_rt.dispatch_number;
  tt_strbuf_clear(&c->key);
  if (portable) {
    tt_strbuf_puts(&c->key, g_rt.environment);
    tt_strbuf_printf(&c->key, "frontend %s\nop %s\n", g_rt.frontend.version ? g_rt.frontend.version : "", op->desc.name);
  } else {
    put(c, &op, sizeof op);
  }
  put8(c, (uint8_t)c->device);
  put8(c, (uint8_t)(c->device >> 8));
  put8(c, (uint8_t)g_rt.precision);
  put8(c, (uint8_t)g_rt.default_dtype);  // what PyTorch's meta kernels say depends on it
  for (int i = 0; i < op->desc.n_args; i++) {
    tt_status_t status = pack_value(c, &c->args[i], op->classes[i], op->desc.mutates[i], portable);
    if (status) return status;
  }
  for (int i = 0; i < c->n_sized; i++) {
    put32(c, (uint32_t)c->sized[i].rank);
    put(c, c->sized[i].sizes, (size_t)c->sized[i].rank * 8);
  }
  present_host_tensors(c);
  TT_TRY(refuse_overlap(c));
  return c->key.failed ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
}
