/* SPDX-License-Identifier: Apache-2.0
 * Work is bounded by the bytes of all names: a block is compared once with the one before it, and
 * blocks of one head do not overlap. */
#include "plan/series.h"

#include <string.h>

#include "plan/name_index.h"

#define MAX_DIGITS 9u /* numbers fit 32 bits */

/* A number in a name: digits [start, end), then a dot. */
typedef struct Number {
    size_t start, end;
} Number;

struct DavitSeriesSet {
    const DavitCheckpoint *checkpoint;
    const DavitModules *modules;
    GArray *series;        /* DavitSeries in the order of their templates */
    DavitNameIndex *heads; /* names borrowed from head_texts */
    GStringChunk *head_texts;
    GPtrArray *of_head;    /* (owned) by number of the head: GArray of uint32_t, series */
    uint32_t open;         /* the series that a block was added to last, while that block is the
                            * last one; UINT32_MAX = none */
    /* the first number that was replaced last: names of one layer are asked for in a row */
    char *known, *known_as; /* (owned) "model.layers.7.", "model.layers.0." */
    size_t n_known, n_known_as;
    size_t known_offset;
};

static void series_clear(void *p)
{
    g_array_unref(((DavitSeries *)p)->numbers);
}

static void list_free(void *p)
{
    g_array_unref(p);
}

DavitSeriesSet *davit_series_set_new(const DavitCheckpoint *checkpoint,
                                     const DavitModules *modules)
{
    DavitSeriesSet *set = g_new0(DavitSeriesSet, 1);

    set->checkpoint = checkpoint;
    set->modules = modules;
    set->series = g_array_new(FALSE, TRUE, sizeof(DavitSeries));
    g_array_set_clear_func(set->series, series_clear);
    /* two blocks of a tensor each make a head */
    set->heads = davit_name_index_new(davit_checkpoint_n_tensors(checkpoint) / 2 + 1);
    set->head_texts = g_string_chunk_new(4096);
    set->of_head = g_ptr_array_new_with_free_func(list_free);
    set->open = UINT32_MAX;
    return set;
}

void davit_series_set_free(DavitSeriesSet *set)
{
    if (!set)
        return;
    g_array_unref(set->series);
    davit_name_index_free(set->heads);
    g_string_chunk_free(set->head_texts);
    g_ptr_array_unref(set->of_head);
    g_free(set->known);
    g_free(set->known_as);
    g_free(set);
}

const DavitSeries *davit_series_at(const DavitSeriesSet *set, uint32_t series)
{
    return &g_array_index(set->series, DavitSeries, series);
}

/* ---- names and numbers ---- */

static const char *name_of(const DavitSeriesSet *set, size_t tensor)
{
    return davit_checkpoint_tensor(set->checkpoint, tensor)->name;
}

/* Digits of @name from @start on, as numbers are written, then a dot. */
static bool number_at(const char *name, size_t start, Number *out)
{
    size_t end = start;

    while (g_ascii_isdigit(name[end]) && end - start <= MAX_DIGITS)
        end++;
    if (end == start || end - start > MAX_DIGITS || name[end] != '.' ||
        (name[start] == '0' && end - start > 1))
        return false;
    *out = (Number){start, end};
    return true;
}

static uint32_t value_of(const char *name, Number number)
{
    uint32_t n = 0;

    for (size_t i = number.start; i < number.end; i++)
        n = n * 10 + (uint32_t)(name[i] - '0');
    return n;
}

/* Do @a and @b differ first within a number that both have at one place? */
static bool differ_in_number(const char *a, const char *b, Number *out_a, Number *out_b)
{
    size_t at = 0;

    while (a[at] && a[at] == b[at])
        at++;
    while (at > 0 && g_ascii_isdigit(a[at - 1]))
        at--;
    return at > 0 && number_at(a, at, out_a) && number_at(b, at, out_b);
}

static bool starts_like(const char *name, const char *other, size_t n)
{
    return strncmp(name, other, n) == 0;
}

/* ---- growing ---- */

/* The block in front of @tensor as a template without more blocks; @number: of its names. False if
 * it cannot be one: a module of its tensors has tensors elsewhere, or may have. */
static bool last_block(const DavitSeriesSet *set, uint32_t tensor, Number number, DavitSeries *out)
{
    const char *name = name_of(set, tensor - 1);
    const size_t prefix = number.end + 1;
    uint32_t first = tensor - 1, low = 0, high = (uint32_t)set->modules->len, n_parts = 0;

    while (first > 0 && starts_like(name_of(set, first - 1), name, prefix))
        first--;
    while (low < high) { /* modules are in the order of their first tensors */
        const uint32_t middle = low + (high - low) / 2;

        if (set->modules->at[middle].tensor[0] < first)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t m = low; m < set->modules->len; m++) {
        if (set->modules->at[m].name_len <= prefix)
            return false; /* "experts.0" may have a part "experts.0_scale" behind "experts.00" */
        n_parts += set->modules->at[m].n_parts;
    }
    *out = (DavitSeries){.head_len = number.start,
                         .digits = number.end - number.start,
                         .first_tensor = first,
                         .n_tensors = tensor - first,
                         .first_module = low,
                         .n_modules = (uint32_t)set->modules->len - low};
    return n_parts == tensor - first; /* none is of a module that began before */
}

/* Are the tensors from @tensor on, whose names have @number, the template's with another number,
 * and all that have it? */
static bool is_alike(const DavitSeriesSet *set, const DavitSeries *series, uint32_t tensor,
                     Number number)
{
    const size_t n = davit_checkpoint_n_tensors(set->checkpoint);
    const size_t prefix = number.end + 1, theirs = series->head_len + series->digits + 1;
    const char *first = name_of(set, tensor);

    if (n - tensor < series->n_tensors)
        return false;
    for (uint32_t k = 0; k < series->n_tensors; k++) {
        const char *name = name_of(set, tensor + k);

        if (!starts_like(name, first, prefix) ||
            strcmp(name + prefix, name_of(set, series->first_tensor + k) + theirs) != 0)
            return false;
    }
    tensor += series->n_tensors;
    return tensor == n || !starts_like(name_of(set, tensor), first, prefix);
}

/* Keep @series, whose template is named like @name. */
static void add_series(DavitSeriesSet *set, DavitSeries *series, const char *name)
{
    const char **place;
    const uint32_t at = set->series->len;
    const uint32_t head =
        davit_name_index_put(set->heads, name, series->head_len, &place);

    if (place) {
        *place = g_string_chunk_insert_len(set->head_texts, name, (gssize)series->head_len);
        g_ptr_array_add(set->of_head, g_array_new(FALSE, FALSE, sizeof(uint32_t)));
    }
    g_array_append_val((GArray *)g_ptr_array_index(set->of_head, head), at);
    series->numbers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_val(set->series, *series);
    set->open = at;
}

static void add_number(DavitSeriesSet *set, uint32_t tensor, Number number)
{
    const uint32_t n = value_of(name_of(set, tensor), number);

    g_array_append_val(davit_series_at(set, set->open)->numbers, n);
}

/* Does the last block that was added end in front of @tensor, which has its head and a number? */
static bool is_open(const DavitSeriesSet *set, uint32_t tensor, Number *out)
{
    const DavitSeries *s =
        set->open == UINT32_MAX ? NULL : davit_series_at(set, set->open);
    const char *name = name_of(set, tensor);

    return s && s->first_tensor + s->numbers->len * s->n_tensors == tensor &&
           starts_like(name, name_of(set, tensor - 1), s->head_len) &&
           number_at(name, s->head_len, out);
}

const DavitSeries *davit_series_extend(DavitSeriesSet *set, uint32_t tensor)
{
    Number before, number;
    DavitSeries last;

    if (tensor == 0)
        return NULL;
    if (is_open(set, tensor, &number)) {
        if (!is_alike(set, davit_series_at(set, set->open), tensor, number))
            return NULL;
    } else {
        if (!differ_in_number(name_of(set, tensor - 1), name_of(set, tensor), &before, &number) ||
            !last_block(set, tensor, before, &last) || !is_alike(set, &last, tensor, number))
            return NULL;
        add_series(set, &last, name_of(set, last.first_tensor));
        add_number(set, tensor - 1, before);
    }
    add_number(set, tensor, number);
    return davit_series_at(set, set->open);
}

/* ---- finding ---- */

/* The order of a block's number and that of @name at @number, as names are ordered. */
static int compare_block(const DavitSeriesSet *set, const DavitSeries *series, uint32_t block,
                         const char *name, Number number)
{
    const char *own = name_of(set, series->first_tensor + block * series->n_tensors);

    return strncmp(own + series->head_len, name + number.start, number.end - number.start + 1);
}

static int64_t find_block(const DavitSeriesSet *set, const DavitSeries *series, const char *name,
                          Number number)
{
    uint32_t low = 0, high = series->numbers->len;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare_block(set, series, middle, name, number);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* The series of @list, in order, that may have the number. */
static const DavitSeries *series_with(const DavitSeriesSet *set, const GArray *list,
                                      const char *name, Number number)
{
    guint low = 0, high = list->len;

    while (low < high) { /* the last one whose first number is not above it */
        const guint middle = low + (high - low) / 2;
        const DavitSeries *s = davit_series_at(set, g_array_index(list, uint32_t, middle));

        if (compare_block(set, s, 0, name, number) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? davit_series_at(set, g_array_index(list, uint32_t, low - 1)) : NULL;
}

const GArray *davit_series_of_head(const DavitSeriesSet *set, const char *head, size_t len)
{
    const int64_t at = davit_name_index_find(set->heads, head, len);

    return at < 0 ? NULL : g_ptr_array_index(set->of_head, (guint)at);
}

/* Keep that names which begin with the first @n bytes of @name have @as [@n_as] for them. */
static void know(DavitSeriesSet *set, const char *name, size_t n, const char *as, size_t n_as,
                 size_t offset)
{
    g_free(set->known);
    g_free(set->known_as);
    set->known = g_strndup(name, n);
    set->known_as = g_strndup(as, n_as);
    set->n_known = n;
    set->n_known_as = n_as;
    set->known_offset = offset;
}

/* The number of @out at @at by its template's. Returns: the offset, 0 = it stays. */
static size_t replace(const DavitSeriesSet *set, char *out, size_t *len, size_t cap, Number number)
{
    const GArray *list = davit_series_of_head(set, out, number.start);
    const DavitSeries *series = list ? series_with(set, list, out, number) : NULL;
    const int64_t block = series ? find_block(set, series, out, number) : -1;
    const size_t digits = number.end - number.start;

    if (block <= 0 || *len - digits + series->digits >= cap)
        return 0;
    memmove(out + number.start + series->digits, out + number.end, *len + 1 - number.end);
    memcpy(out + number.start, name_of(set, series->first_tensor) + number.start, series->digits);
    *len += series->digits - digits;
    return (size_t)block * series->n_modules;
}

/* @name [*len] begins as the last one did. Returns: bytes of @out that are settled, 0 = it does not. */
static size_t begin_known(const DavitSeriesSet *set, const char *name, size_t *len, char *out,
                          size_t cap)
{
    if (!set->known || *len < set->n_known || memcmp(name, set->known, set->n_known) != 0 ||
        *len - set->n_known + set->n_known_as >= cap)
        return 0;
    memcpy(out, set->known_as, set->n_known_as);
    memcpy(out + set->n_known_as, name + set->n_known, *len - set->n_known);
    *len = *len - set->n_known + set->n_known_as;
    out[*len] = '\0';
    return set->n_known_as;
}

size_t davit_series_template(DavitSeriesSet *set, const char *name, size_t len, char *out,
                             size_t cap, size_t *out_offset)
{
    size_t at = 1;

    *out_offset = 0;
    if (len == 0 || len >= cap)
        return 0;
    if (set->series->len && (at = begin_known(set, name, &len, out, cap))) {
        *out_offset = set->known_offset;
    } else {
        memcpy(out, name, len);
        out[len] = '\0';
        at = 1;
    }
    while (set->series->len && (at += strcspn(out + at, "0123456789")) < len) {
        Number number;
        size_t further;

        if (!g_ascii_isdigit(out[at - 1]) && number_at(out, at, &number) &&
            (further = replace(set, out, &len, cap, number))) {
            const size_t end = at + strspn(out + at, "0123456789") + 1;

            if (*out_offset == 0)
                know(set, name, number.end + 1, out, end, further);
            *out_offset += further;
        }
        at += strspn(out + at, "0123456789");
    }
    return len;
}
