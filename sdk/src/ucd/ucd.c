/* SPDX-License-Identifier: Apache-2.0
 * Reading and checking UTF-8 (RFC 3629). The class tables are in ucd_tables.c.
 */
#include <davit/help/ucd.h>

#include <string.h>

/* Length of the sequence that @lead begins, 0 if it begins none. */
static uint32_t sequence_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2)
        return 0;
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0)
        return 3;
    return lead < 0xf5 ? 4 : 0;
}

uint32_t davit_ucd_decode(const char *text, uint64_t n, uint64_t off, uint32_t *out_len)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text + off;
    uint32_t len = sequence_length(p[0]);
    uint32_t cp;

    *out_len = 1;
    if (len == 0 || len > n - off)
        return 0xfffd;
    if (len == 1)
        return p[0];

    cp = p[0] & (0xffu >> (len + 1));
    for (uint32_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0xfffd;
        cp = cp << 6 | (p[i] & 0x3fu);
    }
    if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return 0xfffd;

    *out_len = len;
    return cp;
}

uint64_t davit_ucd_back(const char *text, uint64_t off)
{
    uint64_t at = off - 1;

    for (int i = 0; i < 3 && at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80; i++)
        at--;
    return at;
}

uint64_t davit_ucd_check(const char *text, uint64_t n)
{
    uint64_t off = 0;

    while (off < n) {
        uint64_t eight;
        uint32_t len;

        for (; n - off >= 4; off += 3) { /* U+1000 to U+CFFF: one load of four bytes */
            const unsigned char *p = (const unsigned char *)text + off;
            const uint32_t bytes =
                ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]) >> 8;

            if (bytes - 0xe18080u > 0xecbfbfu - 0xe18080u || (bytes & 0xc0c0u) != 0x8080u)
                break;
        }
        if (off == n)
            break;
        if ((unsigned char)text[off] < 128 && n - off >= sizeof eight) {
            memcpy(&eight, text + off, sizeof eight);
            if ((eight & 0x8080808080808080ull) == 0) {
                off += sizeof eight;
                continue;
            }
        }
        /* U+FFFD itself is three bytes long, so length 1 tells a broken byte. */
        if (davit_ucd_next(text, n, off, &len) >= 0x80 && len == 1)
            return off;
        off += len;
    }
    return n;
}
