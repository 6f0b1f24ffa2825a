/* Protocol Buffers' wire format. See protobuf.h. */
#include <string.h>

#include "data/tokenizer/protobuf.h"

#define LARGEST_NUMBER ((1 << 29) - 1) /* of a field */

static int read_varint(wg__protobuf *message, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (message->at == message->end)
            return -1;
        unsigned char byte = *message->at++;
        if (shift == 63 && byte > 1)
            return -1;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return 0;
    }
    return -1;
}

/* Little-endian, whatever the machine is. */
static int read_fixed(wg__protobuf *message, int bytes, uint64_t *value) {
    if (message->end - message->at < bytes)
        return -1;
    *value = 0;
    for (int i = 0; i < bytes; i++)
        *value |= (uint64_t)*message->at++ << (8 * i);
    return 0;
}

static int read_bytes(wg__protobuf *message, wg__protobuf_field *field) {
    uint64_t length;
    if (read_varint(message, &length) < 0 || length > (uint64_t)(message->end - message->at))
        return -1;
    field->bytes = (const char *)message->at;
    field->length = (int64_t)length;
    message->at += length;
    return 0;
}

int wg__protobuf_next(wg__protobuf *message, wg__protobuf_field *field) {
    *field = (wg__protobuf_field){0};
    if (message->at == message->end)
        return 0;
    uint64_t tag;
    if (read_varint(message, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > LARGEST_NUMBER)
        return -1;
    field->number = (int32_t)(tag >> 3);
    field->type = (wg__wire_type)(tag & 7);
    int status = -1;
    if (field->type == WG__WIRE_VARINT)
        status = read_varint(message, &field->value);
    else if (field->type == WG__WIRE_FIXED64 || field->type == WG__WIRE_FIXED32)
        status = read_fixed(message, field->type == WG__WIRE_FIXED64 ? 8 : 4, &field->value);
    else if (field->type == WG__WIRE_BYTES)
        status = read_bytes(message, field);
    return status < 0 ? -1 : 1;
}

wg__protobuf wg__protobuf_of(const wg__protobuf_field *field) {
    const unsigned char *begin = (const unsigned char *)field->bytes;
    return (wg__protobuf){begin, begin + field->length};
}

float wg__protobuf_float(const wg__protobuf_field *field) {
    uint32_t bits = (uint32_t)field->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- Writing ---- */

static int put_varint(wg__text *message, uint64_t value) {
    char bytes[10];
    int count = 0;
    for (; value > 127; value >>= 7)
        bytes[count++] = (char)(value | 128);
    bytes[count++] = (char)value;
    return wg__text_append(message, bytes, count);
}

static int put_tag(wg__text *message, int32_t number, wg__wire_type type) {
    return put_varint(message, (uint64_t)number << 3 | type);
}

int wg__protobuf_put_number(wg__text *message, int32_t number, int64_t value) {
    return put_tag(message, number, WG__WIRE_VARINT) < 0 ? -1
                                                         : put_varint(message, (uint64_t)value);
}

int wg__protobuf_put_float(wg__text *message, int32_t number, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const char bytes[] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24)};
    return put_tag(message, number, WG__WIRE_FIXED32) < 0 ? -1 : wg__text_append(message, bytes, 4);
}

int wg__protobuf_put_bytes(wg__text *message, int32_t number, const char *bytes, int64_t length) {
    if (put_tag(message, number, WG__WIRE_BYTES) < 0 || put_varint(message, (uint64_t)length) < 0)
        return -1;
    return wg__text_append(message, length ? bytes : "", length);
}
