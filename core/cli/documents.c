/* SPDX-License-Identifier: Apache-2.0
 * The two documents of run: read from the command line or a file, checked in full. */
#include "config/document.h"

#include <string.h>

#include "cli/run.h"

/* (owned) the document itself, or the content of the file that is named. */
static char *document_text(DavitCall *call, const char *value, size_t *out_len)
{
    const char first = value[strspn(value, " \t\r\n")];
    if (first != '{' && first != '[') /* a list is no document, and no file's name either */
        return davit_call_read_file(call, value, out_len);
    *out_len = strlen(value);
    return g_strdup(value);
}

static void check_offload(DavitCall *call, const char *value)
{
    size_t n;
    g_autofree char *text = document_text(call, value, &n);
    DavitOffloadConfig config;
    if (!text)
        return;
    if (!davit_offload_parse(text, n, &config, call->report))
        davit_offload_check_built(&config, call->report);
    davit_offload_clear(&config);
}

static void check_speculative(DavitCall *call, const char *value)
{
    size_t n;
    g_autofree char *text = document_text(call, value, &n);
    DavitSpeculativeConfig config;
    if (!text)
        return;
    if (!davit_speculative_parse(text, n, &config, call->report))
        davit_speculative_check_built(&config, call->report);
    davit_speculative_clear(&config);
}

int davit_call_documents(DavitCall *call)
{
    const char *offload = davit_call_text(call, "offload-config");
    const char *speculative = davit_call_text(call, "speculative-config");
    if (offload)
        check_offload(call, offload);
    if (speculative)
        check_speculative(call, speculative);
    return davit_call_exit(call);
}
