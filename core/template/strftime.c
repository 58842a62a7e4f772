/* SPDX-License-Identifier: Apache-2.0
 * datetime.strftime in the C locale, whatever the process's locale is. */
#include "template/text.h"

#include <string.h>
#include <time.h>

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

static void number(Sb *out, int n, int width, char fill)
{
    char text[24];

    g_snprintf(text, sizeof text, fill == '0' ? "%0*d" : "%*d", width, n);
    tmpl_sb_add_text(out, text);
}

static void abbreviated(Sb *out, const char *name)
{
    tmpl_sb_add(out, name, NULL, 3);
}

static int hour12(const struct tm *t)
{
    return t->tm_hour % 12 ? t->tm_hour % 12 : 12;
}

/* ISO 8601 week number and its year. */
static int iso_week(const struct tm *t, int *out_year)
{
    const int day = (t->tm_wday + 6) % 7; /* Monday = 0 */
    int year = t->tm_year + 1900, week = (t->tm_yday - day + 10) / 7;
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    if (week < 1) {
        year--;
        const bool before = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        week = (t->tm_yday + 365 + before - day + 10) / 7;
    } else if (week == 53 && t->tm_yday - day + 3 >= 365 + leap) {
        year++;
        week = 1;
    }
    *out_year = year;
    return week;
}

/* Conversions made of others; NULL = not one. */
static const char *composite(char c)
{
    switch (c) {
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
        return "%m/%d/%y";
    case 'F':
        return "%Y-%m-%d";
    case 'T':
    case 'X':
        return "%H:%M:%S";
    case 'R':
        return "%H:%M";
    case 'r':
        return "%I:%M:%S %p";
    default:
        return NULL;
    }
}

static bool date_part(Sb *out, char c, const struct tm *t)
{
    int year;

    switch (c) {
    case 'a':
        abbreviated(out, days[t->tm_wday]);
        return true;
    case 'A':
        tmpl_sb_add_text(out, days[t->tm_wday]);
        return true;
    case 'b':
    case 'h':
        abbreviated(out, months[t->tm_mon]);
        return true;
    case 'B':
        tmpl_sb_add_text(out, months[t->tm_mon]);
        return true;
    case 'd':
        number(out, t->tm_mday, 2, '0');
        return true;
    case 'e':
        number(out, t->tm_mday, 2, ' ');
        return true;
    case 'j':
        number(out, t->tm_yday + 1, 3, '0');
        return true;
    case 'm':
        number(out, t->tm_mon + 1, 2, '0');
        return true;
    case 'y':
        number(out, (t->tm_year + 1900) % 100, 2, '0');
        return true;
    case 'Y':
        number(out, t->tm_year + 1900, 1, ' ');
        return true;
    case 'C':
        number(out, (t->tm_year + 1900) / 100, 2, '0');
        return true;
    case 'G':
        iso_week(t, &year);
        number(out, year, 1, ' ');
        return true;
    case 'g':
        iso_week(t, &year);
        number(out, year % 100, 2, '0');
        return true;
    case 'V':
        number(out, iso_week(t, &year), 2, '0');
        return true;
    case 'U':
        number(out, (t->tm_yday + 7 - t->tm_wday) / 7, 2, '0');
        return true;
    case 'W':
        number(out, (t->tm_yday + 7 - (t->tm_wday + 6) % 7) / 7, 2, '0');
        return true;
    case 'u':
        number(out, t->tm_wday ? t->tm_wday : 7, 1, ' ');
        return true;
    case 'w':
        number(out, t->tm_wday, 1, ' ');
        return true;
    default:
        return false;
    }
}

static bool time_part(Sb *out, char c, const struct tm *t, uint32_t micros)
{
    switch (c) {
    case 'H':
        number(out, t->tm_hour, 2, '0');
        return true;
    case 'k':
        number(out, t->tm_hour, 2, ' ');
        return true;
    case 'I':
        number(out, hour12(t), 2, '0');
        return true;
    case 'l':
        number(out, hour12(t), 2, ' ');
        return true;
    case 'M':
        number(out, t->tm_min, 2, '0');
        return true;
    case 'S':
        number(out, t->tm_sec, 2, '0');
        return true;
    case 'f':
        number(out, (int)micros, 6, '0');
        return true;
    case 'p':
        tmpl_sb_add_text(out, t->tm_hour < 12 ? "AM" : "PM");
        return true;
    case 'P':
        tmpl_sb_add_text(out, t->tm_hour < 12 ? "am" : "pm");
        return true;
    case 'z':
    case 'Z':
        return true; /* datetime.now() knows no zone */
    case 'n':
        tmpl_sb_add_c(out, '\n');
        return true;
    case 't':
        tmpl_sb_add_c(out, '\t');
        return true;
    case '%':
        tmpl_sb_add_c(out, '%');
        return true;
    default:
        return false;
    }
}

/* GNU's flag '-': no padding. */
static void unpadded(Vm *vm, Sb *out, char c, const struct tm *t)
{
    Sb part = {.arena = &vm->arena};
    size_t at = 0;

    if (!strchr("deHIjklmMSUVWyCg", c) ||
        !(date_part(&part, c, t) || time_part(&part, c, t, 0)))
        tmpl_unsupported(vm, "%%-%c in a date format", c);
    while (at + 1 < part.n && (part.p[at] == '0' || part.p[at] == ' '))
        at++;
    tmpl_sb_add(out, part.p + at, NULL, part.n - at);
}

static void add_format(Vm *vm, Sb *out, const Str *format, const struct tm *t,
                       uint32_t micros)
{
    for (size_t at = 0; at < format->n; at++) {
        char c = format->p[at];

        if (c != '%') {
            tmpl_sb_add(out, format->p + at, format->taint ? format->taint + at : NULL, 1);
            continue;
        }
        c = at + 1 < format->n ? format->p[++at] : '\0';
        if (c == '-' && at + 1 < format->n && format->p[at + 1]) {
            unpadded(vm, out, format->p[++at], t);
            continue;
        }
        const char *parts = composite(c);
        for (const char *p = parts; p && *p; p++) /* of plain conversions only */
            if (*p != '%')
                tmpl_sb_add_c(out, *p);
            else if (!date_part(out, *++p, t))
                time_part(out, *p, t, micros);
        if (!parts && !date_part(out, c, t) && !time_part(out, c, t, micros))
            tmpl_unsupported(vm, "%%%c in a date format", c ? c : ' ');
    }
}

void tmpl_strftime(Vm *vm, Sb *out, const Str *format, int64_t seconds, bool utc,
                   uint32_t micros)
{
    const time_t when = (time_t)seconds;
    struct tm t;

    if (!(utc ? gmtime_r(&when, &t) : localtime_r(&when, &t)) || t.tm_year < -900 ||
        t.tm_year > 8099)
        tmpl_raise(vm, "ValueError: year is out of range");
    add_format(vm, out, format, &t, micros);
}
