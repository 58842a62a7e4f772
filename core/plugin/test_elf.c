/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/elf.h"

#include <elf.h>

#include "plugins/fixture.h"

/* Read a copy of exactly @n bytes, so that a sanitizer sees a step too far. */
static DavitElf *read_copy(const uint8_t *bytes, size_t n, DavitReport *report)
{
    g_autofree uint8_t *copy = g_memdup2(bytes, n);
    DavitElf *elf = davit_elf_read(copy ? copy : bytes, n, "x.so", report);

    if (elf)
        g_array_set_size(elf->notes, 0); /* they pointed into the copy */
    else
        g_assert_true(davit_report_failed(report));
    return elf;
}

static void expect_code(const uint8_t *bytes, size_t n, uint32_t code)
{
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_null(read_copy(bytes, n, report));
    g_assert_cmpstr(davit_code_name(davit_report_get(report, 0)->code), ==,
                    davit_code_name(code));
    g_assert_cmpstr(davit_report_get(report, 0)->subject, ==, "x.so");
}

/* End of the last byte of the file that is loaded. */
static size_t end_of_loads(const uint8_t *bytes)
{
    const Elf64_Ehdr *ehdr = (const void *)bytes;
    const Elf64_Phdr *ph = (const void *)(bytes + ehdr->e_phoff);
    size_t end = 0;

    for (size_t i = 0; i < ehdr->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD)
            end = MAX(end, ph[i].p_offset + ph[i].p_filesz);
    }
    return end;
}

static Elf64_Phdr *find_phdr(uint8_t *bytes, uint32_t type)
{
    const Elf64_Ehdr *ehdr = (const void *)bytes;
    Elf64_Phdr *ph = (void *)(bytes + ehdr->e_phoff);

    for (size_t i = 0; i < ehdr->e_phnum; i++) {
        if (ph[i].p_type == type)
            return &ph[i];
    }
    g_assert_not_reached();
}

/* ---- what is there ---- */

static void good_file_is_read(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    g_autoptr(DavitElf) elf = davit_elf_read(bytes, n, "x.so", report);
    const DavitElfNote *note;

    g_assert_nonnull(elf);
    g_assert_true(elf->has_entry);
    g_assert_cmpuint(elf->exports->len, ==, 1);
    g_assert_cmpstr(g_ptr_array_index(elf->exports, 0), ==, DAVIT_ENTRY_SYMBOL);
    g_assert_cmpuint(elf->notes->len, ==, 2);
    note = &g_array_index(elf->notes, DavitElfNote, 0);
    g_assert_cmpint(note->text[0], ==, '{');
    g_assert_cmpint(note->text[note->n_text - 1], ==, '}');
    g_assert_cmpuint(strlen(elf->build_id), ==, 40);
    g_assert_false(elf->exec_stack);
    g_assert_false(elf->text_relocations);
    g_assert_false(elf->static_tls);
    g_assert_cmpint(davit_elf_check(elf, "x.so", report), ==, DAVIT_OK);
    g_assert_cmpuint(davit_report_count(report), ==, 0);
}

static void expect_readable(const char *name, size_t n_notes, size_t n_exports)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes(name, &n);
    g_autoptr(DavitElf) elf = davit_elf_read(bytes, n, "x.so", report);

    show_records(report);
    g_assert_nonnull(elf);
    g_assert_cmpuint(elf->notes->len, ==, n_notes);
    g_assert_cmpuint(elf->n_exports, ==, n_exports);
}

static void variants_are_read(void)
{
    expect_readable("sysv_hash", 2, 1);
    expect_readable("padded", 2, 1);
    expect_readable("two_exports", 2, 2);
    expect_readable("no_entry", 2, 0);
    expect_readable("multi", 3, 1);
    expect_readable("partial", 5, 1);
}

static void section_headers_are_not_needed(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    g_autoptr(DavitElf) elf = NULL;
    Elf64_Ehdr *ehdr = (void *)bytes;

    ehdr->e_shoff = 0;
    ehdr->e_shnum = 0;
    elf = davit_elf_read(bytes, end_of_loads(bytes), "x.so", report);
    g_assert_nonnull(elf);
    g_assert_true(elf->has_entry);
    g_assert_cmpuint(elf->notes->len, ==, 2);
}

/* ---- wrong files ---- */

static void truncated_file_is_refused(void)
{
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    const size_t end = end_of_loads(bytes);
    const size_t step = MAX(n / 997, 1);

    for (size_t cut = 0; cut < end; cut += cut < 1024 ? 1 : step) {
        g_autoptr(DavitReport) report = davit_report_new();

        if (read_copy(bytes, cut, report))
            g_error("a file cut at %zu of %zu (%zu) is read", cut, n, end);
        g_assert_cmpstr(davit_code_name(davit_report_get(report, 0)->code), ==,
                        "truncated");
    }
    for (size_t cut = end; cut <= n; cut += step) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitElf) elf = read_copy(bytes, cut, report);

        g_assert_nonnull(elf);
    }
}

static void wrong_header_is_refused_by_name(void)
{
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    Elf64_Ehdr *ehdr = (void *)bytes;
    const Elf64_Ehdr saved = *ehdr;

    ehdr->e_ident[EI_CLASS] = ELFCLASS32;
    expect_code(bytes, n, DAVIT_R_WRONG_CLASS);
    *ehdr = saved;
    ehdr->e_ident[EI_DATA] = ELFDATA2MSB;
    expect_code(bytes, n, DAVIT_R_WRONG_CLASS);
    *ehdr = saved;
    ehdr->e_machine = EM_S390;
    expect_code(bytes, n, DAVIT_R_WRONG_MACHINE);
    *ehdr = saved;
    ehdr->e_machine = 4711;
    expect_code(bytes, n, DAVIT_R_WRONG_MACHINE);
    *ehdr = saved;
    ehdr->e_type = ET_REL;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
    *ehdr = saved;
    ehdr->e_phnum = 0xffff;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
    *ehdr = saved;
    ehdr->e_phoff = UINT64_MAX - 8;
    expect_code(bytes, n, DAVIT_R_TRUNCATED);
    *ehdr = saved;
    ehdr->e_ident[0] = 'M';
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
}

static void other_files_are_refused(void)
{
    g_autofree char *self = NULL;
    g_autofree char *program = NULL;
    size_t n;

    expect_code((const uint8_t *)"", 0, DAVIT_R_TRUNCATED);
    expect_code((const uint8_t *)"\x7f"
                                 "EL",
                3, DAVIT_R_TRUNCATED);
    expect_code((const uint8_t *)"INPUT(libx.so)\n", 15, DAVIT_R_NOT_ELF);
    self = g_file_read_link("/proc/self/exe", NULL);
    g_assert_true(g_file_get_contents(self, &program, &n, NULL));
    expect_code((const uint8_t *)program, n, DAVIT_R_NOT_ELF);
}

static void wrong_segments_are_refused(void)
{
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    Elf64_Phdr *load = find_phdr(bytes, PT_LOAD);
    Elf64_Phdr *dynamic = find_phdr(bytes, PT_DYNAMIC);
    const Elf64_Phdr saved = *load;
    const Elf64_Phdr saved_dynamic = *dynamic;

    load->p_filesz = load->p_memsz = UINT64_MAX;
    expect_code(bytes, n, DAVIT_R_TRUNCATED);
    *load = saved;
    load->p_memsz = load->p_filesz - 1;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
    *load = saved;
    load->p_memsz = UINT64_MAX;
    load->p_vaddr = 4096;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
    *load = saved;
    load->p_align = 3;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
    *load = saved;
    dynamic->p_type = PT_NULL;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
    *dynamic = saved_dynamic;
    dynamic->p_vaddr = UINT64_MAX - 3;
    expect_code(bytes, n, DAVIT_R_NOT_ELF);
}

static void random_bytes_are_survived(void)
{
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("partial", &n);
    const size_t end = end_of_loads(bytes);

    for (int i = 0; i < 5000; i++) {
        g_autofree uint8_t *copy = g_memdup2(bytes, end);
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitElf) elf = NULL;

        for (int flips = g_test_rand_int_range(1, 6); flips > 0; flips--) {
            /* half of them in the headers, where most reading happens */
            const int32_t limit = g_test_rand_bit() ? 1024 : (int32_t)end;

            copy[g_test_rand_int_range(0, MIN(limit, (int32_t)end))] =
                (uint8_t)g_test_rand_int_range(0, 256);
        }
        elf = read_copy(copy, end, report);
        if (elf)
            davit_elf_check(elf, "x.so", report);
    }
}

/* ---- harm ---- */

static void expect_harm(const char *name, uint32_t code)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes(name, &n);
    g_autoptr(DavitElf) elf = davit_elf_read(bytes, n, "x.so", report);

    g_assert_nonnull(elf);
    g_assert_cmpint(davit_elf_check(elf, "x.so", report), ==, DAVIT_E_UNSUPPORTED);
    g_assert_nonnull(record_of(report, davit_code_name(code)));
    g_assert_cmpuint(davit_report_count(report), ==, 1);
}

static void harmful_objects_are_refused(void)
{
    expect_harm("execstack", DAVIT_R_EXEC_STACK);
    expect_harm("runpath_empty", DAVIT_R_BAD_RUNPATH);
    expect_harm("runpath_relative", DAVIT_R_BAD_RUNPATH);
    expect_harm("tls2k", DAVIT_R_STATIC_TLS);
}

static void absent_stack_header_counts_as_executable(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    g_autoptr(DavitElf) elf = NULL;

    find_phdr(bytes, PT_GNU_STACK)->p_type = PT_NULL;
    elf = davit_elf_read(bytes, n, "x.so", report);
    g_assert_true(elf && elf->exec_stack);
}

static void text_relocations_are_refused(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    size_t n;
    g_autofree uint8_t *bytes = fixture_bytes("good", &n);
    g_autoptr(DavitElf) elf = NULL;
    Elf64_Dyn *dyn = (void *)(bytes + find_phdr(bytes, PT_DYNAMIC)->p_offset);

    while (dyn->d_tag != DT_RELACOUNT && dyn->d_tag != DT_NULL)
        dyn++;
    g_assert_cmpint(dyn->d_tag, ==, DT_RELACOUNT);
    dyn->d_tag = DT_TEXTREL;
    elf = davit_elf_read(bytes, n, "x.so", report);
    g_assert_nonnull(elf);
    g_assert_cmpint(davit_elf_check(elf, "x.so", report), ==, DAVIT_E_UNSUPPORTED);
    g_assert_nonnull(record_of(report, "text-relocations"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/elf/good", good_file_is_read);
    g_test_add_func("/elf/variants", variants_are_read);
    g_test_add_func("/elf/no_section_headers", section_headers_are_not_needed);
    g_test_add_func("/elf/truncated", truncated_file_is_refused);
    g_test_add_func("/elf/wrong_header", wrong_header_is_refused_by_name);
    g_test_add_func("/elf/other_files", other_files_are_refused);
    g_test_add_func("/elf/wrong_segments", wrong_segments_are_refused);
    g_test_add_func("/elf/random_bytes", random_bytes_are_survived);
    g_test_add_func("/elf/harmful", harmful_objects_are_refused);
    g_test_add_func("/elf/no_stack_header", absent_stack_header_counts_as_executable);
    g_test_add_func("/elf/text_relocations", text_relocations_are_refused);
    return g_test_run();
}
