/* SPDX-License-Identifier: Apache-2.0
 * The capability against what the interface declares. davit loads who claims a model first: a
 * name in one place only makes a plugin that is never asked, or asked in vain. */
#include "check/suite.h"

#include <string.h>

/* Every name of @some must be in @all; @what "hf", @where "the capability". */
static void must_hold(Check *check, const char *what, char **some, char **all,
                      const char *where, const char *message)
{
    for (size_t i = 0; some[i]; i++) {
        if (!*some[i] || g_strv_contains((const char *const *)all, some[i]))
            continue;
        check_fail(check, NULL, what,
                   davit_report_text(check->report, "%s in %s", some[i], where), "no such name",
                   message);
    }
}

/* "hf=A|B" against .hf "A|B". An absent key is no claim: the plugin is found by asking all. */
static void compare_names(Check *check, const DavitComponent *c, const char *key,
                          const char *declared)
{
    g_auto(GStrv) claimed = check_claimed(c, key);
    g_auto(GStrv) names = g_strsplit(declared ? declared : "", "|", -1);

    if (!claimed[0])
        return;
    must_hold(check, key, claimed, names, "the interface",
              "the capability claims what the interface does not declare");
    must_hold(check, key, names, claimed, "the capability",
              "the interface declares what the capability does not claim: others are asked "
              "before");
}

static void compare_arch(Check *check, const DavitComponent *c)
{
    const davit_arch_iface *arch = c->load->iface;

    compare_names(check, c, "hf", arch->hf);
    compare_names(check, c, "model_type", arch->model_types);
    compare_names(check, c, "gguf", arch->gguf);
}

static void compare_tokenizer(Check *check, const DavitComponent *c)
{
    const davit_tokenizer_iface *iface = c->load->iface;
    g_auto(GStrv) claimed = check_claimed(c, "family");
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) names = NULL;

    for (size_t k = 0; iface->shapes[k]; k++)
        if (iface->shapes[k]->struct_size >= DAVIT_END(davit_tok_shape, name) &&
            iface->shapes[k]->name)
            g_strv_builder_add(builder, iface->shapes[k]->name);
    names = g_strv_builder_end(builder);
    must_hold(check, "family", claimed, names, "the names of its shapes",
              "the capability claims a family that no shape has");
}

/* (owned) the distinct values of one field of all entries, without "/1" where @is_bare. */
static char **names_of_entries(const davit_kernels_iface *iface, bool is_layout)
{
    g_autoptr(GString) all = g_string_new(NULL);

    for (size_t e = 0; iface->entries[e]; e++) {
        const char *text = is_layout ? iface->entries[e]->layouts : iface->entries[e]->op;

        if (text)
            g_string_append_printf(all, "%s|", text);
    }
    return g_strsplit(all->str, "|", -1);
}

/* A claim may leave out the version: "linear" is "linear/1". */
static void must_be_served(Check *check, const DavitComponent *c, const char *key, char **names)
{
    g_auto(GStrv) claimed = check_claimed(c, key);

    for (size_t i = 0; claimed[i]; i++) {
        g_autofree char *first = g_strconcat(claimed[i], "/1", NULL);

        if (*claimed[i] && !g_strv_contains((const char *const *)names, claimed[i]) &&
            !g_strv_contains((const char *const *)names, first))
            check_fail(check, NULL, key,
                       davit_report_text(check->report, "an entry for %s", claimed[i]), "none",
                       "the capability claims what no entry does");
    }
}

static void compare_kernels(Check *check, const DavitComponent *c)
{
    const davit_kernels_iface *iface = c->load->iface;
    g_auto(GStrv) ops = names_of_entries(iface, false);
    g_auto(GStrv) layouts = names_of_entries(iface, true);
    g_auto(GStrv) devices = check_claimed(c, "device");

    must_be_served(check, c, "op", ops);
    must_be_served(check, c, "layout", layouts);
    if (devices[0] && *devices[0] &&
        !g_strv_contains((const char *const *)devices, iface->device))
        check_fail(check, NULL, "device", iface->device, devices[0],
                   "the capability claims another device than the interface");
}

/* "@OFFSET:HEX": what davit looks for in the first bytes of a file. */
static bool is_magic(const char *text)
{
    const size_t digits = text[0] == '@' ? strspn(text + 1, "0123456789") : 0;
    const char *hex = text + 1 + digits;

    return digits > 0 && digits < 10 && *hex == ':' && strlen(hex + 1) % 2 == 0 && hex[1] &&
           strspn(hex + 1, "0123456789abcdefABCDEF") == strlen(hex + 1);
}

static void compare_format(Check *check, const DavitComponent *c)
{
    g_auto(GStrv) magics = check_claimed(c, "magic");

    for (size_t i = 0; magics[i]; i++)
        if (*magics[i] && !is_magic(magics[i]))
            check_fail(check, NULL, "magic", "@OFFSET:HEX, as @0:47475546", magics[i],
                       "the capability's magic number cannot be read");
}

static void compare(Check *check, DavitComponent *c)
{
    switch (c->kind) {
    case DAVIT_KIND_ID_FORMAT: compare_format(check, c); break;
    case DAVIT_KIND_ID_ARCH: compare_arch(check, c); break;
    case DAVIT_KIND_ID_TOKENIZER: compare_tokenizer(check, c); break;
    case DAVIT_KIND_ID_KERNELS: compare_kernels(check, c); break;
    default: break; /* a quant plugin's layouts are known when it has checked a module */
    }
}

void check_claims(Check *check)
{
    check_each(check, DAVIT_N_KINDS, compare);
}
