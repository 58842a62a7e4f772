/* SPDX-License-Identifier: Apache-2.0
 * Protobuf messages, a field at a time. Format: "Encoding", Protocol Buffers
 * documentation; groups (wire types 3 and 4) are refused.
 */
#ifndef DAVIT_TOKENIZER_PROTOBUF_H
#define DAVIT_TOKENIZER_PROTOBUF_H

#include <stdint.h>

#include <davit/suites.h>

/* A number (wire 0), or bytes: of a fixed width (1, 5) or of a length (2). */
typedef struct DavitProtobufField {
    uint32_t number, wire;
    uint64_t value;
    davit_span bytes; /* (borrowed) inside the message */
} DavitProtobufField;

/* Next field of the message @rest, which advances. 1 = read, 0 = end, -1 = malformed. */
int davit_protobuf_next(davit_span *rest, DavitProtobufField *out);

/* The float of a field of wire type 5: four bytes, little-endian. */
float davit_protobuf_float(davit_span bytes);

#endif
