// Conformance cases of hlo/builder.h: a case builds a small program and says what it must compute.
// The runner compiles each with a real PJRT plugin, runs it and compares; or compiles it for a TPU topology.
//
// Numbers are written as text: "1 2.5 nan -inf -0 true"; a complex number is two of them.
#ifndef TT_TEST_CTS_HLO_CASE_H_
#define TT_TEST_CTS_HLO_CASE_H_
#include "hlo/builder.h"

enum { CTS_MAX = 64 };

typedef struct cts_t {
  hlo_builder_t* b;
  int n_in, n_out;
  hlo_t in[CTS_MAX], out[CTS_MAX];
  const char *in_text[CTS_MAX], *out_text[CTS_MAX];
} cts_t;

typedef struct cts_case_t {
  const char* name;
  void (*build)(cts_t* c);
} cts_case_t;

// A parameter; |dims| is "2,3", "" for 0-d. Values repeat when there are fewer than elements.
hlo_t cts_in(cts_t* c, tt_dtype_t dtype, const char* dims, const char* values);
// |v| must have |dims| and these values ("?" accepts any). Exact for integers, else near; the sign of zero counts.
void cts_expect(cts_t* c, hlo_t v, const char* dims, const char* values);

extern const cts_case_t k_elementwise_cases[], k_shape_cases[], k_index_cases[], k_reduce_cases[], k_linalg_cases[],
    k_control_cases[];  // each ends with a NULL name

#endif  // TT_TEST_CTS_HLO_CASE_H_
