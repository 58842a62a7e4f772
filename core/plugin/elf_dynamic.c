/* SPDX-License-Identifier: Apache-2.0
 * PT_DYNAMIC: needed libraries, flags, run path and dynamic symbols. The number of
 * symbols comes from DT_HASH or DT_GNU_HASH, since section headers may be stripped.
 * Source: System V ABI, gABI 4.1 chapter 5; GNU hash table as read by glibc. */
#include "plugin/elf_internal.h"

#include <string.h>

#define MAX_DYNAMIC 4096      /* entries of PT_DYNAMIC */
#define MAX_SYMBOLS (1 << 20) /* entries of the symbol table */
#define MAX_NEEDED  1024
#define MAX_KEPT    256 /* names in DavitElf.exports */

/* Bytes of the file behind an address. */
typedef struct Piece {
    const uint8_t *ptr;
    uint64_t len; /* up to the end of the segment's file part */
} Piece;

typedef struct Dynamic {
    uint64_t strtab, n_str; /* addresses and bytes; 0 = absent */
    uint64_t symtab, syment;
    uint64_t hash, gnu_hash;
    uint64_t flags, flags_1;
    uint64_t runpath, rpath; /* offsets into the strings; valid with the has_ flag */
    bool has_runpath, has_rpath, has_textrel;
    uint64_t needed[MAX_NEEDED]; /* offsets into the strings */
    size_t n_needed;
    Piece strings;
} Dynamic;

static Piece piece_at(const ElfView *view, uint64_t vaddr)
{
    for (size_t i = 0; i < view->n_phdrs; i++) {
        const Elf64_Phdr *ph = &view->phdrs[i];

        if (ph->p_type == PT_LOAD && vaddr >= ph->p_vaddr &&
            vaddr - ph->p_vaddr < ph->p_filesz) {
            const uint64_t skip = vaddr - ph->p_vaddr;

            return (Piece){view->bytes + ph->p_offset + skip, ph->p_filesz - skip};
        }
    }
    return (Piece){NULL, 0};
}

static uint32_t u32_at(Piece piece, uint64_t index)
{
    uint32_t v;

    memcpy(&v, piece.ptr + index * sizeof v, sizeof v);
    return v;
}

/* (borrowed) string at @off, or NULL outside the table. The table ends with a NUL. */
static const char *string_at(const Dynamic *dyn, uint64_t off)
{
    return off < dyn->strings.len ? (const char *)dyn->strings.ptr + off : NULL;
}

/* ---- the entries ---- */

static void take_entry(Dynamic *dyn, const Elf64_Dyn *e)
{
    switch (e->d_tag) {
    case DT_STRTAB:
        dyn->strtab = e->d_un.d_ptr;
        break;
    case DT_STRSZ:
        dyn->n_str = e->d_un.d_val;
        break;
    case DT_SYMTAB:
        dyn->symtab = e->d_un.d_ptr;
        break;
    case DT_SYMENT:
        dyn->syment = e->d_un.d_val;
        break;
    case DT_HASH:
        dyn->hash = e->d_un.d_ptr;
        break;
    case DT_GNU_HASH:
        dyn->gnu_hash = e->d_un.d_ptr;
        break;
    case DT_FLAGS:
        dyn->flags = e->d_un.d_val;
        break;
    case DT_FLAGS_1:
        dyn->flags_1 = e->d_un.d_val;
        break;
    case DT_TEXTREL:
        dyn->has_textrel = true;
        break;
    case DT_RUNPATH:
        dyn->runpath = e->d_un.d_val;
        dyn->has_runpath = true;
        break;
    case DT_RPATH:
        dyn->rpath = e->d_un.d_val;
        dyn->has_rpath = true;
        break;
    case DT_NEEDED:
        if (dyn->n_needed < MAX_NEEDED)
            dyn->needed[dyn->n_needed++] = e->d_un.d_val;
        break;
    default:
        break;
    }
}

static int32_t read_entries(const ElfView *view, Dynamic *dyn)
{
    const Elf64_Phdr *found = NULL;
    Piece piece;

    for (size_t i = 0; i < view->n_phdrs; i++) {
        if (view->phdrs[i].p_type == PT_DYNAMIC)
            found = &view->phdrs[i];
    }
    if (!found)
        return elf_bad(view, DAVIT_R_NOT_ELF, "a dynamic segment", "none",
                       "the object is not made for dynamic loading");

    piece = piece_at(view, found->p_vaddr); /* where the loader will look */
    for (uint64_t i = 0; i < MAX_DYNAMIC; i++) {
        Elf64_Dyn e;

        if (piece.len < sizeof e)
            break;
        memcpy(&e, piece.ptr, sizeof e);
        if (e.d_tag == DT_NULL)
            return DAVIT_OK;
        take_entry(dyn, &e);
        piece.ptr += sizeof e;
        piece.len -= sizeof e;
    }
    return elf_bad(view, DAVIT_R_NOT_ELF, "a DT_NULL entry at its end", NULL,
                   "the dynamic segment has no end");
}

static int32_t find_strings(const ElfView *view, Dynamic *dyn)
{
    Piece piece = piece_at(view, dyn->strtab);

    if (!piece.ptr || dyn->n_str < 1 || dyn->n_str > piece.len ||
        piece.ptr[dyn->n_str - 1] != '\0')
        return elf_bad(view, DAVIT_R_NOT_ELF,
                       "a string table inside the file, with its end", NULL,
                       "the dynamic string table lies outside the file or has no end");
    piece.len = dyn->n_str;
    dyn->strings = piece;
    return DAVIT_OK;
}

/* ---- symbols ---- */

/* Number of symbols by the GNU hash table: the end of the chain that starts last. */
static bool count_gnu(const ElfView *view, const Dynamic *dyn, uint64_t *out_n)
{
    Piece table = piece_at(view, dyn->gnu_hash);
    uint32_t n_buckets, first, n_bloom;
    uint64_t buckets_off, last = 0;
    Piece buckets, chain;

    if (table.len < 16)
        return false;
    n_buckets = u32_at(table, 0);
    first = u32_at(table, 1);
    n_bloom = u32_at(table, 2);
    buckets_off = 16 + (uint64_t)n_bloom * 8;
    if (n_buckets > MAX_SYMBOLS || buckets_off > table.len ||
        (uint64_t)n_buckets * 4 > table.len - buckets_off)
        return false;

    buckets = (Piece){table.ptr + buckets_off, (uint64_t)n_buckets * 4};
    chain = (Piece){buckets.ptr + buckets.len, table.len - buckets_off - buckets.len};
    for (uint64_t i = 0; i < n_buckets; i++)
        last = MAX(last, u32_at(buckets, i));
    if (last ==
        0) { /* every bucket is empty: only undefined symbols, numbered below first */
        *out_n = first;
        return true;
    }
    if (last < first)
        return false;
    for (uint64_t i = last - first; i < chain.len / 4; i++) {
        if (u32_at(chain, i) & 1) {
            *out_n = first + i + 1;
            return true;
        }
    }
    return false;
}

static bool count_symbols(const ElfView *view, const Dynamic *dyn, uint64_t *out_n)
{
    if (dyn->hash) {
        const Piece table = piece_at(view, dyn->hash);

        if (table.len < 8)
            return false;
        *out_n = u32_at(table, 1);
        return true;
    }
    *out_n = 0;
    return !dyn->gnu_hash || count_gnu(view, dyn, out_n);
}

static bool is_exported(const Elf64_Sym *sym)
{
    const unsigned bind = ELF64_ST_BIND(sym->st_info);
    const unsigned seen = ELF64_ST_VISIBILITY(sym->st_other);

    return sym->st_shndx != SHN_UNDEF && bind != STB_LOCAL &&
           (seen == STV_DEFAULT || seen == STV_PROTECTED);
}

static int32_t read_symbols(const ElfView *view, const Dynamic *dyn, DavitElf *elf)
{
    const Piece table = piece_at(view, dyn->symtab);
    uint64_t n = 0;

    if (!count_symbols(view, dyn, &n) || n > MAX_SYMBOLS ||
        n > table.len / sizeof(Elf64_Sym) || (n > 0 && dyn->syment != sizeof(Elf64_Sym)))
        return elf_bad(view, DAVIT_R_NOT_ELF, "a symbol table inside the file", NULL,
                       "the dynamic symbols cannot be counted");

    for (uint64_t i = 1; i < n; i++) { /* entry 0 is reserved */
        Elf64_Sym sym;
        const char *name;

        memcpy(&sym, table.ptr + i * sizeof sym, sizeof sym);
        if (!is_exported(&sym))
            continue;
        name = string_at(dyn, sym.st_name);
        if (!name)
            return elf_bad(view, DAVIT_R_NOT_ELF, "names inside the string table", NULL,
                           "the name of a dynamic symbol lies outside its table");
        elf->n_exports++;
        if (elf->exports->len < MAX_KEPT)
            g_ptr_array_add(elf->exports, g_strdup(name));
        if (strcmp(name, DAVIT_ENTRY_SYMBOL) == 0)
            elf->has_entry = true;
    }
    return DAVIT_OK;
}

/* ---- the whole ---- */

static int32_t read_names(const ElfView *view, const Dynamic *dyn, DavitElf *elf)
{
    for (size_t i = 0; i < dyn->n_needed; i++) {
        const char *name = string_at(dyn, dyn->needed[i]);

        if (!name)
            return elf_bad(view, DAVIT_R_NOT_ELF, "names inside the string table", NULL,
                           "the name of a needed library lies outside its table");
        g_ptr_array_add(elf->needed, g_strdup(name));
    }
    if (dyn->has_runpath || dyn->has_rpath) {
        const char *path = string_at(dyn, dyn->has_runpath ? dyn->runpath : dyn->rpath);

        if (!path)
            return elf_bad(view, DAVIT_R_NOT_ELF, "a RUNPATH inside the string table",
                           NULL, "the run path lies outside its table");
        elf->runpath = g_strdup(path);
    }
    return DAVIT_OK;
}

int32_t elf_read_dynamic(const ElfView *view, DavitElf *elf)
{
    g_autofree Dynamic *dyn = g_new0(Dynamic, 1);

    if (read_entries(view, dyn) || find_strings(view, dyn))
        return DAVIT_E_CORRUPT;
    if (dyn->flags_1 & DF_1_PIE)
        return elf_bad(view, DAVIT_R_NOT_ELF, "a shared object", "a program",
                       "the ELF file is an executable program");
    elf->text_relocations = dyn->has_textrel || (dyn->flags & DF_TEXTREL);
    elf->static_tls = (dyn->flags & DF_STATIC_TLS) != 0;
    if (read_names(view, dyn, elf))
        return DAVIT_E_CORRUPT;
    return read_symbols(view, dyn, elf);
}
