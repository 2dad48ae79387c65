// The whole public C interface of libtorchtpu in one include.
//
// tt/types.h  status codes, dtypes
// tt/eager.h  runtime, devices, storages and tensors, dispatch of single operations, events, generators
// tt/graph.h  whole programs through the op table: build, compile (cached), run
// tt/aot.h    programs compiled for chips that are not here
//
// A C program needs no Python and no PyTorch: see examples/train_spiral.c.
#ifndef TT_TT_H_
#define TT_TT_H_
#include "tt/aot.h"
#include "tt/eager.h"
#include "tt/graph.h"
#include "tt/types.h"
#endif  // TT_TT_H_
