/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of the regex translator share: regex_onig.c reads what stands
 * outside brackets, regex_class.c single characters and classes. */
#ifndef DAVIT_BASE_REGEX_PATTERN_H
#define DAVIT_BASE_REGEX_PATTERN_H

#include "base/regex.h"
#include "base/regex_set.h"

#define MAX_GROUPS  200u
#define MAX_CLASSES 8u /* nested brackets */

/* One level of brackets. */
typedef struct DavitRegexLevel {
    DavitCharSet *now;    /* union of what was read since the last && */
    DavitCharSet *before; /* intersection of what stood before it; NULL = no && yet */
    bool negated;
} DavitRegexLevel;

typedef struct DavitRegexPattern {
    const char *start;
    const char *p;
    const char *end;
    GString *out;
    const char *why; /* why not; NULL = fine so far */
    size_t atom;     /* where the last atom begins in @out */
    bool has_atom;
    bool caseless[MAX_GROUPS + 1]; /* per open group */
    size_t groups[MAX_GROUPS + 1]; /* where each begins in @out */
    uint32_t depth;
    DavitRegexLevel levels[MAX_CLASSES];
    uint32_t n_levels;
} DavitRegexPattern;

/* The first reason counts. */
void davit_regex_refuse(DavitRegexPattern *t, const char *why);
/* Byte @ahead of the place, NUL at the end. */
char davit_regex_peek(const DavitRegexPattern *t, size_t ahead);
void davit_regex_begin_atom(DavitRegexPattern *t);

/* ---- regex_class.c ---- */

/* Code point of an escape that names one character (the place is after the backslash),
 * which is read, or false with nothing read. */
bool davit_regex_char_escape(DavitRegexPattern *t, uint32_t *out);
/* A plain character of the pattern; it is valid UTF-8. */
uint32_t davit_regex_char(DavitRegexPattern *t);
/* An escape that stands for a set, the place is on its letter: adds to @set and goes
 * past. */
bool davit_regex_set_escape(DavitRegexPattern *t, DavitCharSet *set);
/* @set as a class; @negated stays a negation, so that ignoring case works. */
void davit_regex_put_class(DavitRegexPattern *t, const DavitCharSet *set, bool negated);
/* At an opening bracket, in or outside a class. */
void davit_regex_open_class(DavitRegexPattern *t);
/* One step inside brackets. */
void davit_regex_in_class(DavitRegexPattern *t);

#endif
