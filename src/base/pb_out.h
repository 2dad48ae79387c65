// Writing protocol buffers, nothing else: the few option messages a compiler wants.
//
// Depends on: base/strbuf.
// Threads: thread-compatible.
// A nested message is written into a strbuf of its own and then added as bytes. Out of memory is the strbuf's sticky
// flag.
#ifndef TT_BASE_PB_OUT_H_
#define TT_BASE_PB_OUT_H_
#include <stdint.h>
#include "base/strbuf.h"

void tt_pb_varint(tt_strbuf_t* out, uint64_t value);         // without a tag
void tt_pb_int(tt_strbuf_t* out, int field, int64_t value);  // int32, int64, bool, enum
void tt_pb_double(tt_strbuf_t* out, int field, double value);
void tt_pb_bytes(tt_strbuf_t* out, int field, const void* data, size_t len);  // string, bytes, message, packed
void tt_pb_message(tt_strbuf_t* out, int field, const tt_strbuf_t* message);  // passes on |message|'s failure

#endif  // TT_BASE_PB_OUT_H_
