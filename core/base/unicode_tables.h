/* SPDX-License-Identifier: Apache-2.0
 * Tables behind unicode.c, made by sdk/src/ucd/make_ucd.py.
 */
#ifndef DAVIT_BASE_UNICODE_TABLES_H
#define DAVIT_BASE_UNICODE_TABLES_H

#include <stdint.h>

typedef struct DavitNfcRecord {
    uint16_t off, compat_off; /* into the pool, of the full decomposition: canonical, compat */
    uint8_t ccc;              /* canonical combining class */
    uint8_t n, compat_n;      /* code points of the decomposition; 0 = itself */
    uint8_t busy; /* 1: NFC may change it, move it, or join it to what stands before; 2: NFKC */
} DavitNfcRecord;

typedef struct DavitNfcPair {
    uint32_t first, second, joined;
} DavitNfcPair;

typedef struct DavitLower {
    uint32_t cp;
    uint32_t lower[2]; /* 0 = none */
} DavitLower;

/* Two levels: block of 128 code points, then record number. */
extern const uint16_t davit_nfc_index[];
extern const uint16_t davit_nfc_blocks[];
extern const DavitNfcRecord davit_nfc_records[];
extern const uint32_t davit_nfc_pool[];
extern const DavitNfcPair davit_nfc_pairs[]; /* sorted by first, second */
extern const uint32_t davit_nfc_n_pairs;
extern const DavitLower davit_lower[]; /* sorted by cp */
extern const uint32_t davit_lower_n;

#endif
