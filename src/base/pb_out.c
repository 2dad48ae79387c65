#include "base/pb_out.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void tt_pb_varint(tt_strbuf_t* out, uint64_t value) {
  uint8_t bytes[10];
  size_t n = 0;
  do {
    uint8_t low = value & 0x7f;
    value >>= 7;
    bytes[n++] = (uint8_t)(low | (value ? 0x80 : 0));
  } while (value);
  tt_strbuf_append(out, bytes, n);
}

static void put_tag(tt_strbuf_t* out, int field, int wire) {
  tt_pb_varint(out, ((uint64_t)field << 3) | (uint64_t)wire);
}

void tt_pb_int(tt_strbuf_t* out, int field, int64_t value) {
  put_tag(out, field, WIRE_VARINT);
  tt_pb_varint(out, (uint64_t)value);
}

void tt_pb_double(tt_strbuf_t* out, int field, double value) {
  uint64_t bits;
  uint8_t bytes[8];
  memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(bits >> (8 * i));  // little endian on any host
  put_tag(out, field, WIRE_FIXED64);
  tt_strbuf_append(out, bytes, sizeof bytes);
}

void tt_pb_bytes(tt_strbuf_t* out, int field, const void* data, size_t len) {
  put_tag(out, field, WIRE_BYTES);
  tt_pb_varint(out, len);
  tt_strbuf_append(out, data, len);
}

void tt_pb_message(tt_strbuf_t* out, int field, const tt_strbuf_t* message) {
  if (message->failed) out->failed = true;
  tt_pb_bytes(out, field, message->data, message->len);
}
