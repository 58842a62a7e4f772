/* SPDX-License-Identifier: Apache-2.0
 * Little-endian reads and checked size arithmetic.
 *
 * The one function that turns a shape and a block into bytes lives in the SDK
 * (davit/help/bytes.h), because formats need it too; core code includes this header.
 */
#ifndef DAVIT_BASE_BYTES_H
#define DAVIT_BASE_BYTES_H

#include <davit/help/bytes.h>

#endif
