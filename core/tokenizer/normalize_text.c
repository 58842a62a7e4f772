/* SPDX-License-Identifier: Apache-2.0
 * Character by character.
 */
#include "tokenizer/normalize_text.h"

#include <davit/help/ucd.h>

#include "base/text_flags.h"

bool davit_drop_append(GString *out, const char *text, size_t len, uint32_t flag)
{
    bool cut = false;
    uint32_t n;

    for (size_t at = 0; at < len; at += n) {
        const uint32_t cp = davit_ucd_decode(text, len, at, &n);

        if (cp >= 0x300 && (davit_text_flags(cp) & flag)) /* the first mark of any kind */
            cut |= at == 0;
        else
            g_string_append_len(out, text + at, (gssize)n);
    }
    return cut;
}

bool davit_bert_clean_append(GString *out, const char *text, size_t len)
{
    bool cut = false;
    uint32_t n;

    for (size_t at = 0; at < len; at += n) {
        const uint32_t cp = davit_ucd_decode(text, len, at, &n);

        if (davit_ucd_bits(cp) & DAVIT_UCD_SPACE && !(davit_text_flags(cp) & DAVIT_TEXT_BERT_DROP))
            g_string_append_c(out, ' ');
        else if (davit_text_flags(cp) & DAVIT_TEXT_BERT_DROP)
            cut |= at == 0;
        else
            g_string_append_len(out, text + at, (gssize)n);
    }
    return cut;
}

/* The blocks that BERT calls Chinese; the gap before U+2B920 is theirs. */
static bool is_chinese(uint32_t cp)
{
    return (cp >= 0x3400 && cp <= 0x4dbf) || (cp >= 0x4e00 && cp <= 0x9fff) ||
           (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x20000 && cp <= 0x2a6df) ||
           (cp >= 0x2a700 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
           (cp >= 0x2f800 && cp <= 0x2fa1f);
}

void davit_bert_chinese_append(GString *out, const char *text, size_t len)
{
    uint32_t n;

    for (size_t at = 0; at < len; at += n) {
        const bool chinese = is_chinese(davit_ucd_decode(text, len, at, &n));

        if (chinese)
            g_string_append_c(out, ' ');
        g_string_append_len(out, text + at, (gssize)n);
        if (chinese)
            g_string_append_c(out, ' ');
    }
}

static bool nmt_drops(uint32_t cp)
{
    return (cp >= 1 && cp <= 8) || cp == 0xb || (cp >= 0xe && cp <= 0x1f) || cp == 0x7f ||
           cp == 0x8f || cp == 0x9f;
}

static bool nmt_blank(uint32_t cp)
{
    return cp == 0x9 || cp == 0xa || cp == 0xc || cp == 0xd || cp == 0x1680 ||
           (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x2581 || cp == 0xfeff || cp == 0xfffd;
}

bool davit_nmt_append(GString *out, const char *text, size_t len)
{
    bool cut = false;
    uint32_t n;

    for (size_t at = 0; at < len; at += n) {
        const uint32_t cp = davit_ucd_decode(text, len, at, &n);

        if (nmt_drops(cp))
            cut |= at == 0;
        else if (nmt_blank(cp))
            g_string_append_c(out, ' ');
        else
            g_string_append_len(out, text + at, (gssize)n);
    }
    return cut;
}

size_t davit_count_chars(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((uint8_t)text[i] & 0xc0) != 0x80;
    return n;
}
