/* Protocol Buffers' wire format, read and written field by field. Reading is strict, and without
 * copies. Groups, which
 * nobody writes any more, are malformed here. */
#ifndef WG_DATA_TOKENIZER_PROTOBUF_H
#define WG_DATA_TOKENIZER_PROTOBUF_H

#include <stdint.h>

#include "base/array.h"

/* What is left of a message. */
typedef struct wg__protobuf {
    const unsigned char *at, *end;
} wg__protobuf;

typedef enum wg__wire_type {
    WG__WIRE_VARINT = 0,
    WG__WIRE_FIXED64 = 1,
    WG__WIRE_BYTES = 2,
    WG__WIRE_FIXED32 = 5
} wg__wire_type;

typedef struct wg__protobuf_field {
    int32_t number;
    wg__wire_type type;
    uint64_t value;    /* of a number of any type: its bits */
    const char *bytes; /* of a string, bytes or a message; borrowed */
    int64_t length;
} wg__protobuf_field;

/* Reads the next field: 1; 0 at the end of the message; -1 if it is malformed. */
int wg__protobuf_next(wg__protobuf *message, wg__protobuf_field *field);

/* The message that a field of bytes holds. */
wg__protobuf wg__protobuf_of(const wg__protobuf_field *field);

/* The number that a FIXED32 field holds as a float. */
float wg__protobuf_float(const wg__protobuf_field *field);

/* Append a field. A number is a varint, negative ones too. [MEMORY] */
int wg__protobuf_put_number(wg__text *message, int32_t number, int64_t value);
int wg__protobuf_put_float(wg__text *message, int32_t number, float value);
int wg__protobuf_put_bytes(wg__text *message, int32_t number, const char *bytes, int64_t length);

#endif
