#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of core/template: templates of our own for every construct, rendered by jinja2 in the
environment that transformers builds. Writes templates.golden.json beside this script.

    python3 make_template_goldens.py

Needs transformers (tried: 5.24.0) and jinja2 (3.1.6); Python 3.11, whose Unicode is 14. Each case is
{"template", "vars": name -> JSON text} and "text", or "raises" where the reference raises. The clock
is fixed at 1700000000 UTC. Cases of one list entry share their variables.
"""
import datetime
import json
import os
import sys

import jinja2
import transformers
import transformers.utils.chat_template_utils as chat


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(1700000000, datetime.timezone.utc).replace(tzinfo=None)


chat.datetime = FixedClock

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Grüße, 日本! <b>\n"},
    {"role": "assistant", "content": None, "reasoning": "so", "tool_calls": [
        {"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2.5, "c": [True, None]}}}]},
    {"role": "tool", "content": "3.5", "name": "add"},
    {"role": "user", "content": [{"type": "text", "text": "and"}, {"type": "image"}]},
]
VARS = {
    "messages": MESSAGES,
    "tools": [{"type": "function", "function": {"name": "add", "description": "It's \"a\" & b",
               "parameters": {"type": "object", "properties": {"items": {"type": ["array", "null"]}}}}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
    "n": 7, "f": 2.5, "t": True, "none_value": None, "s": "Hello World", "u8": "Ünï ΣΑΣ straße",
    "big": 123456789012345678901234567890, "list": [3, 1, 2], "names": ["b", "A", "c", "B"],
    "people": [{"name": "Bo", "age": 3}, {"name": "al", "age": 3}, {"name": "Cy"}],
    "d": {"b": 1, "A": [1, "x"], "é": None},
}

# One case each, unless it is a list: then all of them with the same variables.
CASES = {}


def add(group, *templates):
    CASES.setdefault(group, []).extend(templates)


add("whitespace",
    "a\n  {% if t %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%- if t %}\n  b\n  {%+ endif +%}\nc\n\n",
    "  {{ n }}  \n {{- n -}} \n x", "{# c #}\nx{#- c -#}\n y {#+ c +#}\n", "  {# c #}\nx", "\r\na\r\n{% if t %}\r\nb{% endif %}\r\n",
    "{% raw %}{{ x }} {% q %}{% endraw %}\nz", "  {% raw -%}\n {{ x }}\n{%- endraw %}\n", "a {%- raw -%} b {%- endraw -%} c",
    "{% for m in messages %}\n    [{{ m.role }}]\n{% endfor %}\nEND", "{{ 'a' }}\n{{ 'b' }}\n", "x{{- '' }}\n\n", "")
add("literals",
    "{{ 1 }}{{ 1_000 }} {{ 0x1f }} {{ 0b11 }} {{ 0o17 }} {{ 1.50 }} {{ 1e3 }} {{ 2.5e-7 }} {{ 1e22 }} {{ 0.1 + 0.2 }}",
    "{{ 'a' \"b\" 'c' }} {{ 'it\\'s' }} {{ \"\\x41\\u00e9\\U0001F600\\n\\t\\\\\" }} {{ 'a\\qb' }} {{ 'é\\é' }}",
    "{{ [1, 'a', none, true, 1.0, [], {}, (), (1,), (1, 2)] }}", "{{ {'a': 1, 2: 'b', none: [], 1.5: {}} }}",
    "{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}", "{{ 'quote\\'\"' }}{{ ['quote\\'', 'both\\'\"', '\\n\\x00\\u200b\\u00e9'] }}",
    "{{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 123456789012345680.0 }} {{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }}")
add("operators",
    "{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7.5 % -2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }}",
    "{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ -2 ** 2 }} {{ 'ab' * 3 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ true + 1 }}",
    "{{ 1 ~ 'a' ~ none ~ u ~ [1] }} {{ 'a' ~ 1 + 2 }}", "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ 1 == true }}",
    "{{ 1 in [1] }} {{ 'a' in 'abc' }} {{ 'z' not in d }} {{ 'b' in d }} {{ 2 in (1, 2) }} {{ none in [] }} {{ 1 in u }}",
    "{{ 1 and 0 }} {{ '' or 'x' }} {{ not [] }} {{ u or 'd' }} {{ 1 if t else 2 }} {{ 1 if false }}|{{ (1 if false) is defined }}",
    "{{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}",
    "{{ 1 / 0 }}", "{{ 1 + 'a' }}", "{{ 1 < 'a' }}", "{{ -'a' }}", "{{ [] + 1 }}", "{{ 1 // 0.0 }}")
add("names",
    "{{ u }}|{{ u is defined }}|{{ u.x }}", "{{ u[0] }}", "{{ u() }}", "{{ d.b }} {{ d['b'] }} {{ d.zz is defined }} {{ d['zz'] is defined }}",
    "{{ messages[0].role }} {{ messages[-1]['role'] }} {{ messages[9] is defined }} {{ messages[9].x }}",
    "{{ d.items is callable }} {{ {'items': 3}['items'] }} {{ {'items': 3}.items is callable }}", "{{ s.__class__ }}|{{ s.__class__.x }}",
    "{{ list.append(1) }}", "{{ d.update({}) }}", "{{ list.append is defined }}", "{{ n.real }} {{ f.imag }}", "{{ s.upper is callable }} {{ 'x'.nosuch is defined }}", "{{ list.0 }} {{ list.1 }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}", "{% if t %}{% set y = 1 %}{% endif %}{{ y }}{% if not t %}{% set n = 0 %}{% endif %}{{ n }}",
    "{% set f = 0 %}{% set ns = namespace(f=0) %}{% for i in [1, 2] %}{% set f = f + i %}{% set ns.f = ns.f + i %}{% endfor %}{{ f }} {{ ns.f }} {{ ns }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (a, b), c = [[3, 4], 5] %}{{ a }}{{ b }}{{ c }}", "{% set a, b = [1] %}", "{% set n.x = 1 %}", "{% set ns = namespace(_a=1) %}")
add("slices",
    "{{ s[1:4] }} {{ s[:-3] }} {{ s[::2] }} {{ s[::-1] }} {{ u8[1:3] }} {{ u8[::-1] }} {{ s[10:2:-3] }} {{ s[100:] }}|",
    "{{ messages[1:] | length }} {{ list[::-1] }} {{ (1, 2, 3)[1:] }} {{ range(5)[1:3] }} {{ list[-2:] }} {{ list[:0] }}", "{{ list[::0] }}", "{{ d[1:] }}", "{{ list['a':] }}")
add("if", "{% if n > 10 %}a{% elif n > 6 %}b{% elif n %}c{% else %}d{% endif %}", "{% if u %}a{% elif false %}b{% else %}c{% endif %}", "{% if not u and t or f %}x{% endif %}")
add("for",
    "{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }},{% endfor %}",
    "{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }};{% endfor %}",
    "{% for x in [] %}x{% else %}empty{% endfor %}{% for x in u %}x{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
    "{% for x in range(6) if x % 2 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}", "{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1, 2] %}{% continue %}{% else %}quirk{% endfor %}", "{% for a in [1, [2, [3]]] recursive %}{{ loop(a) if a is iterable else a }}{{ loop.depth0 }}{% endfor %}",
    "{% for c in 'aé' %}{{ c }}-{% endfor %}{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in range(3, 0, -1) %}{{ x }}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for m in messages[::-1] %}{{ m.role }},{% endfor %}",
    "{% for a in [[1, 2], [3]] %}{% for b in a %}{{ loop.index }}{{ b }}{% endfor %}{{ loop.index }};{% endfor %}", "{{ loop }}", "{% for x in list %}{{ loop }}{% endfor %}")
add("macros",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}|{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=5, a=4) }}{{ m() }}", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}", "{% macro w(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call w('p') %}in {{ n }}{% endcall %}",
    "{% macro w() %}{% for i in [1, 2] %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) w() %}[{{ x }}]{% endcall %}", "{% macro m() %}{{ x }}{% endmacro %}{% set x = 3 %}{{ m() }}{% for x in [9] %}{{ m() }}{% endfor %}",
    "{% macro r(k) %}{{ k }}{% if k > 0 %}{{ r(k - 1) }}{% endif %}{% endmacro %}{{ r(5) }}", "{% macro m(a) %}{% endmacro %}{{ m }} {{ m.name }} {{ m.arguments }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}")
add("blocks",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper | trim %} a{{ s }} {% endset %}[{{ x }}]", "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | indent(2, true) %}a\na{% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% generation %}x{{ n }}{% endgeneration %}y", "{% print n %}", "{% filter length %}x{% endfilter %}")
add("filters",
    "{{ s | upper }}{{ s | lower }}{{ s | title }}{{ 'hello wORLD' | capitalize }} {{ u8 | upper }} {{ u8 | lower }} {{ 'a-b c(d' | title }}", "{{ '  x ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ '\u00a0a\u2003' | trim }}|{{ n | trim }}",
    "{{ s | replace('l', 'L') }}{{ s | replace('l', 'L', 1) }}{{ 'aa' | replace('', '-') }}", "{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb\n\nc' | indent(2, true, true) }}|{{ 'a\r\nb' | indent('> ') }}",
    "{{ list | length }}{{ u | length }}{{ s | count }} {{ list | first }}{{ list | last }}{{ [] | first }}{{ s | last }} {{ s | reverse }} {{ list | reverse | list }}", "{{ list | sort }}{{ list | sort(reverse=true) }}{{ names | sort }}{{ names | sort(case_sensitive=true) }}{{ people | sort(attribute='name') | map(attribute='name') | list }}",
    "{{ names | unique | list }} {{ [1, 1.0, true, 2] | unique | list }} {{ d | dictsort }} {{ d | dictsort(by='key', reverse=true) }}", "{{ names | join(', ') }}{{ people | join('|', attribute='name') }}{{ [1, none, u] | join('-') }}",
    "{{ people | map(attribute='age', default=0) | list }} {{ names | map('lower') | join }} {{ names | map('replace', 'b', 'x') | list }} {{ [1, 2] | map('string') | list }}", "{{ range(6) | select('odd') | list }}{{ range(6) | reject('odd') | list }}{{ [0, 1, ''] | select | list }}{{ people | selectattr('age') | list | length }}{{ people | rejectattr('age', 'defined') | list }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | selectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | list }}",
    "{{ people | groupby('age', default=0) }} {% for g in people | groupby('age', default=0) %}{{ g.grouper }}:{{ g.list | length }} {% endfor %}", "{{ [1, 2, 3, 4, 5] | batch(2) | list }}{{ [1, 2, 3] | batch(2, 0) | list }}{{ [1, 2, 3, 4, 5] | slice(2) | list }}{{ [1, 2, 3] | slice(2, 'x') | list }}",
    "{{ list | sum }}{{ people | sum(attribute='age', start=1) }}", "{{ [1, 2] | sum(start=0.5) }} {{ list | min }}{{ list | max }}{{ names | min }}{{ people | max(attribute='name') }}{{ [] | max }}",
    "{{ u | default('d') }}{{ none | default('d') }}{{ '' | default('d', true) }}{{ u | d }}", "{{ '12' | int }}{{ '0x1f' | int(base=16) }}{{ '3.9' | int }}{{ 'z' | int }}{{ 'z' | int(5) }}{{ 3.9 | int }}{{ none | int }} {{ '1_0' | int }}{{ ' 7 ' | int }}{{ true | int }}", "{{ '1.5' | float }}{{ 'z' | float }}{{ 2 | float }}{{ '1e3' | float }}{{ 'inf' | float }}",
    "{{ 2.5 | round }}{{ 3.5 | round }}{{ 2.675 | round(2) }}{{ 2.1 | round(0, 'ceil') }}{{ 2.19 | round(1, 'floor') }}{{ 7 | round }}{{ 1234 | round(-2) }}", "{{ -3 | abs }}{{ -2.5 | abs }}", "{{ d | items | list }}{{ u | items | list }}", "{{ [1, 2] | string | upper }} {{ 5 | string | length }} {{ ['string', 'null'] | upper }}",
    "{{ '<a>&\"\\'' | escape }}{{ '<b>' | safe }}{{ ('<b>' | safe) + '<c>' }}{{ '<b>' | safe is escaped }}", "{{ '%s is %d, %.2f %5d|%-5s|%05d %x %%' | format('x', 3, 2.5, 42, 'ab', 42, 255) }}{{ '%(a)s' | format(a=1) }}", "{{ s | truncate(8) }}{{ 'hello wonderful world' | truncate(12) }}{{ 'hello wonderful world' | truncate(9, true, '!', 0) }} {{ s | center(17) }}|{{ s | wordcount }}",
    "{{ s | nosuch }}", "{% if false %}{{ s | nosuch }}{% endif %}ok", "{{ u | int }}", "{{ u | tojson }}", "{{ 5 | length }}", "{{ 5 | first }}", "{{ people | sort }}", "{{ s | attr('upper') is callable }}{{ d | attr('b') is defined }}", "{% set g = list | map('string') %}{{ g | list }}{{ g | list }}")
add("tojson",
    "{{ d | tojson }} {{ tools | tojson }} {{ [1, 1.0, true, none, 'é\"\\\\\\n\\x01\\x7f'] | tojson }} {{ '</script>' | tojson }}", "{{ d | tojson(indent=2) }} {{ [] | tojson(indent=1) }} {{ [1, [2]] | tojson(indent=0) }} {{ {} | tojson(indent=4) }} {{ [1] | tojson(indent='--') }}",
    "{{ d | tojson(ensure_ascii=true) }} {{ '😀\\x7f' | tojson(true) }} {{ d | tojson(sort_keys=true) }} {{ d | tojson(separators=(',', ':')) }} {{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }} {{ (1, 2) | tojson }} {{ 1e100 | tojson }}", "{{ range(3) | tojson }}", "{{ {(1, 2): 3} | tojson }}")
add("tests",
    "{{ n is defined }}{{ u is undefined }}{{ none is none }}{{ t is boolean }}{{ t is true }}{{ t is false }}{{ n is integer }}{{ f is float }}{{ t is number }}{{ s is string }}{{ d is mapping }}{{ list is sequence }}{{ u is sequence }}{{ u is iterable }}{{ n is iterable }}{{ s is iterable }}",
    "{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 1 is eq 1 }}{{ 1 is ne 1 }}{{ 1 is lt 2 }}{{ 1 is ge 2 }}{{ 'a' is equalto 'a' }}{{ 1 is in [1] }}{{ 'x' is not in 'abc' }}{{ 'a' is lower }}{{ 'A' is upper }}{{ none is sameas none }}{{ range is callable }}{{ 'upper' is filter }}{{ 'odd' is test }}", "{{ not n is string }}{{ n is not string and t }}", "{{ n is nosuch }}", "{{ t and n is nosuch if false else 'ok' }}")
add("methods",
    "{{ s.upper() }}{{ s.lower() }}{{ s.split() }}{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a b c'.split(' ', 1) }}{{ 'a b c'.split(none, 1) }}{{ 'a.b.c'.rsplit('.', 1) }}{{ 'a\\nb\\r\\nc'.splitlines() }}", "{{ ' x '.strip() }}|{{ 'xaxx'.strip('x') }}|{{ ' x '.lstrip() }}|{{ ' x '.rstrip() }}|{{ 'abcba'.strip('ab') }}",
    "{{ s.startswith('He') }}{{ s.endswith(('x', 'd')) }}{{ s.find('o') }}{{ s.rfind('o') }}{{ s.find('zz') }}{{ s.count('l') }}{{ s.index('W') }}{{ u8.find('Σ') }}", "{{ s.replace('l', '1') }}{{ s.title() }}{{ 'aB'.swapcase() }}{{ 'hello'.capitalize() }}{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ 'ab'.center(7, '*') }}{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4) }}", "{{ '-'.join(names) }}{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}{{ 'a\\tb'.expandtabs(4) }}",
    "{{ 'abc'.isalpha() }}{{ '12'.isdigit() }}{{ 'a1'.isalnum() }}{{ ' '.isspace() }}{{ 'AB'.isupper() }}{{ 'ab'.islower() }}{{ 'Ab C'.istitle() }}{{ 'é'.isascii() }}", "{{ '{} {1} {a}'.format(1, 2, a=3) }}", "{{ '{} {a!r} {:>5}|{:<5}|{:^5}|{:05.1f} {:,} {:x} {{}}'.format(1, 'ab', 'cd', 'ef', 2.55, 1234567, 255, a='q') }}", "{{ d.get('b') }}{{ d.get('zz') }}{{ d.get('zz', 1) }}{{ d.keys() }}{{ d.values() }}{{ d.items() }}{{ d.keys() | list }}{{ d.copy() }}", "{{ list.index(1) }}{{ list.count(3) }}{{ (1, 2).index(2) }}", "{{ 'a'.split('') }}", "{{ s.index('zz') }}", "{{ s.nosuch() }}", "{{ list.pop() }}", "{{ '%s %s' % (1, 'a') }}{{ '%d' % 3.7 }}{{ '%s' % [1] }}{{ '%r' % 'a' }}", "{{ '%d' % 'a' }}", "{{ 'x'.join([1]) }}")
add("globals",
    "{{ range(3) }}{{ range(3) | list }}{{ range(1, 9, 3) | list }}{{ range(0) | list }}", "{{ range(100001) }}", "{{ dict(a=1, b=2) }}{{ dict({'a': 1}, c=3) }}{{ dict([['x', 1]]) }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}", "{% set j = joiner('; ') %}{% for x in list %}{{ j() }}{{ x }}{% endfor %}", "{{ raise_exception('not like this') }}", "{{ strftime_now('%d %b %Y, %A %H:%M:%S %j %U %y %p %I %% %e') }}", "{{ namespace(a=1).a }}", "{{ lipsum is callable }}")
add("templates",
    "{% set x = 1 %}{% block a %}[{{ x }}{{ n }}]{% endblock %}{% set x = 2 %}{% block b %}{{ x }}{% endblock b %}", "{% for i in [1, 2] %}{% block a %}{{ i }}|{{ i is defined }}{% endblock %}{% endfor %}",
    "{% for i in [1, 2] %}{% block a scoped %}{{ i }}{{ loop.index }}{% endblock %}{% endfor %}", "{% block a %}{% set y = 5 %}{% block b %}{{ y }}{% endblock %}{% block c scoped %}{{ y }}{% endblock %}{% endblock %}{{ y }}",
    "{% if n %}{% set x = 3 %}{% macro m() %}<{{ n }}>{% endmacro %}{% endif %}{% block a %}{{ x }}{{ m() }}{% endblock %}", "{% with w = 1 %}{% block a %}{{ w }}{% endblock %}{% block b scoped %}{{ w }}{% endblock %}{% endwith %}",
    "{% macro m(q) %}{% block a %}({{ q }}{{ n }}){% endblock %}{% endmacro %}{{ m(4) }}", "{% filter upper %}{% block a %}x{{ s }}{% endblock %}{% endfilter %}", "{% set n = 9 %}{% for n in [1] %}{% block a %}{{ n }}{% endblock %}{% endfor %}",
    "{% block a required %}  {% endblock %}", "{% if false %}{% block a required %}\n{% endblock %}{% endif %}ok", "{% block a required %}x{% endblock %}", "{% block a %}{% endblock %}{% block a %}{% endblock %}", "{% block a-b %}{% endblock %}", "{% block a %}{% endblock b %}",
    "{% for i in [1] %}{% block a %}{% break %}{% endblock %}{% endfor %}", "{% extends 'x' %}", "a{% if false %}{% extends 'x' %}{% endif %}b", "{% for i in [1] %}{% extends 'x' %}{% endfor %}",
    "{% include 'x' %}", "{% include 'x' ignore missing %}", "a{% include [] ignore missing with context %}b{% include none ignore missing %}c", "{% include u ignore missing %}", "{% if false %}{% include 'x' without context %}{% endif %}d",
    "{% import 'x' as y %}", "{% if false %}{% import 'x' as n %}{% endif %}{{ n }}|", "{% from 'x' import a, b as c with context %}", "{% if false %}{% from 'x' import s as n, t %}{% endif %}{{ n }}{{ s }}{{ t }}", "{% from 'x' import _a %}", "{% import 'x' as true %}",
    "{% autoescape false %}{{ '<' }}{% set x = 1 %}{{ x }}{% endautoescape %}{{ x }}", "{% print n, s, u %}|{% print %}|", "{% block a %}{{ s | nosuch }}{% endblock %}", "{% if false %}{% block a %}{{ s | nosuch }}{% endblock %}{% endif %}")
add("subscripts", "{{ d[1, 2] is defined }}{{ {(1, 2): 'x'}[1, 2] }}{{ {(): 'y'}[] }}", "{{ d[1,] }}", "{{ d[1:2, 3] }}", "{{ list[0, 1] }}|{{ s[] }}", "{% set [x, y] = [1, 2] %}", "{% for [x, y] in [[1, 2]] %}{% endfor %}", "{{ (1, [2]) is filter }}", "{{ [1] is test }}",
    "{{ [1, 2] | truncate }}{{ u | truncate }}{{ {} | truncate(4) }}", "{{ range(20) | list | truncate(4) }}", "{{ 5 | truncate }}")
add("html",
    "{{ 'a b/c?é~_-.' | urlencode }} {{ {'a b': 'c/d', 1: none} | urlencode }} {{ [['k', 'v w'], (1, 2)] | urlencode }} {{ 5 | urlencode }} {{ u | urlencode }}", "{{ ['ab', 'cd'] | urlencode }}", "{{ [[1]] | urlencode }}",
    "<p{{ {'class': 'a\"b', 'x': none, 'y': u, 'n': 5} | xmlattr }}>{{ {'a': 1} | xmlattr(false) }}{{ {} | xmlattr }}", "{{ {'a b': 1} | xmlattr }}", "{{ {1: 1} | xmlattr }}",
    "{{ '<p>a  <b>b</b>\n<!-- <i> -->c</p> < d' | striptags }}|{{ 'x <!-- y' | striptags }}|{{ '' | striptags }}",
    "{{ 1 | filesizeformat }} {{ 999 | filesizeformat }} {{ 1000 | filesizeformat }} {{ 1500000 | filesizeformat }} {{ 1500000 | filesizeformat(true) }} {{ '1023' | filesizeformat(binary=true) }} {{ 0.5 | filesizeformat }} {{ 1e30 | filesizeformat }} {{ 1e24 | filesizeformat }} {{ -2500 | filesizeformat }} {{ true | filesizeformat }}", "{{ 'z' | filesizeformat }}", "{{ u | filesizeformat }}")
add("python",
    "{{ {'b': 1, 'a': [3, (1,), {'z': none, 'é': 2.50, 'A': 'x'}]} | pprint }} {{ [] | pprint }} {{ {} | pprint }} {{ s | pprint }} {{ n | pprint }} {{ none | pprint }} {{ u | pprint }} {{ [u] | pprint }} {{ {1: 2} | pprint }} {{ 1.0 | pprint }} {{ range(3) | pprint }}",
    "{{ ('a' * 78) | pprint }}", "{{ messages[1] | pprint }}", "{{ [5] | random }}{{ 'x' | random }}{{ [] | random }}|{{ u | random }}|{{ '' | random is defined }}{{ range(4, 5) | random }}{{ (none,) | random }}", "{{ 5 | random }}", "{{ [].x | random.y }}", "{{ ([] | random).y }}",
    "{{ u.__class__ }}|{{ u._undefined_name }}|{{ u | attr('__init__') }}|{{ u.__class__ is defined }}", "{{ u.__foo__ }}", "{{ u._zz }}", "{{ u['__class__'] }}", "{{ u.__class__.x }}", "{{ u | attr('x') }}",
    "{{ 'abc' | int(3, 'x') }} {{ '2.5' | int(3, 'x') }} {{ '2' | int(3, none) }} {{ 2.7 | int(3, none) }} {{ d | int(9, s) }} {{ 'z' | int(3, 1.5) }} {{ '11' | int(3, true) }} {{ '11' | int(3, 100) }} {{ '11' | int(3, u) }}")
add("integers",
    "{{ big }} {{ big + 1 }} {{ [big, -big] | tojson }} {{ big == 1.2345678901234568e29 }}",
    "{{ 9223372036854775807 + 1 }} {{ -9223372036854775808 - 1 }} {{ 9223372036854775807 * 9223372036854775807 }} {{ 2 ** 64 }} {{ -(2 ** 63) }} {{ 99999999999999999999 }} {{ 0xffffffffffffffffff }} {{ 10 ** 40 - 10 ** 40 + 1 }}",
    "{{ 10 ** 30 // 7 }} {{ -(10 ** 30) // 7 }} {{ 10 ** 30 // -(10 ** 12 + 1) }} {{ 10 ** 30 % 7 }} {{ -(10 ** 30) % 7 }} {{ 10 ** 30 % -(10 ** 25 + 3) }} {{ (2 ** 128 - 1) // (2 ** 64 + 1) }} {{ (2 ** 96) % (2 ** 64 - 1) }} {{ 3 ** 200 }} {{ (-3) ** 45 }}",
    "{{ 10 ** 30 / 3 }} {{ 9007199254740993 / 3 }} {{ 10 ** 400 / 10 ** 399 }} {{ 7 / 10 ** 25 }} {{ (2 ** 70 + 1) / 2 ** 70 }} {{ 2 ** 70 * 1.5 }} {{ 2 ** 70 + 0.5 }} {{ 10 ** 22 == 1e22 }} {{ 10 ** 23 == 1e23 }} {{ 2 ** 63 > 9.2e18 }} {{ 2 ** 63 < 1e999 }} {{ -(2 ** 65) < -3.7e19 }}",
    "{{ 10 ** 20 in [1e20] }} {{ {10 ** 20: 'a'}[1e20] }} {{ {9223372036854775000: 'b'}[9223372036854775000.0] is defined }} {{ [2 ** 65, 2 ** 64, -(2 ** 66), 5] | sort }} {{ [2 ** 64, 2 ** 64] | unique | list }} {{ (2 ** 64) | tojson }} {{ [2 ** 64] }} {{ '%d|%x|%o|%25d' % (2 ** 64, 2 ** 68, 2 ** 66, -(2 ** 64)) }}",
    "{{ '{:,} {:x} {:b} {:+}'.format(10 ** 20, 10 ** 20, 2 ** 65, 2 ** 64) }} {{ '123456789012345678901234567890' | int }} {{ 'ffffffffffffffffffff' | int(base=16) }} {{ 1e30 | int }} {{ -1e30 | int }} {{ 1e300 | round | int }} {{ (2 ** 64) | float }} {{ (10 ** 25) | abs }} {{ -(10 ** 25) | abs }} {{ [2 ** 63, 1] | sum }}",
    "{{ (10 ** 20) is odd }} {{ (10 ** 20 + 1) is odd }} {{ (10 ** 20) is divisibleby 7 }} {{ (10 ** 20) is number }} {{ (10 ** 20) is integer }} {{ 'abc'[:10 ** 20] }} {{ 'abc'[-(10 ** 20):] }} {{ [1][10 ** 20] is defined }} {{ 12345678901234567890 | round(-5) }} {{ 123456.789 | round(-2) }} {{ 15.0 | round(-1) }} {{ 25.0 | round(-1) }} {{ 1e22 | round(-30) }} {{ (10 ** 21 + 1) | round(1, 'floor') }} {{ not 2 ** 64 }}",
    "{{ 10 ** 400 * 1.0 }}", "{{ 2 ** 64 // 0 }}", "{{ 'a' * 2 ** 64 }}", "{{ range(2 ** 64) }}", "{{ 10 ** 4300 }}", "{% if false %}{{ 1 ~ 10 ** 4300 }}{% endif %}", "{{ (10 ** 4299) | string | length }}", "{{ 'a'.center(2 ** 64) }}", "{{ (2 ** 64) | upper }} {{ 2 ** 64 ~ '' }} {{ (2 ** 64).real }}")
add("folding",
    "{{ 2[3:0] }}|{{ 2[3:0] is undefined }}|{{ 'ab'['x':] | default('d') }}|{{ [2[1:]] }}|{{ {}[1:] or 'e' }}|{{ (1.5[::2] ~ 'f') }}", "{% set x = 2[3:0] %}", "{{ n[3:0] }}", "{{ 2[n:] }}", "{{ [2[1:], n] }}", "{% if 2[1:] %}{% endif %}", "{{ 'ab'[::0] }}", "{{ 2[3:0].x }}", "{{ 2[1:] is undefined and n }}",
    "{{ 1e999 }} {{ -1e999 }} {{ 1e308 * 10 }} {{ 'nan' | float }} {{ [1e999] }} {{ 1e999 ~ '' }}", "{% set x = 1e999 %}", "{{ [1e999, n] }}", "{% if false %}{% set x = 1e999 %}{% endif %}a", "{% set x = 'nan' | float %}", "{{ n if 1e999 > 1 }}", "{{ n ~ 1e999 }}",
    "{% if false %}{{ {[1]: 2} | length }}{% endif %}", "{% if false %}{{ {[1]: 2} }}{% endif %}a", "{{ 2.55 | round(precision=0, precision=1) }}", "{% if false %}{{ n | round(precision=0, precision=1) }}{% endif %}", "{% if false %}{{ dict(a=1, a=2) }}{% endif %}", "{{ [1, 2] | map('string') | list }} {{ 1 if false }}|{{ [3] | first if 1 else n }}", "{% filter upper | replace('A', 'b') %}a{% endfilter %}", "{% set x = 10 ** 4300 %}")
add("wraps",
    "{{ 'hello wonderful-world, it is -- me' | wordwrap(9) }}|{{ s | wordwrap }}|{{ s | wordwrap(4) }}|{{ s | wordwrap(4, false) }}|{{ 'a\n\nbcd efg\n' | wordwrap(4, true, '/') }}|{{ 'x-y-z ab-cd e--f' | wordwrap(3) }}|{{ 'aa-bb-cc' | wordwrap(6, break_on_hyphens=false) }}|{{ 'abc defghijk' | wordwrap(4) }}",
    "{{ '   lead  and   trail   ' | wordwrap(6) }}|{{ 'Grüße日本   x' | wordwrap(4) }}|{{ 'one---two 3-4 a-1b' | wordwrap(5) }}|{{ 'abcdef' | wordwrap(2.5, false) }}|{{ 'abc' | wordwrap(0.5) }}|{{ '' | wordwrap(0) }}|{{ ('-' * 9) | wordwrap(4) }}|{{ 'tab\tbed' | wordwrap(4) }}|{{ 'a\x1fb c' | wordwrap(1) }}", "{{ s | wordwrap(0) }}", "{{ s | wordwrap(-1) }}", "{{ 5 | wordwrap }}", "{{ u | wordwrap }}", "{{ 'abcdef' | wordwrap(2.5) }}", "{{ s | wordwrap(4, true, 5) }}",
    "{{ 'see http://a.bc/d?e=f&g, (www.k.de) and https://x.y:80/z.' | urlize }}", "{{ 'x@y.zz mailto:a@b.cc @a@b.cc www.x@y.zz a@b <c@d.ee>' | urlize }}", "{{ 'http://1.2.3.4 http://1.2.3 http://[::1]:80/ http://[1:2:3:4:5:6:7:8] http://[12345::] foo.com foo.de a.info/x HTTP://A.BC xn--a.org http://xn--abc http://a_b.c-d.ee' | urlize }}",
    "{{ 'http://abc.de/fghijk (http://w.org/a_(b)) ((http://w.org) http://w.org/a)), <http://w.org>.' | urlize(12) }}", "{{ 'http://a.bc' | urlize(nofollow=true, target='_t&', rel='z a') }} {{ 'ftp://x tel:5 ftp://' | urlize(extra_schemes=['ftp://', 'tel:']) }} {{ 'http://abc.de' | urlize(-3) }} {{ u | urlize }} {{ 5 | urlize }} {{ '<b>' | safe | urlize }} {{ 'a  b\n http://c.de\n' | urlize }}", "{{ 'a' | urlize(extra_schemes=['ftp']) }}", "{{ 'http://a.bc' | urlize('x') }}", "{{ s | urlize(rel=5) }}",
    "{{ list | sort(reverse=1) }} {{ list | sort(reverse=0) }}", "{{ list | sort(reverse='x') }}", "{{ list | sort(reverse=none) }}", "{{ [] | sort(reverse=u) }}", "{{ list | sort(reverse=1.0) }}", "{{ list | sort(reverse=2 ** 31) }}", "{{ d | dictsort(reverse='x') }}", "{{ 'x' | slice('y') is defined }}{{ 'x' | batch(u) is iterable }}", "{{ 'x' | slice('y') | list }}")
add("markup",
    "{% set m = '<b> & x' | safe %}{{ m.split() }}{{ m.replace('x', '<i>') }}{{ m.replace('<', '[', 1) }}{{ m.center(11, '*') }}{{ m.ljust(9) }}|{{ m.title() }}{{ m.partition(' ') }}{{ m.splitlines() }}{{ ('<br>' | safe).join(['<', 1, m]) }}{{ m.zfill(9) }}{{ m.upper() is escaped }}{{ m.split()[0] is escaped }}",
    "{% set m = '<b>\n& x' | safe %}{{ m | replace('&', '<') }}|{{ m | capitalize }}|{{ m | title is escaped }}|{{ m | center(11) }}|{{ m | indent }}|{{ m | indent(2, true) is escaped }}|{{ m | truncate(3, true, '<', 0) }}|{{ m | trim | upper }}|{{ m | wordwrap(3) }}|{{ m + '<' }}|{{ '<' + m }}|{{ m ~ '<' }}|{{ [m] }}|{{ m * 2 }}", "{{ ('a' | safe).join([1], 2) }}", "{{ ('a' | safe).center() }}")
add("arguments", "{{ s.splitlines('x') }}", "{{ 'a\nb'.splitlines(1) }}", "{{ s | tojson(separators=[1, 2]) }}", "{{ list | tojson(separators=[1, 2]) }}", "{{ s | tojson(separators=[1]) }}")
add("folding_in_calls", "{% if n %}a{% elif '{:.2f}'.format({{}: 1}) %}b{% endif %}", "{% if n %}a{% elif '{}'.format(['x'][5:]) %}b{% endif %}")
add("numbers", "{{ 'abcdefgh' | truncate(3.0) }} {{ 'abcdefghi' | truncate(4, leeway=9.5) }} {{ 'abcdefghi' | truncate(4, leeway=0.5) }} {{ 'abc' | truncate(1e300) }}", "{{ 'abcdefghi' | truncate(3.5) }}", "{{ 'abc' | truncate(2.5) }}", "{{ 'abc' | truncate(9, leeway=-0.5) }}", "{% for i in range(-1074, 1024, 3) %}{{ 2.0 ** i }} {{ (2.0 ** i) | tojson }} {% endfor %}", "{{ (5).bit_length() }}{{ (-255).bit_count() }}{{ (0).bit_length() }}{{ (2 ** 70).bit_length() }}{{ true.conjugate() }}{{ 2.0.is_integer() }}{{ 2.5.is_integer() }}{{ 2.5.conjugate() }} {{ '%.3d|%8.3d|%05.3d|%.3x|%+.2d' % (5, 5, 5, 10, 1) }}", "{{ (5).bit_length(1) }}", "{{ (5).is_integer() }}")
add("formats",
    "{{ '{:>{}}|{:{}{}}|{!a}|{:c}|{0}'.replace('|{0}', '').format('ab', 5, 'c', '^', 7, 'é😀', 65) }}|{{ '%*d|%-*d|%.*f|%c%c|%a' % (5, 1, 4, 2, 2, 1.239, 65, 'z', 'é') }}|{{ '{:{w}}'.format(1, w=3) }}|{{ '{a[0]}{b.x}{a[k]}'.format(a={0: 1, 'k': 2}, b={'x': 3}) }}", "{{ '{:{:{}}}'.format(1, 2, 3) }}", "{{ '{:{}'.format(1, 2) }}", "{{ '{a{b}}'.format(1) }}", "{{ '%c' % 'ab' }}", "{{ '%*d' % ('a', 1) }}", "{{ '{!x}'.format(1) }}", "{{ '{!r'.format(1) }}", "{{ '%c' % -1 }}",
    "{{ 'ŉa ǰ ﬁ ᾲ ᾀ ß'.title() }}")
add("errors",
    "{{", "{% if %}", "{% if t %}", "{% endif %}", "{% for x list %}{% endfor %}", "{{ 1 + }}", "{{ (1 }}", "{{ 'a }}", "{% nosuch %}", "{% set 1 = 2 %}", "{{ a b }}", "{# x", "{% raw %}", "{% do list.append(1) %}", "{% break %}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ 1 is odd is even }}", "{{ f(a=1, 2) }}", "{% for loop in list %}{% endfor %}", "{{ }}", "{% call n %}{% endcall %}", "{{ [1, }}", "{{ d. }}", "{% else %}")
add("chats",
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}<tool>{{ m.content }}</tool>{% elif m.content is string %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>\n{% elif m.content is iterable and m.content is not mapping %}<|{{ m.role }}|>{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% else %}<img>{% endif %}{% endfor %}<|end|>\n{% endif %}{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}({{ c.function.arguments | tojson }}){% endfor %}{% endif %}{% if m.reasoning_content is defined %}<think>{{ m.reasoning_content }}{{ m.thinking }}</think>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "{% if messages[0].role == 'system' %}{% set sys = messages[0].content %}{% set rest = messages[1:] %}{% else %}{% set sys = '' %}{% set rest = messages %}{% endif %}{{ sys }}{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{{ m.role }}{% endfor %}",
    "{% set ns = namespace(last=-1) %}{% for m in messages[::-1] %}{% if ns.last < 0 and m.role == 'user' %}{% set ns.last = loop.length - 1 - loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}{% if tools %}{% for t in tools %}\n{{ t | tojson(indent=4) }}{% endfor %}{% endif %}",
    "{%- macro render(c) -%}{%- if c is string -%}{{ c }}{%- else -%}{%- for i in c -%}{{ i.text | default('') }}{%- endfor -%}{%- endif -%}{%- endmacro -%}{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + (render(m.content) if m.content is defined else '') + '<|im_end|>\\n' -}}{%- endfor -%}")


def render(template, variables):
    compiled = chat._compile_jinja_template(template)
    values = json.loads(json.dumps(variables))
    values["messages"] = chat._alias_reasoning_fields(chat._normalize_chat_messages(values["messages"]))
    return compiled.render(**values)


def main():
    out = {"made_by": "make_template_goldens.py", "jinja2": jinja2.__version__,
           "transformers": transformers.__version__, "python": sys.version.split()[0],
           "vars": {name: json.dumps(value, ensure_ascii=False) for name, value in VARS.items()}, "cases": []}
    for group, templates in CASES.items():
        for number, template in enumerate(templates):
            case = {"name": f"{group}/{number}", "template": template}
            try:
                case["text"] = render(template, VARS)
            except Exception as error:  # whatever the reference raises, davit must refuse
                case["raises"] = type(error).__name__
            out["cases"].append(case)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates.golden.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(out, file, ensure_ascii=False, indent=0)
        file.write("\n")
    print(len(out["cases"]), "cases")


if __name__ == "__main__":
    main()
