/* SPDX-License-Identifier: Apache-2.0
 * ELF header, program headers and notes. The dynamic section is in elf_dynamic.c.
 * Source: System V ABI, gABI 4.1 chapters 4 and 5; Linux notes as in elf(5). */
#include "plugin/elf_internal.h"

#include <string.h>

G_STATIC_ASSERT(G_BYTE_ORDER == G_LITTLE_ENDIAN); /* fields are copied as they lie */
G_STATIC_ASSERT(sizeof(void *) == 8);

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#elif defined(__riscv)
#define HOST_MACHINE EM_RISCV
#else
#error "the machine number of this processor is not known here"
#endif

#define MAX_PHDRS      128       /* linkers write about a dozen */
#define MAX_NOTE_BYTES (1 << 18) /* of one PT_NOTE; a manifest is limited to 64 KiB */
#define MAX_NOTES      2048      /* with our owner */
/* glibc 2.36 keeps about 1.6 KiB for objects loaded later; 1024 load, 2048 do not. */
#define MAX_STATIC_TLS 1024

int32_t elf_bad(const ElfView *view, uint32_t code, const char *expected,
                const char *found, const char *message)
{
    return davit_report_add(view->report, &(DavitFinding){.code = code,
                                                          .status = DAVIT_E_CORRUPT,
                                                          .stage = "file",
                                                          .subject = view->subject,
                                                          .expected = expected,
                                                          .found = found,
                                                          .message = message});
}

static const char *machine_name(const ElfView *view, unsigned machine)
{
    switch (machine) {
    case EM_386:
        return "x86 (32 bit)";
    case EM_X86_64:
        return "x86_64";
    case EM_ARM:
        return "arm (32 bit)";
    case EM_AARCH64:
        return "aarch64";
    case EM_RISCV:
        return "riscv";
    case EM_PPC64:
        return "ppc64";
    case EM_S390:
        return "s390";
    default:
        return davit_report_text(view->report, "machine %u", machine);
    }
}

/* ---- header ---- */

static int32_t check_ident(const ElfView *view)
{
    const size_t n = MIN(view->len, (size_t)SELFMAG);
    int32_t status;

    if (n > 0 && memcmp(view->bytes, ELFMAG, n) != 0)
        return elf_bad(view, DAVIT_R_NOT_ELF, "the bytes 7f 45 4c 46 at offset 0",
                       "other bytes", "the file is not an ELF object");
    if (view->len < sizeof(Elf64_Ehdr))
        return elf_bad(
            view, DAVIT_R_TRUNCATED,
            davit_report_text(view->report, "at least %zu bytes", sizeof(Elf64_Ehdr)),
            davit_report_text(view->report, "%zu bytes", view->len),
            "the file ends inside its ELF header");
    if (view->bytes[EI_CLASS] == ELFCLASS64 && view->bytes[EI_DATA] == ELFDATA2LSB)
        return DAVIT_OK;

    status = davit_report_add(
        view->report, &(DavitFinding){
                          .code = DAVIT_R_WRONG_CLASS,
                          .status = DAVIT_E_UNSUPPORTED,
                          .stage = "file",
                          .subject = view->subject,
                          .expected = "64 bit, little endian",
                          .found = davit_report_text(
                              view->report, "%s, %s",
                              view->bytes[EI_CLASS] == ELFCLASS64   ? "64 bit"
                              : view->bytes[EI_CLASS] == ELFCLASS32 ? "32 bit"
                                                                    : "unknown class",
                              view->bytes[EI_DATA] == ELFDATA2LSB   ? "little endian"
                              : view->bytes[EI_DATA] == ELFDATA2MSB ? "big endian"
                                                                    : "unknown order"),
                          .message = "the object is built for another kind of machine",
                          .hint = "get the build for this machine",
                      });
    return status;
}

static int32_t check_header(const ElfView *view, const Elf64_Ehdr *ehdr)
{
    if (ehdr->e_machine != HOST_MACHINE)
        return davit_report_add(
            view->report,
            &(DavitFinding){.code = DAVIT_R_WRONG_MACHINE,
                            .status = DAVIT_E_UNSUPPORTED,
                            .stage = "file",
                            .subject = view->subject,
                            .expected = machine_name(view, HOST_MACHINE),
                            .found = machine_name(view, ehdr->e_machine),
                            .message = "the object is built for another processor",
                            .hint = "get the build for this machine"});
    if (ehdr->e_type != ET_DYN)
        return elf_bad(view, DAVIT_R_NOT_ELF, "type 3 (shared object)",
                       davit_report_text(view->report, "type %u", ehdr->e_type),
                       "the ELF file is not a shared object");
    if (ehdr->e_phentsize != sizeof(Elf64_Phdr) || ehdr->e_phnum < 1 ||
        ehdr->e_phnum > MAX_PHDRS)
        return elf_bad(view, DAVIT_R_NOT_ELF,
                       davit_report_text(view->report,
                                         "1 to %d program headers of %zu bytes",
                                         MAX_PHDRS, sizeof(Elf64_Phdr)),
                       davit_report_text(view->report, "%u of %u bytes", ehdr->e_phnum,
                                         ehdr->e_phentsize),
                       "the program header table cannot be read");
    return DAVIT_OK;
}

/* ---- program headers ---- */

/* Is [off, off + n) inside the file? */
static bool inside(const ElfView *view, uint64_t off, uint64_t n)
{
    return off <= view->len && n <= view->len - off;
}

/* The rules without which the loader maps pages that the file does not have, or gives up
 * with an error that blames something else. @end is the end of the segment before. */
static int32_t check_load(const ElfView *view, const Elf64_Phdr *ph, uint64_t *end)
{
    uint64_t past;

    if (!inside(view, ph->p_offset, ph->p_filesz))
        return elf_bad(view, DAVIT_R_TRUNCATED,
                       davit_report_text(view->report,
                                         "%" G_GUINT64_FORMAT
                                         " bytes at %" G_GUINT64_FORMAT,
                                         (guint64)ph->p_filesz, (guint64)ph->p_offset),
                       davit_report_text(view->report, "a file of %zu bytes", view->len),
                       "a loadable segment passes the end of the file");
    if (ph->p_filesz > ph->p_memsz ||
        __builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &past) || ph->p_vaddr < *end)
        return elf_bad(view, DAVIT_R_NOT_ELF,
                       "ascending segments, memory size >= file size",
                       davit_report_text(view->report,
                                         "%" G_GUINT64_FORMAT " bytes in the file, "
                                         "%" G_GUINT64_FORMAT " at %" G_GUINT64_FORMAT,
                                         (guint64)ph->p_filesz, (guint64)ph->p_memsz,
                                         (guint64)ph->p_vaddr),
                       "a loadable segment contradicts itself or its neighbour");
    if ((ph->p_align & (ph->p_align - 1)) != 0 ||
        (ph->p_align > 1 && ((ph->p_vaddr - ph->p_offset) & (ph->p_align - 1)) != 0))
        return elf_bad(view, DAVIT_R_NOT_ELF,
                       "address and offset equal modulo the alignment",
                       davit_report_text(view->report,
                                         "%" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT
                                         " modulo %" G_GUINT64_FORMAT,
                                         (guint64)ph->p_vaddr, (guint64)ph->p_offset,
                                         (guint64)ph->p_align),
                       "a loadable segment is not aligned");
    *end = past;
    return DAVIT_OK;
}

static int32_t read_phdrs(ElfView *view, const Elf64_Ehdr *ehdr)
{
    const size_t n_bytes = (size_t)ehdr->e_phnum * sizeof(Elf64_Phdr);
    uint64_t end = 0;
    size_t n_load = 0;

    if (!inside(view, ehdr->e_phoff, n_bytes))
        return elf_bad(view, DAVIT_R_TRUNCATED,
                       davit_report_text(view->report,
                                         "program headers at %" G_GUINT64_FORMAT,
                                         (guint64)ehdr->e_phoff),
                       davit_report_text(view->report, "a file of %zu bytes", view->len),
                       "the program header table passes the end of the file");
    view->n_phdrs = ehdr->e_phnum;
    view->phdrs = g_new(Elf64_Phdr, view->n_phdrs);
    memcpy(view->phdrs, view->bytes + ehdr->e_phoff, n_bytes);

    for (size_t i = 0; i < view->n_phdrs; i++) {
        const Elf64_Phdr *ph = &view->phdrs[i];

        if (ph->p_type != PT_LOAD)
            continue;
        n_load++;
        if (check_load(view, ph, &end))
            return DAVIT_E_CORRUPT;
    }
    if (n_load == 0)
        return elf_bad(view, DAVIT_R_NOT_ELF, "at least one loadable segment", "none",
                       "there is nothing to load in this object");
    return DAVIT_OK;
}

/* ---- notes ---- */

static uint64_t pad4(uint64_t n)
{
    return (n + 3) & ~(uint64_t)3;
}

static void keep_build_id(DavitElf *elf, const uint8_t *desc, uint32_t n)
{
    GString *hex = g_string_new(NULL);

    for (uint32_t i = 0; i < MIN(n, 64u); i++)
        g_string_append_printf(hex, "%02x", desc[i]);
    g_free(elf->build_id);
    elf->build_id = g_string_free(hex, FALSE);
}

static void keep_note(DavitElf *elf, const Elf64_Nhdr *head, const uint8_t *name,
                      const uint8_t *desc)
{
    if (head->n_namesz == 6 && memcmp(name, "DAVIT", 6) == 0) {
        DavitElfNote note = {
            .type = head->n_type, .n_text = head->n_descsz, .text = (const char *)desc};

        while (note.n_text > 0 && note.text[note.n_text - 1] == '\0')
            note.n_text--;
        if (elf->notes->len < MAX_NOTES)
            g_array_append_val(elf->notes, note);
    } else if (head->n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
               head->n_type == NT_GNU_BUILD_ID) {
        keep_build_id(elf, desc, head->n_descsz);
    }
}

/* Walk one note segment. Compilers put zero words between notes (alignment, sanitizer red
 * zones), so a zero where a name length should be is skipped; anything that does not fit
 * ends the walk: the manifest reader then says what is missing. */
static void read_notes(const ElfView *view, const Elf64_Phdr *ph, DavitElf *elf)
{
    uint64_t at = ph->p_offset;
    uint64_t left = MIN(ph->p_filesz, (uint64_t)MAX_NOTE_BYTES);

    if (!inside(view, at, left))
        return;
    while (left >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr head;
        uint64_t n_all;

        memcpy(&head, view->bytes + at, sizeof head);
        if (head.n_namesz == 0) {
            at += 4;
            left -= 4;
            continue;
        }
        n_all = sizeof head + pad4(head.n_namesz) + (uint64_t)head.n_descsz;
        if (n_all > left)
            return;
        keep_note(elf, &head, view->bytes + at + sizeof head,
                  view->bytes + at + sizeof head + pad4(head.n_namesz));
        n_all = MIN(pad4(n_all), left);
        at += n_all;
        left -= n_all;
    }
}

static void read_segments(const ElfView *view, DavitElf *elf)
{
    elf->exec_stack = true; /* what the loader assumes when PT_GNU_STACK is absent */
    for (size_t i = 0; i < view->n_phdrs; i++) {
        const Elf64_Phdr *ph = &view->phdrs[i];

        if (ph->p_type == PT_NOTE)
            read_notes(view, ph, elf);
        else if (ph->p_type == PT_GNU_STACK)
            elf->exec_stack = (ph->p_flags & PF_X) != 0;
        else if (ph->p_type == PT_TLS)
            elf->n_tls = ph->p_memsz;
    }
}

/* ---- the whole ---- */

void davit_elf_free(DavitElf *elf)
{
    if (!elf)
        return;
    g_array_unref(elf->notes);
    g_ptr_array_unref(elf->needed);
    g_ptr_array_unref(elf->exports);
    g_free(elf->runpath);
    g_free(elf->build_id);
    g_free(elf);
}

DavitElf *davit_elf_read(const uint8_t *bytes, size_t len, const char *subject,
                         DavitReport *report)
{
    ElfView view = {.bytes = bytes, .len = len, .subject = subject, .report = report};
    g_autoptr(DavitElf) elf = g_new0(DavitElf, 1);
    g_autofree Elf64_Phdr *phdrs = NULL; /* frees view.phdrs on every way out */
    Elf64_Ehdr ehdr;
    int32_t status;

    elf->notes = g_array_new(FALSE, FALSE, sizeof(DavitElfNote));
    elf->needed = g_ptr_array_new_with_free_func(g_free);
    elf->exports = g_ptr_array_new_with_free_func(g_free);

    if (check_ident(&view))
        return NULL;
    memcpy(&ehdr, bytes, sizeof ehdr);
    if (check_header(&view, &ehdr))
        return NULL;
    status = read_phdrs(&view, &ehdr);
    phdrs = view.phdrs;
    if (status)
        return NULL;
    read_segments(&view, elf);
    if (elf_read_dynamic(&view, elf))
        return NULL;
    return g_steal_pointer(&elf);
}

/* ---- what would harm the process ---- */

static int32_t harmful(DavitReport *report, uint32_t code, const char *subject,
                       const char *expected, const char *found, const char *hint)
{
    return davit_report_add(report, &(DavitFinding){.code = code,
                                                    .status = DAVIT_E_UNSUPPORTED,
                                                    .stage = "file",
                                                    .subject = subject,
                                                    .expected = expected,
                                                    .found = found,
                                                    .hint = hint});
}

/* An empty part means the current directory, a relative one starts there; both let the
 * place where davit is started bring code. */
static bool runpath_is_absolute(const char *runpath)
{
    g_auto(GStrv) parts = g_strsplit(runpath, ":", -1);

    for (size_t i = 0; parts[i]; i++) {
        if (parts[i][0] != '/' && !g_str_has_prefix(parts[i], "$ORIGIN") &&
            !g_str_has_prefix(parts[i], "${ORIGIN}"))
            return false;
    }
    return parts[0] != NULL; /* an empty RUNPATH is one empty part */
}

int32_t davit_elf_check(const DavitElf *elf, const char *subject, DavitReport *report)
{
    int32_t status = DAVIT_OK;

    if (elf->exec_stack)
        status =
            harmful(report, DAVIT_R_EXEC_STACK, subject, "a stack without execute right",
                    "PT_GNU_STACK executable or absent",
                    "link with -Wl,-z,noexecstack; look for assembly files without "
                    ".note.GNU-stack");
    if (elf->text_relocations)
        status = harmful(report, DAVIT_R_TEXT_RELOCATIONS, subject,
                         "position-independent code", "DT_TEXTREL",
                         "compile every object with -fPIC");
    if (elf->static_tls && elf->n_tls > MAX_STATIC_TLS)
        status = harmful(
            report, DAVIT_R_STATIC_TLS, subject,
            davit_report_text(report, "at most %d bytes", MAX_STATIC_TLS),
            davit_report_text(report, "%" G_GUINT64_FORMAT " bytes", (guint64)elf->n_tls),
            "compile without -ftls-model=initial-exec");
    if (elf->runpath && !runpath_is_absolute(elf->runpath))
        status = harmful(report, DAVIT_R_BAD_RUNPATH, subject,
                         "absolute parts or parts that start with $ORIGIN",
                         davit_report_text(report, "\"%s\"", elf->runpath),
                         "link without -rpath, or with an absolute one");
    return status;
}
