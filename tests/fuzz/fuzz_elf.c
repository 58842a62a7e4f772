/* SPDX-License-Identifier: Apache-2.0
 * Bytes of a shared object through gates 2 and 3: ELF, harm, manifest. */
#include "fuzz/fuzz.h"

#include "plugin/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitElf) elf = davit_elf_read(data, size, "fuzz.so", report);
    g_autoptr(DavitManifest) manifest = NULL;

    if (!elf) {
        g_assert(davit_report_failed(report));
        return 0;
    }
    davit_elf_check(elf, "fuzz.so", report);
    manifest = davit_manifest_read(elf->notes, "fuzz.so", report);
    g_assert(manifest || davit_report_failed(report));
    return 0;
}
