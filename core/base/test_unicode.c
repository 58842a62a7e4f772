/* SPDX-License-Identifier: Apache-2.0
 * NFC and lower case: frozen answers of tokenizers 0.23.3, and linear work on mark runs.
 */
#include "base/unicode.h"

#include <string.h>

typedef struct Sample {
    const char *in, *out;
} Sample;

static const Sample nfc[] = {
    {"plain", "plain"},
    {"e\xcc\x81", "\xc3\xa9"},
    {"e\xcc\x81\xcc\xa7", "\xc8\xa9\xcc\x81"}, /* cedilla moves in front and joins */
    {"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"}, /* Hangul L V T */
    {"\xcd\x84", "\xcc\x88\xcc\x81"}, /* U+0344 never comes back */
    {"\xe2\x84\xab", "\xc3\x85"},     /* Angstrom */
    {"\xcc\x81"
     "e",
     "\xcc\x81"
     "e"}, /* a mark without a starter */
    {"\xf0\x90\x97\x92\xcc\x87",
     "\xf0\x90\x97\x92\xcc\x87"}, /* joins in Unicode 16, not in 9 */
};

static const Sample lower[] = {
    {"\xc3\x80\xce\xa3", "\xc3\xa0\xcf\x83"}, /* no final sigma */
    {"\xc4\xb0", "i\xcc\x87"},                /* I with dot grows */
    {"abc 1", "abc 1"},
};

static void nfc_is_unicode_9(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(nfc); i++) {
        g_autoptr(GString) out = g_string_new(NULL);

        davit_nfc_append(out, nfc[i].in, strlen(nfc[i].in));
        g_assert_cmpstr(out->str, ==, nfc[i].out);
        if (davit_nfc_is_plain(nfc[i].in, strlen(nfc[i].in)))
            g_assert_cmpstr(out->str, ==, nfc[i].in);
    }
}

static void lower_has_no_context(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(lower); i++) {
        g_autoptr(GString) out = g_string_new(NULL);

        davit_lower_append(out, lower[i].in, strlen(lower[i].in));
        g_assert_cmpstr(out->str, ==, lower[i].out);
    }
}

/* A sort of a million alternating marks that is not linear would not come back. */
static void million_marks_come_back(void)
{
    g_autoptr(GString) in = g_string_new("a"), out = g_string_new(NULL);

    for (int i = 0; i < 500000; i++)
        g_string_append(in, "\xcc\x81\xcc\xa3");
    davit_nfc_append(out, in->str, in->len);
    /* a + dot below joins to U+1EA1 (3 bytes); one mark of 2 bytes is gone. */
    g_assert_cmpuint(out->len, ==, in->len - 1 + 3 - 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/unicode/nfc_is_unicode_9", nfc_is_unicode_9);
    g_test_add_func("/unicode/lower_has_no_context", lower_has_no_context);
    g_test_add_func("/unicode/million_marks_come_back", million_marks_come_back);
    return g_test_run();
}
