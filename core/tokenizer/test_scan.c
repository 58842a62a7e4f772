/* SPDX-License-Identifier: Apache-2.0
 * The SDK's scanners: frozen pieces from Hugging Face's pre-tokenizers, resuming at every
 * end, cuts, and linear work. (Ids over all of them: test_tokenizer_golden.)
 */
#include <davit/help/scan.h>
#include <davit/help/ucd.h>
#include <davit/tokenizer.h>

#include <string.h>

#include <glib.h>

typedef uint64_t (*ScanFn)(const char *text, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap);

static uint64_t llama3(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                       uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t qwen35(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                       uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_NEWLINES, .marks = 1, .contraction = 1};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t o200k(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                      uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_SLASHES, .contraction = 1};

    return davit_scan_cased(&rules, t, n, from, ends, cap);
}

static uint64_t kimi(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                     uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1, .han = 1};

    return davit_scan_cased(&rules, t, n, from, ends, cap);
}

static uint64_t cl100k(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                       uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1, .end_space = 1};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t coder(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                      uint64_t cap)
{
    return davit_scan_deepseek2(0, t, n, from, ends, cap);
}

static uint64_t llm(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                    uint64_t cap)
{
    return davit_scan_deepseek2(1, t, n, from, ends, cap);
}

static uint64_t bloom(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                      uint64_t cap)
{
    return davit_scan_bloom(0, t, n, from, ends, cap);
}

static uint64_t viking(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                       uint64_t cap)
{
    return davit_scan_bloom(1, t, n, from, ends, cap);
}

static uint64_t jais2(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                      uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 3, .tail = DAVIT_TAIL_NEWLINES, .contraction = 1, .halves = 1};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t exaone_moe(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                           uint64_t cap)
{
    static const davit_scan_rules rules = {
        .max_digits = 1, .tail = DAVIT_TAIL_ONE, .contraction = 1, .spaced = 1};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t minicpm5(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                         uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 3,
                                           .tail = DAVIT_TAIL_NEWLINES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_NUMBERS};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t laguna(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                       uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 1,
                                           .tail = DAVIT_TAIL_NEWLINES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_LINES};

    return davit_scan_words(&rules, t, n, from, ends, cap);
}

static uint64_t tiny_aya(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                         uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 3,
                                           .tail = DAVIT_TAIL_SLASHES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_GROUPS};

    return davit_scan_cased(&rules, t, n, from, ends, cap);
}

static uint64_t youtu(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                      uint64_t cap)
{
    static const davit_scan_rules rules = {.max_digits = 1,
                                           .tail = DAVIT_TAIL_SLASHES,
                                           .contraction = 1,
                                           .front = DAVIT_FRONT_SCRIPTS};

    return davit_scan_cased(&rules, t, n, from, ends, cap);
}

static uint64_t afmoe(const char *t, uint64_t n, uint64_t from, uint64_t *ends,
                      uint64_t cap)
{
    return davit_scan_afmoe(0, t, n, from, ends, cap);
}

/* A text and its pieces, '|' between them. */
typedef struct Sample {
    ScanFn scan;
    const char *pieces;
} Sample;

/* Pieces by tokenizers 0.23.3; of cl100k by tiktoken's regex. */
static const Sample samples[] = {
    {davit_scan_gpt2, "Hello| world|  | it|'s|\n\n"},
    {davit_scan_gpt2, "IT|'|S| 123|abc|!?|\t|x"},
    {davit_scan_gpt2_digits, "abc|1|2| |3| x"},
    {llama3, "IT|'S| |123|45|\n|\tx|!!\n|(y"},
    {llama3, "'\xc5\xbf|a| \n\n|  | b"},
    {qwen35, "e\xcc\x81|1|2|\xcc\x81x"},
    {o200k, "e|Bay| i|Phone|HTMLParser| don't|://\n"},
    {o200k, "\xd0\x9f\xd0\xa0\xd0\xbc\xd0\xb8|\xd0\x9f"},
    {davit_scan_deepseek3, "a|\xe2\x80\x8b"
                           "b"},
    {davit_scan_deepseek3, "123|45|\xe6\x97\xa5\xe6\x9c\xac|!x"},
    {davit_scan_before_mark, "a|\xe2\x96\x81"
                             "b|\xe2\x96\x81|\xe2\x96\x81"
                             "c"},
    {davit_scan_after_space, "a | |b"},
    {kimi, "Ab|\xe4\xb8\xad|c| |\xe6\xbc\xa2\xe5\xad\x97|Ab's"},
    {cl100k, "a|\n|  | b|\n  \n  "},
    {coder, "a| b|\n|\xe4\xb8\xad|1|2| !!|  "},
    {llm, "M|\xc4\xb0| a|  |\n|x|  "},
    {bloom, "a| b|.(| c| | d"},
    {viking, "a| b|1|2|.| |3"},
    {jais2, "a|    | | b|    | c|\n\n|  | "},
    {exaone_moe, "a b c| | d| |1| x|!\n|\n"},
    {minicpm5, "a|  |123|45| x"},
    {laguna, "a|  |\n\n|!|\n"},
    {tiny_aya, "1|234|567| |123|45|a"},
    {tiny_aya, "x|12|345|\xe2\x80\x8d"},
    {youtu, "\xea\xb0\x80|'s|\xef\xbc\x81|\n|a's"},
    {davit_scan_superbpe, "a b |1|234|567|c d"},
    {davit_scan_superbpe, "12\xc2\xbd|123|456|x"},
    {afmoe, "1|234|567| |1|\xe0\xb9\x92|3|\xe0\xb8\x81"},
    {davit_scan_chameleon, "a|IMGIMGAZ|b|    | c|\t|1|2|<|x|>"},
    {davit_scan_falcon, "x\xe4|\xbd|\xa0\xe5\xa5|\xbd|\xc2|\xbd|,| |123|45"},
};

/* The sample's text, and its ends in @ends; returns how many. */
static uint64_t unpack(const Sample *sample, GString *text, uint64_t *ends)
{
    uint64_t n = 0;

    for (const char *p = sample->pieces; *p; p++) {
        if (*p == '|')
            ends[n++] = text->len;
        else
            g_string_append_c(text, *p);
    }
    ends[n++] = text->len;
    return n;
}

static void pieces_are_the_reference(const void *data)
{
    const Sample *sample = data;
    g_autoptr(GString) text = g_string_new(NULL);
    uint64_t want[64], got[64];
    const uint64_t n = unpack(sample, text, want);

    g_assert_cmpuint(sample->scan(text->str, text->len, 0, got, 64), ==, n);
    for (uint64_t i = 0; i < n; i++)
        g_assert_cmpuint(got[i], ==, want[i]);
}

static const ScanFn all_scans[] = {cl100k,
                                   kimi,
                                   coder,
                                   llm,
                                   bloom,
                                   viking,
                                   davit_scan_falcon,
                                   davit_scan_whitespace,
                                   davit_scan_bert,
                                   davit_scan_word_runs,
                                   jais2,
                                   exaone_moe,
                                   minicpm5,
                                   laguna,
                                   tiny_aya,
                                   youtu,
                                   afmoe,
                                   davit_scan_superbpe,
                                   davit_scan_chameleon};

static const ScanFn scans[] = {davit_scan_gpt2,
                               davit_scan_gpt2_digits,
                               llama3,
                               qwen35,
                               o200k,
                               davit_scan_deepseek3,
                               davit_scan_before_mark,
                               davit_scan_after_space};

static void random_bytes(GRand *rand, char *text, size_t n)
{
    static const char alphabet[] =
        "aZsl' \n\r\t09!/\xc3\xa9\xe6\x97\xa5\xe2\x96\x81\xcc\x81\xff";

    for (size_t i = 0; i < n; i++)
        text[i] = alphabet[g_rand_int_range(rand, 0, sizeof alphabet - 1)];
}

/* Any bytes at all: ends rise to n, one at a time gives what many at a time give. */
static void resumes_at_every_end(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);

    for (int round = 0; round < 20000; round++) {
        char text[40];
        const uint64_t n = (uint64_t)g_rand_int_range(rand, 1, sizeof text);
        uint64_t all[64], one, from = 0;
        const ScanFn scan = scans[round % (int)G_N_ELEMENTS(scans)];

        random_bytes(rand, text, n);
        const uint64_t count = scan(text, n, 0, all, 64);
        for (uint64_t i = 0; i < count; i++) {
            g_assert_cmpuint(scan(text, n, from, &one, 1), ==, 1);
            g_assert_cmpuint(one, ==, all[i]);
            g_assert_cmpuint(one, >, from);
            from = one;
        }
        g_assert_cmpuint(from, ==, n);
    }
}

/* The same on valid text for the bodies that look back to the start of a character. */
static void resumes_inside_valid_text(void)
{
    static const char *const parts[] = {"a",
                                        "Z",
                                        " ",
                                        "  ",
                                        "\n",
                                        "1",
                                        "23",
                                        "!",
                                        "(",
                                        ".",
                                        "'s",
                                        "\xe4\xbd\xa0",
                                        "\xe3\x80\x80",
                                        "\xe2\x80\x83",
                                        "\xc2\xbd",
                                        "\xc4\xb0",
                                        "\xe3\x80\x82",
                                        "\xcc\x81",
                                        "\x01",
                                        "\xe2\x85\xa7",
                                        "\xc2\xa0",
                                        "\xe0\xb9\x91",
                                        "1234567",
                                        "\xea\xb0\x80",
                                        "IMGIMGAZ",
                                        "        "};
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);

    for (int round = 0; round < 50000; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        const ScanFn scan = all_scans[round % (int)G_N_ELEMENTS(all_scans)];
        uint64_t all[256], one, from = 0;

        for (int i = g_rand_int_range(rand, 1, 14); i > 0; i--)
            g_string_append(text, parts[g_rand_int_range(rand, 0, G_N_ELEMENTS(parts))]);
        const uint64_t count = scan(text->str, text->len, 0, all, 256);
        for (uint64_t i = 0; i < count; i++) {
            g_assert_cmpuint(scan(text->str, text->len, from, &one, 1), ==, 1);
            g_assert_cmpuint(one, ==, all[i]);
            one &= ~DAVIT_TOK_DROP;
            g_assert_cmpuint(one, >, from);
            from = one;
        }
        g_assert_cmpuint(from, ==, text->len);
    }
}

/* A scan that starts at a cut gives the ends of one that came from the start. */
static void cut_equals_continued_scan(void)
{
    static const ScanFn lined[] = {davit_scan_gpt2, davit_scan_gpt2_digits,
                                   llama3,          qwen35,
                                   o200k,           davit_scan_deepseek3,
                                   jais2,           exaone_moe,
                                   minicpm5,        laguna,
                                   tiny_aya,        youtu,
                                   afmoe,           davit_scan_chameleon,
                                   cl100k,          kimi,
                                   coder,           llm,
                                   bloom,           viking};
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);

    for (int round = 0; round < 60000; round++) {
        char text[40];
        const uint64_t n = (uint64_t)g_rand_int_range(rand, 2, sizeof text);
        uint64_t all[64], rest[64];
        const ScanFn scan = lined[round % (int)G_N_ELEMENTS(lined)];

        random_bytes(rand, text, n);
        text[n / 2] = '\n';
        const uint64_t cut = davit_cut_lines(text, n, 0);
        const uint64_t count = scan(text, n, 0, all, 64);
        const uint64_t after = scan(text + cut, n - cut, 0, rest, 64);
        for (uint64_t i = 0; i < after; i++)
            g_assert_cmpuint(rest[i] + cut, ==, all[count - after + i]);
        if (cut < n && count > after)
            g_assert_cmpuint(all[count - after - 1], ==, cut);
    }
}

static void broken_utf8_is_one_byte_each(void)
{
    uint32_t len;

    g_assert_cmpuint(davit_ucd_decode("\xe2\x96", 2, 0, &len), ==, 0xfffd);
    g_assert_cmpuint(len, ==, 1);
    g_assert_cmpuint(davit_ucd_decode("\xed\xa0\x80", 3, 0, &len), ==, 0xfffd);
    g_assert_cmpuint(davit_ucd_check("ab\xc0\x80", 4), ==, 2);
    g_assert_cmpuint(davit_ucd_check("a\xef\xbf\xbd", 4), ==, 4);
    g_assert_cmpuint(davit_ucd_check("12345678\xf4\x90\x80\x80", 12), ==, 8);
}

/* The short way of three bytes says what decoding says: all leads, whole, broken and cut. */
static void short_way_decodes_the_same(void)
{
    for (uint32_t lead = 0xc0; lead < 0x100; lead++) {
        for (uint32_t second = 0x7e; second <= 0xc1; second++) {
            for (uint32_t third = 0x7f; third <= 0xc0; third++) {
                const char text[] = {(char)lead, (char)second, (char)third, (char)0x80, '\0'};

                for (uint64_t n = 1; n <= 4; n++) {
                    uint32_t len, len2;

                    g_assert_cmpuint(davit_ucd_next(text, n, 0, &len), ==,
                                     davit_ucd_decode(text, n, 0, &len2));
                    g_assert_cmpuint(len, ==, len2);
                }
            }
        }
    }
}

/* What scanners pass over without asking the tables. */
static void ideographs_are_letters(void)
{
    for (uint32_t cp = 0x4e00; cp <= 0x9fff; cp++) {
        const uint32_t bits = davit_ucd_bits(cp);

        g_assert_cmpuint(bits & (DAVIT_UCD_L | DAVIT_UCD_HAN), ==,
                         DAVIT_UCD_LO | DAVIT_UCD_HAN);
    }
}

/* Words are passed over eight letters a step: every byte at every place ends them as the table says. */
static void words_end_at_every_byte(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint32_t bits = byte < 128 ? davit_ucd_ascii[byte] : 0; /* broken UTF-8 */

        for (size_t before = 1; before < 20; before++) {
            for (size_t n = before + 1; n < before + 10; n++) {
                g_autofree char *text = g_malloc(n); /* no byte behind it */
                uint64_t end = 0;

                memset(text, 'y', n);
                text[before] = (char)byte;
                llama3(text, n, 0, &end, 1);
                g_assert_cmpuint(end, ==, bits & DAVIT_UCD_L ? n : before);
                o200k(text, n, 0, &end, 1);
                g_assert_cmpuint(end, ==, bits & DAVIT_UCD_LL ? n : before);
            }
        }
    }
}

/* Capitals of three bytes (U+FF21) beside ideographs: where they stop being upper case. */
static void capitals_beside_ideographs(void)
{
    static const char *const texts[] = {"\uff21\u5b57\uff21", "\u5b57\u5b57\uff21\uff21",
                                        "\uff21\u5b57\u5b57\uff41\uff21"};
    static const uint64_t ends[] = {6, 6, 12}; /* U*W+ ends behind the last of W */

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        uint64_t end = 0;

        g_assert_cmpuint(o200k(texts[i], strlen(texts[i]), 0, &end, 1), ==, 1);
        g_assert_cmpuint(end, ==, ends[i]);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        g_autofree char *path = g_strdup_printf("/scan/pieces_are_the_reference/%zu", i);

        g_test_add_data_func(path, &samples[i], pieces_are_the_reference);
    }
    g_test_add_func("/scan/short_way_decodes_the_same", short_way_decodes_the_same);
    g_test_add_func("/scan/ideographs_are_letters", ideographs_are_letters);
    g_test_add_func("/scan/words_end_at_every_byte", words_end_at_every_byte);
    g_test_add_func("/scan/capitals_beside_ideographs", capitals_beside_ideographs);
    g_test_add_func("/scan/resumes_at_every_end", resumes_at_every_end);
    g_test_add_func("/scan/resumes_inside_valid_text", resumes_inside_valid_text);
    g_test_add_func("/scan/cut_equals_continued_scan", cut_equals_continued_scan);
    g_test_add_func("/scan/broken_utf8_is_one_byte_each", broken_utf8_is_one_byte_each);
    return g_test_run();
}
