#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random templates through davit's engine and through jinja2 as transformers sets it up.

  compare_random.py build/test/template_lines COUNT [FIRST]

COUNT templates from number FIRST on; a template follows from its number alone. Each must give
the same bytes, or be refused where the reference raises. What davit refuses as not supported is
counted by its sentence, and is no difference. Left out: what prints an address in memory, and
what the reference does not finish in three seconds. The first differences are printed; exit
status 1 if there are any.

Done 2026-12-01: numbers 4,000 to 24,000 and 100,000 to 155,000 showed four differences, mended
(ranges of large integers, splitlines, separators of tojson); 160,000 to 165,000 at 4c158d1: none;
200,000 to 240,000: none; 240,000 to 320,000: five, four mended (powers of two as floats, truncate by a float, folding inside calls);
what is left is a constant slice by a float inside a filter. 200,000 to 220,000 at the end: none.
About 58 of 100 are rendered, 40 fail in both, 0.3 are not supported. It does some 30 to 200 a second.

Needs transformers 5 and jinja2 3.1.6 (Python 3.11). template_lines: `ninja template_lines`.
"""
import collections
import json
import os
import random
import resource
import signal
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from make_template_goldens import chat  # noqa: E402  (with its clock)

SHOWN = 25
MEMORY = 6 << 30

NAMES = ["a", "b", "s", "n", "d", "l", "x", "y", "u", "ns", "items", "t", "f", "loop", "messages", "k", "v", "big",
         "people", "varargs", "kwargs", "caller", "c1", "j1"]
STRINGS = ["''", "'abc'", "'A b'", "' x '", "'é日本'", "'a,b,c'", "'1'", "'3.7'", "'-5'", "'<b>'", "'a\\nb\\n\\nc'",
           "'%s %d'", "'{} {0}'", "'{}-{}'", "'Straße'", "'ΑΣ ΟΔΟΣ'", "'tRUE'", "\"it's\"", "'\\u00a0q\\t'", "'a-b-c'",
           "'hello wonderful-world, it is -- me'", "'see http://a.bc/d and x@y.zz (www.k.de)'", "'&lt;x&amp;'",
           "'12345678901234567890'", "'0x1F'", "'1e400'", "'nan'", "'%(k)s'", "'{k:>5}'", "'%5.2f|'", "'{:08.3f}'",
           "'\\x00'", "'\U0001F600'", "'ﬁ ŉ'", "'a\\r\\nb\\x0bc\\u2028d'", "'k'", "'one two  three'", "'\\\\'", "'ab' 'cd'"]
NUMBERS = ["0", "1", "2", "3", "-1", "10", "255", "1.5", "2.0", "0.1", "1e20", "1e-5", "1_000", "0x1f", "0b101", "0o17",
           "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "10000000000000000000000",
           "18446744073709551616", "2.5", "3.5", "-0.0", "1e16", "123456.789", "1e300", "true", "false"]
LITERALS = NUMBERS + ["none", "True", "None", "[]", "[1,2,3]", '["b","A","c"]', "{}", '{"k":1,"z":"q"}',
                      '[{"k":2,"w":"b"},{"k":1},{"w":3}]', "(1,2)", "(1,)", "()", "range(3)", "range(5,0,-2)",
                      "[[1,2],[3,4]]", "{1:2,none:3,true:4}", "namespace(k=1)", "dict(k=3)", "cycler(1,2)",
                      'joiner(",")', "[none,1]", "[1,'a']", "['é','z','Z']", "{'b':[1],'a':{}}", "1e999", "(1,[2])",
                      "range(0)", "dict([['k',2]])", "namespace()", "[[]]", "[1.0,1,true]", "{(1,2):3}"]
FILTERS = [
    "upper", "lower", "trim", "length", "list", "first", "last", "string", "int", "float", "tojson", "title", "capitalize",
    "reverse", "sort", "unique", "join", "abs", "round", "default", "items", "dictsort", "safe", "escape", "count", "sum",
    "min", "max", "indent", "wordcount", "e", "d", "batch(2)", "slice(2)", "default(1)", 'default("z", true)', 'join("-")',
    'join(", ")', 'replace("a","b")', 'replace("", "-", 2)', "indent(2)", "indent(2,true)", "indent(2,true,true)",
    'indent("> ")', "truncate(3)", 'truncate(2,true,"")', 'truncate(4,false,"..",0)', "center(9)", "int(7)",
    "int(default=3,base=16)", "float(1.5)", "round(1)", 'round(2,"floor")', 'round(method="ceil")', "tojson(indent=2)",
    "tojson(ensure_ascii=true)", 'tojson(separators=(",",":"))', "tojson(sort_keys=true)", "tojson(indent=0)",
    "sort(reverse=true)", "sort(case_sensitive=true)", 'sort(attribute="k")', 'map("upper")', 'map(attribute="k")',
    'map(attribute="k",default="?")', 'map("int")', 'map("default","q")', "select", "reject", 'select("odd")',
    'reject("none")', 'select("string")', 'selectattr("k")', 'selectattr("k","defined")', 'selectattr("k","equalto",1)',
    'rejectattr("k")', 'rejectattr("k","in",[1])', 'groupby("k")', 'map("length")', "unique(true)", "dictsort(true)",
    'dictsort(by="value")', "dictsort(reverse=true)", 'trim("a")', 'trim("abc ")', 'attr("k")', 'attr("upper")',
    "format(1,2)", 'format("q")', "sum(start=2)", 'sum("k")', 'min(attribute="k")', "max(true)", "nosuch", "forceescape",
    "list|length", "items|list", 'batch(3,"z")', "slice(3,0)", "random", 'join(d,attribute="k")',
    "sort(reverse={e})", "dictsort(reverse={e})", "sort(1,{e})", "batch({e})", "slice({e})", "round({e})", "int({e})",
    "int(0,{e})", "indent({e})", "truncate({e})", "center({e})", "replace({e},{e})", "join({e})", "default({e})",
    "trim({e})", "tojson(indent={e})", "tojson(separators={e})", "map({e})", "select({e})", "map(attribute={e})",
    "groupby({e})", "sum(start={e})", "format({e})", "attr({e})", "min(attribute={e})", "unique(attribute={e})",
    "wordwrap", "wordwrap(10)", "wordwrap(5,false)", 'wordwrap(7,true,"|")', "wordwrap(4,break_on_hyphens=false)",
    "wordwrap({e})", "wordwrap(6,{e},'/')", "urlize", "urlize(8)", "urlize(nofollow=true)", 'urlize(target="_t")',
    'urlize(5,true,"x","b a")', 'urlize(extra_schemes=["ftp:"])', "urlize({e})", "striptags", "urlencode", "xmlattr",
    "xmlattr(false)", "filesizeformat", "filesizeformat(true)", "pprint", "wordcount", "list|first", "reverse|list",
    "batch(2)|list", "slice(2)|list", "unique|list", "round(-1)", "round(20)", "map('round')|list", "map('string')|join",
    "selectattr('k','gt',1)|list", "rejectattr('k','undefined')|map(attribute='k')|list", "items|map('first')|list",
    "groupby('k')|list", "groupby('k',default=0)", "sort(attribute='k,w')", "sort(attribute='0')", "map(attribute=0)|list",
    "upper|lower", "list|tojson", "string|length", "default(u)", "d(none)|string", "replace('a','b',count={e})",
    "safe|upper", "escape|replace('<','&')", "safe|length", "escape|safe", "int|abs", "float|int", "round(1)|string",
    "tojson|tojson", "tojson|safe", "sum|string", "first|string", "last|default(0)", "dictsort|list|length",
    "round(precision=1,method='floor')", "int(base=2)", "center(width=6)", "truncate(length=5,end='~')",
    "indent(width=1,first=true)", "batch(linecount=2,fill_with=0)|list", "default(value={e})", "join(d='+')"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "boolean", "true", "false", "number",
         "integer", "float", "callable", "odd", "even", "divisibleby 2", "divisibleby(3)", "eq 1", 'ne "a"', "lt 2", "gt(1)",
         "in [1,2]", 'in "abc"', "sameas none", "sameas true", "lower", "upper", 'equalto("abc")', "escaped", "ge 1", "le 3",
         "filter", "test", "nosuch", "in d", "divisibleby({e})", "eq({e})", "in({e})", "lt({e})", "sameas({e})", "== 1",
         "greaterthan 2", "odd(1)", "lessthan(none)", "ne({e})", "ge({e})"]
METHODS = ["upper()", "lower()", "strip()", 'strip("a ")', "lstrip()", "rstrip()", "split()", 'split(",")', 'split("a",1)',
           "split(None,1)", "rsplit(None,1)", 'rsplit(",",1)', 'rsplit(",")', "splitlines()", "splitlines(true)",
           'replace("a","xx")', 'replace("","-")', 'startswith("a")', 'startswith(("a","b"))', 'endswith("c")', 'find("b")',
           'rfind("b")', 'count("a")', 'index("a")', "title()", "capitalize()", "swapcase()", "zfill(5)", 'center(8,"*")',
           "ljust(5)", 'rjust(5,"-")', 'join(["1","2"])', "join(l)", 'format(1,"x")', "format(a=1,k=0)", "isdigit()",
           "isalpha()", "isupper()", "islower()", "isspace()", "isalnum()", "istitle()", 'partition("b")', 'rpartition(",")',
           'removeprefix("a")', 'removesuffix("c")', "expandtabs(3)", 'get("k")', 'get("zz","dd")', 'get("zz")', "items()",
           "keys()", "values()", "copy()", "index(1)", "count(1)", "append(1)", "pop()", "update({})", "clear", "nosuch",
           "nosuch()", "__class__", "__class__.x", "k", "real", "imag", "isascii()", "format()", "bit_length()", "encode()",
           "items()|list", "keys()|list|sort", "first", "index", "length", "last", 'cycle("a","b")', "changed(x)", "previtem",
           "nextitem", "revindex", "depth0", "name", "arguments", "casefold()", "isdecimal()", "isnumeric()",
           "isidentifier()", "isprintable()", "translate({{97:'q'}})", "find({e})", "split({e})", "replace({e},{e})",
           "count({e})", "get({e})", "index({e})", "join({e})", "startswith({e})", "strip({e})", "zfill({e})", "center({e})",
           "format({e},{e})", "splitlines({e})", "split(sep=',')", "split(maxsplit=1)", "find('b',1)", "find('b',-2,5)",
           "count('a',1,3)", "startswith('b',1)", "endswith(('c','d'),0,2)", "rindex('a')", "is_integer()", "hex()",
           "as_integer_ratio()", "conjugate()", "bit_count()", "numerator", "denominator", "k.z", "0", "-1", "get('z').x",
           "next()", "current", "reset()", "items", "keys", "format(*l)", "format(**d)", "pop", "setdefault('k',1)",
           "fromkeys([1])", "union(l)", "isdisjoint([1])", "replace('a','b',1)", "replace('a','b',-1)", "expandtabs()",
           "removeprefix({e})", "partition({e})", "rsplit({e},1)", "swapcase().title()", "strip().upper()"]
SUBSCRIPTS = ["0", "1", "-1", "5", "1:", "::-1", ":2", "1:3", "::2", "-2:", '"k"', '"upper"', '"items"', "none", "::0", "x",
              ":-1:-1", "3:0", "{e}", "{e}:", ":{e}", "{e}:{e}", "::{e}", "1,2", "", "true", "1.0", "'0'", "5:1:-2", "-9:9"]
# Expressions that mostly succeed, by what they give: text, number, list, test.
TYPED = {
    "S": ["{S}|upper", "{S}|title", "{S}|trim", "{S}|replace({S},{S})", "{S}|indent({N})", "{S}|center(12)", "{S}|capitalize",
          "{N}|string", "{L}|join({S})", "({S} ~ {E})", "({S} + {S})", "({S} * 2)", "({S})[{N}:{N}]", "({S})[::-1]", "({S})[{N}]",
          "({S}).strip()", "({S}).lower()", "({S}).replace({S}, {S})", "({S}).join(['a', {S}])", "({S}).center(9, '*')",
          "{S}|wordwrap(9)", "{S}|urlize", "{S}|escape", "({S}|safe)", "({S}|e)", "({S}|safe).replace({S}, {S})", "{E}|string", "{E}|tojson", "{S}|truncate(6)", "({S}).zfill(6)",
          "('%s' % ({E},))", "('{}'.format({E}))", "{E}|pprint", "{S}|striptags", "{S}|urlencode", "{N}|filesizeformat",
          "{L}|first|string", "({S} if {B} else {S})", "{S}|default({S}, true)", "{S}|wordwrap({N}, {B}, {S}, {B})",
          "{S}|urlize(6, {B}, {S}, {S})", "({S}).partition({S})[0]", "({S}).title()", "({S}).expandtabs()", "{S}|reverse",
          "('%' ~ {S} ~ 'd')", "({S}).format({E})", "('{:>{}}'.format({S}, 7))", "('%05d' % {N})", "('{:,}'.format({N}))"],
    "N": ["({N} + {N})", "({N} - {N})", "({N} * {N})", "({N} / {N})", "({N} // {N})", "({N} % {N})", "(-{N})", "{N}|abs",
          "{N}|round", "{N}|round(2)", "{S}|length", "{L}|length", "{L}|sum", "{S}|int", "{S}|float", "{N}|int", "{N}|float",
          "({S}).find({S})", "({S}).count({S})", "({N} ** 2)", "({N} ** 3)", "(2 ** 70)", "{N}|round(-2)", "{N}|round(1, 'floor')",
          "({L})[0]", "({N} if {B} else {N})", "{S}|wordcount", "{S}|int(base=16)", "(10 ** 20)", "{N}|round(0, 'ceil')"],
    "L": ["{L}|list", "{L}|sort", "{L}|unique|list", "{L}|reverse|list", "({L})[{N}:]", "({L})[::-1]", "({L} + {L})", "({S}).split()",
          "({S}).split({S})", "{L}|map('string')|list", "{L}|select|list", "{L}|batch(2)|list", "{L}|slice(2)|list", "[{E}, {E}]",
          "({S}).splitlines()", "{S}|list", "d|dictsort", "d.items()|list", "people|map(attribute='k')|list", "({L} * 2)",
          "people|groupby('k')|list", "range({N})|list", "people|selectattr('k', 'gt', {N})|list", "{L}|sort(reverse={B})",
          "people|sort(attribute='w')", "{L}|reject('none')|list", "{L}|map('upper')|list", "({S}).rsplit({S}, 1)",
          "people|sum(attribute='k')|string|list", "({S}|safe).split({S})", "({S}|safe).partition({S})|list", "{L}|tojson|list", "({L}) or [{E}]", "{L}|map('int')|list"],
    "B": ["({N} == {N})", "({N} < {N})", "({S} < {S})", "({S} in {S})", "({E} in {L})", "(not {B})", "({B} and {B})", "({B} or {B})",
          "({E} is defined)", "({S} is string)", "({L} is iterable)", "({N} is odd)", "({E} is mapping)", "({S}).startswith({S})",
          "({N} is divisibleby 3)", "({S}).isdigit()", "({S}).isalpha()", "({E} is sameas none)", "({N} is number)", "({L} == {L})",
          "({S} is lower)", "({S}).isupper()", "({E} is none)", "({S} is in ['abc', {S}])", "({N} is ge {N})", "({S}).isidentifier()"],
}
LEAVES = {"S": STRINGS + ["s", "b", "k", "messages[0].role", "d.z[1]"], "N": NUMBERS + ["n", "f", "a", "big", "d.k", "u|length"],
          "L": ["l", "items", "[1, 'b', 2.5]", "['b', 'A', 'c']", "[none, true]", "(3, 1)", "[[1, 2], [0]]", "d.z", "[]", "'abc'|list"],
          "B": ["t", "true", "false", "u", "1"]}
TIMES = ["'%d %b %Y'", "'%H:%M:%S.%f'", "'%A %j %U %w %y %p %I %%'", "'%e%x%X%c'", "'%Z|%z'", "'%-d/%-m'", "'é%B'", "''"]


class Maker:
    """One random template."""

    def __init__(self, number):
        self.rng = random.Random(number)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def chance(self, share):
        return self.rng.random() < share

    def fill(self, text, depth):
        while "{e}" in text:
            text = text.replace("{e}", self.expr(depth + 2), 1)
        return text

    def literal(self):
        return self.rng.choice(self.rng.choice([STRINGS, LITERALS, LITERALS]))

    def const(self, depth=0):
        """An expression without names, which jinja2 folds when it compiles."""
        outer, self.names = self.names, False
        text = self.expr(depth)
        self.names = outer
        return text

    names = True

    def leaf(self):
        return self.rng.choice(NAMES) if self.names and self.chance(0.5) else self.literal()

    def typed(self, kind, depth):
        if depth > 3 or self.chance(0.3):
            leaves = LEAVES[kind]
            leaf = self.rng.choice(leaves)
            return leaf if self.names or leaf[0] not in "sbkdmnfalituv" else self.rng.choice(LITERALS)
        parts = self.rng.choice(TYPED[kind]).split("{")
        text = parts[0]
        for part in parts[1:]:
            if len(part) > 1 and part[1] == "}" and part[0] in "SNLBE":
                inner = self.typed(part[0], depth + 1) if part[0] != "E" else self.expr(depth + 2)
                text += inner + part[2:]
            else:
                text += "{" + part
        return text

    def expr(self, depth=0):
        if self.chance(0.6):
            return self.typed(self.pick("S", "S", "N", "L", "B"), depth)
        if depth > 3 or self.chance(0.22):
            return self.leaf()
        e = lambda: self.expr(depth + 1)  # noqa: E731
        kind = self.rng.randrange(26)
        if kind < 6:
            return f"{e()}|{self.fill(self.rng.choice(FILTERS), depth)}"
        if kind < 9:
            of = f"({e()})" if self.chance(0.7) else self.leaf()
            return f"{of}.{self.fill(self.rng.choice(METHODS), depth)}"
        if kind < 11:
            return f"({e()} {self.pick('+', '-', '*', '/', '//', '%', '~')} {e()})"
        if kind == 11:
            return f"({e()} ** {self.pick('0', '1', '2', '3', '-1', '0.5', '9', 'true', '70')})"
        if kind == 12:
            return f"({e()} {self.pick('==', '!=', '<', '<=', '>', '>=', 'in', 'not in')} {e()})"
        if kind == 13:
            return f"{e()} {self.pick('==', '<', '>=', 'in', 'not in')} {e()} {self.pick('==', '<', '!=')} {e()}"
        if kind == 14:
            return f"({e()} is {self.pick('', 'not ')}{self.fill(self.rng.choice(TESTS), depth)})"
        if kind == 15:
            return f"({e()} if {e()} else {e()})" if self.chance(0.7) else f"({e()} if {e()})"
        if kind == 16:
            return f"({e()} {self.pick('and', 'or')} {e()})"
        if kind == 17:
            return f"(not {e()})" if self.chance(0.5) else f"({self.pick('-', '+')}{e()})"
        if kind < 20:
            return f"({e()})[{self.fill(self.rng.choice(SUBSCRIPTS), depth)}]"
        if kind == 20:
            return self.pick(f"[{e()},{e()}]", f"({e()},{e()})", f"[{e()}]", f"({e()},)")
        if kind == 21:
            return "{" + f"{self.pick(self.leaf(), e())}:{e()}" + "}"
        if kind == 22 and self.names:
            callee = self.pick("mac", "mac", "mac2", "caller", "loop", "range", "namespace", "dict", "joiner", "u", "strftime_now",
                               "raise_exception", "cycler", "mac3")
            args = self.pick("", e(), f"{e()},{e()}", f"b={e()}", f"*[{e()}]", '**{"b":' + e() + "}", f"{e()},b={e()}",
                             f"a={e()}", f"*{e()}", f"**{e()}", f"1,{e()},{e()},c={e()}", self.rng.choice(TIMES))
            return f"{callee}({args})"
        if kind == 23:
            return f"{self.rng.choice(STRINGS)} % {self.pick(e(), '(' + e() + ',' + e() + ')', e())}"
        if kind == 24:
            spec = self.pick("", ">8", "^7", "*<6", "05", "+", ",", ".2f", "x", "#x", "e", "%", "d", "s", "_", "08.3f", "g", "b",
                             "=+6", "c", "n", "10,", ".3", "o", "X", "+.1e", " ", "<5s", ".1s")
            how = self.pick("", "", "!r", "!s", "!a")
            return "('{" + self.pick("", "0", "k") + how + ":" + spec + "}').format(" + self.pick(e(), "k=" + e(), e() + ", k=" + e()) + ")"
        if kind == 25:
            spec = self.pick("d", "s", "r", "x", "f", "5d", "-5s|", "05d", "+d", ".2f", "e", "g", "i", "u", "o", "X", "%", "c", "a",
                             "#x", "#o", ".3d", "8.3f", "05.1f", "*d", ".*f", "ld", "+.1e", "-+5d", " d", "08x", "q", ".0f", "#g")
            return f"'%{spec}' % {self.pick(e(), '(' + e() + ',)', '(' + e() + ',' + e() + ')')}"
        return f"({e()})"

    def space(self):
        return self.pick("", "", "", " ", "\n", "  ", "\n  ", "x", "x\n", " y ", "\n\n", "\t", "é", "  ", "\n", "\n    ",
                         self.pick("\r\n", "}}", "%}", "#", "{", "\u00a0", "\x0b"))

    def tag(self, text):
        return "{%" + self.pick("", "", "", "-", "+") + self.pick(" ", " ", "", "\n") + text + self.pick(" ", " ", "\n ", "\t") + \
            self.pick("", "", "", "-", "+") + "%}"

    def out(self, text):
        return "{{" + self.pick("", "", "", "-") + " " + text + " " + self.pick("", "", "", "-") + "}}"

    def target(self):
        return self.pick("x", "y", "a", "k, v", "x, y", "t", "ns.k", "b", "(x, y)", "x, (y, k)", "ns.z", "c1")

    def body(self, depth, loop=False, n=None):
        return "".join(self.space() + self.statement(depth, loop) for _ in range(n or self.rng.randint(1, 3))) + self.space()

    def branches(self, depth, loop):
        text = self.tag("if " + self.expr(1)) + self.body(depth + 1, loop)
        for _ in range(self.pick(0, 0, 1, 2)):
            text += self.tag("elif " + self.expr(1)) + self.body(depth + 1, loop)
        if self.chance(0.5):
            text += self.tag("else") + self.body(depth + 1, loop)
        return text + self.tag("endif")

    def loop(self, depth, loop):
        recursive = self.chance(0.12)
        over = self.pick(self.expr(1), "[1,2,3]", "l", "d.items()", "messages", "range(3)", "[[1,2],[3,4]]", "[[1,[2]],[3]]",
                         "people", "'aé'", "d", "d|dictsort", "l|map('string')", "people|groupby('k')", "range(6)|batch(2)", "u")
        text = self.tag(f"for {self.pick('x', 'y', 'k, v', 'a', 'x, y', 't', '(x, y)')} in {over}"
                        f"{self.pick('', '', ' if ' + self.expr(2))}{' recursive' if recursive else ''}")
        text += self.body(depth + 1, True)
        if recursive and self.chance(0.6):
            text += self.out(f"loop({self.pick('x', 'y', '[]', 'x if x is iterable else []', self.expr(2))})")
        if self.chance(0.25):
            text += self.tag("else") + self.body(depth + 1, loop and not recursive)
        return text + self.tag("endfor")

    def macro(self, depth):
        params = self.pick("", "a", "a,b=2", "x=1", f"a,b={self.expr(2)}", "caller=none", "a,b=a,c=b", "k, v=u", "varargs", "b=1,a=2")
        inside = self.body(depth + 1) + self.pick("", self.out("varargs"), self.out("kwargs"), self.out("caller()"),
                                                  self.out("caller(1)"), self.out("caller is defined"), self.out("a ~ b"))
        return self.tag(f"macro {self.pick('mac', 'mac2', 'mac3', 'x')}({params})") + inside + self.tag(self.pick("endmacro", "endmacro", "endmacro mac"))

    def other(self, depth, loop):
        name = self.pick("blk", "blk2", "blk3", "q")
        return self.pick(
            self.tag("include " + self.pick("'x'", "u", "[]", "['a','b']")) if self.chance(0.3) else self.out("1"),
            self.tag(self.pick("import 'x' as y", "from 'x' import a", "extends 'x'", "do l", "nosuch", "trans")) if self.chance(0.3) else "",
            self.tag(f"block {name}{self.pick('', ' scoped', ' required')}") + self.body(depth + 1) + self.tag("endblock"),
            self.tag("autoescape false") + self.body(depth + 1, loop) + self.tag("endautoescape"),
            self.tag("print " + self.expr(1) + self.pick("", ", " + self.expr(2))),
            self.tag("debug") if self.chance(0.2) else self.out(self.const(0)))

    def statement(self, depth=0, loop=False):
        kind = self.rng.randrange(24) if depth <= 2 else self.rng.randrange(7)
        if kind < 5:
            return self.out(self.expr(1))
        if kind == 5:
            return self.tag(f"set {self.target()} = {self.expr(1)}{self.pick('', '', ',' + self.expr(2))}")
        if kind == 6:
            return self.out(self.const(0)) if not loop or self.chance(0.5) else \
                self.pick(self.tag(self.pick("break", "continue")),
                          self.tag(f"if {self.expr(2)}") + self.tag(self.pick("break", "continue")) + self.tag("endif"))
        if kind < 10:
            return self.branches(depth, loop)
        if kind < 14:
            return self.loop(depth, loop)
        if kind == 14:
            return self.macro(depth)
        if kind == 15:
            return self.tag(f"call{self.pick('', '(x)', '(a,b=1)', '(k, v)')} {self.pick('mac', 'mac2', 'mac3')}"
                            f"({self.pick('', self.expr(2), 'a=' + self.expr(2))})") + self.body(depth + 1) + self.tag("endcall")
        if kind == 16:
            chain = self.pick("", "", "|upper", "|trim|length", "|replace('a','b')", "|" + self.fill(self.rng.choice(FILTERS), 2))
            return self.tag(f"set {self.pick('x', 'y', 't', 'ns.k')}{chain}") + self.body(depth + 1, loop) + self.tag("endset")
        if kind == 17:
            chain = self.pick("upper", "trim", "indent(2)", "replace('a','b')", "length", "upper|lower",
                              self.fill(self.rng.choice(FILTERS), 2))
            return self.tag("filter " + chain) + self.body(depth + 1, loop) + self.tag("endfilter")
        if kind == 18:
            head = self.pick(f"x={self.expr(2)}", "x=1,y=x", f"a={self.expr(2)},b=a", "", "k = 1, v = n")
            return self.tag("with " + head) + self.body(depth + 1, loop) + self.tag("endwith")
        if kind == 19:
            return self.tag("generation") + self.body(depth + 1) + self.tag("endgeneration")
        if kind == 20:
            return "{#" + self.pick("", "-", "+") + self.pick(" c ", "", " {{ x }} ", "\n", " {% if ") + self.pick("", "-", "+") + "#}"
        if kind == 21:
            return self.tag("raw") + self.pick("{{ x }} {% q %}", "", " {# ", "\n  ") + self.space() + self.tag("endraw")
        return self.other(depth, loop)

    def template(self):
        before = self.pick("", "", "{% set ns = namespace(k=0) %}", "{% set c1 = cycler(1,'b') %}{% set j1 = joiner() %}",
                           "{% macro mac(a, b=2) %}[{{ a }}|{{ b }}]{{ caller(a) if caller else '' }}{% endmacro %}",
                           "{% macro mac(a, b=a) %}<{{ a }}{{ b }}{{ varargs }}{{ kwargs }}>{% endmacro %}"
                           "{% macro mac2() %}{{ caller() }}{% endmacro %}")
        if self.chance(0.2):
            return before + self.out(self.const(0))
        if self.chance(0.4):
            return before + self.body(0, False, self.rng.randint(1, 3))
        return before + self.out(self.expr(self.pick(0, 1, 2, 2, 2)))


VARS = {
    "a": 1, "b": "bé", "s": "Hello World", "n": 7, "d": {"k": 1, "z": [1, "x"], "é": None}, "l": [3, 1, 2], "f": 2.5, "t": True,
    "k": "K", "items": [{"k": 1}, {"k": 2}], "big": 123456789012345678901234567890,
    "people": [{"k": 2, "w": "b"}, {"k": 1, "w": "A"}, {"k": 2, "w": "c"}],
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo\n"}],
}
TEXTS = {name: json.dumps(value, ensure_ascii=False) for name, value in VARS.items()}


ENVIRONMENT = chat._compile_jinja_template("").environment


class Late(Exception):
    pass


def late(*_):
    raise Late()


def reference(template):
    """Text, or the exception."""
    signal.alarm(3)
    try:
        return ENVIRONMENT.from_string(template).render(**json.loads(json.dumps(VARS))), None
    except Late:
        return None, "late"
    except (RecursionError, MemoryError):
        return None, "late"
    except Exception as error:  # whatever it is
        return None, error
    finally:
        signal.alarm(0)


class Lines:
    def __init__(self, path):
        self.child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, template):
        self.child.stdin.write(json.dumps({"template": template, "vars": TEXTS}).encode() + b"\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"template_lines ended on {template!r}")
        return json.loads(line)


def judge(text, error, answer):
    """A word for the pair; one in capitals is a difference."""
    if text is not None:
        if answer.get("text") == text:
            return "equal"
        if "error" in answer:
            return "unsupported" if answer["code"] == "template-unsupported" else "REFUSED"
        return "DIFFERS"
    return "both fail" if "error" in answer else "RENDERED"


def main():
    lines, count, first = Lines(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    words, unsupported, shown = collections.Counter(), collections.Counter(), 0
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, first + count):
        template = Maker(number).template()
        text, error = reference(template)
        if error == "late" or (text is not None and " at 0x" in text):
            words["left out"] += 1
            continue
        answer = lines(template)
        word = judge(text, error, answer)
        words[word] += 1
        if word == "unsupported":
            unsupported[answer["error"].split("not have: ")[-1].split(": found")[0][:70]] += 1
        if word.isupper() and shown < SHOWN:
            shown += 1
            print(f"{word} {number}: {template!r}\n  reference {error if text is None else text[:400]!r}\n  davit     "
                  f"{answer.get('text', answer.get('error'))[:400]!r}", flush=True)
        if (number - first) % 5000 == 4999:
            print(number + 1, dict(words), flush=True)
    print(dict(words), unsupported.most_common(40))
    return 1 if any(word.isupper() for word in words) else 0


if __name__ == "__main__":
    sys.exit(main())
