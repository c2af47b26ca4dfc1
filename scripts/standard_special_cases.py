"""Write data/standard/<function>.txt: the special cases of the Python array API standard as rows.

    python -m pip download --no-deps array-api==1.0.0
    python scripts/standard_special_cases.py array_api-1.0.0-py3-none-any.whl [--numpy]

The wheel carries the standard's docstrings (2024.12). Their sentences "If ``x_i`` is ..., the result
is ..." are read by a small grammar: the condition becomes a predicate, and every point of a fixed
grid that satisfies it becomes a row. A sentence that the grammar does not know stops the script.
With --numpy the rows are also held against NumPy and the differences are printed.

The format, one row a line:

    function kind operand [operand ...] -> expected   # source

kind      real, complex or reduce
operand   nan, -nan (sign bit set), inf, -inf, 0, -0, or a decimal; complex numbers are re,im;
          the operand of reduce is a list [x,y,...], and kind may be reduce:correction=1
expected  as an operand, and also
          true, false    a boolean
          pi, 3pi/4 ...  a multiple of pi, like every nonzero number up to rounding
          ?x             x with either sign
          + or -         any number with that sign, zeros included
          x|y            either
          For complex results each part is one of these. `nan` has no sign unless `+nan` or `-nan`.
source    r3 or c3: the third sentence on real or complex operands; conj, odd, even: its image under
          a symmetry that the standard demands; through f: derived from the rows of f, as the
          standard says; c99: the text was corrected, see CORRECTIONS; text: from running prose

`rows` and `matches` below are the reference parser; crates/ops/tests/standard_table.rs is the Rust one.
"""

import math
import re
import struct
import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "data" / "standard"


# The parser, for tests in Python.


def number(token):
    """The value of one operand, or of one expected number."""
    token = token.lstrip("?")
    if token.endswith("nan"):
        return math.copysign(math.nan, -1 if token[0] == "-" else 1)
    found = re.fullmatch(r"([+-]?)(\d*)pi(?:/(\d+))?", token)
    if found:
        sign, times, over = found.groups()
        return (-1 if sign == "-" else 1) * int(times or 1) * math.pi / int(over or 1)
    return float(token)


def operand(token):
    if token.startswith("["):
        return [number(x) for x in token[1:-1].split(",") if x]
    if "," in token:
        return complex(*map(number, token.split(",")))
    return number(token)


def rows(path):
    """The rows of one file: (function, kind, operands, expected), expected still as text."""
    for line in Path(path).read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            left, expected = line.split(" -> ")
            function, kind, *operands = left.split()
            yield function, kind, [operand(x) for x in operands], expected.strip()


def matches(got, expected, ulps=4):
    """Whether a result (bool, float or complex) is what the text says."""
    if "," in expected:
        re_text, im_text = expected.split(",")
        return matches(got.real, re_text, ulps) and matches(got.imag, im_text, ulps)
    if "|" in expected:
        return any(matches(got, choice, ulps) for choice in expected.split("|"))
    if expected in ("true", "false"):
        return bool(got) == (expected == "true")
    negative = math.copysign(1, got) < 0
    if expected in "+-":
        return not math.isnan(got) and negative == (expected == "-")
    want = number(expected)
    if math.isnan(want):
        return math.isnan(got) and (expected == "nan" or negative == (expected[0] == "-"))
    if expected[0] == "?":
        got, want, negative = abs(got), abs(want), False
    if want == 0 or math.isinf(want):
        return got == want and negative == (math.copysign(1, want) < 0)
    return abs(got - want) <= ulps * sys.float_info.epsilon * abs(want)


# Reading the standard.

REAL = ["nan", "inf", "-inf", "0", "-0", "1", "-1", "0.5", "-0.5", "1.5", "-1.5", "2", "-2", "2.5",
        "-2.5", "3", "-3"]
PAIR = ["nan", "inf", "-inf", "0", "-0", "1", "-1", "0.5", "-0.5", "2", "-2", "3", "-3"]
PART = ["nan", "inf", "-inf", "0", "-0", "1", "-1", "2", "-2"]
SIGNED_NAN = {"copysign", "signbit"}

SINGLE = {"x_i": 0, "self": 0}
DOUBLE = {"x1_i": 0, "x2_i": 1}
COMPLEX = {"a": 0, "b": 1}

# Sentences that say "in the remaining cases" and are meant for every other point of the grid.
REMAINING = {"isinf", "isnan", "equal"}

# Where the text of 2024.12 is a slip: {(function, a, b): expected}. sqrt of an infinite real part was
# printed one line off and is right in 2025.12. The infinite imaginary part of sqrt is a word on either
# sign.
CORRECTIONS = {("sqrt", "nan", "-inf"): "inf,-inf"}
for b in ("0.5", "1", "2"):
    CORRECTIONS["sqrt", "-inf", b] = "0,inf"
    CORRECTIONS["sqrt", "inf", b] = "inf,0"


def same_bits(x, y):
    return struct.pack("d", x) == struct.pack("d", y)


def is_literal(text):
    value = {"NaN": math.nan, "+infinity": math.inf, "-infinity": -math.inf, "+0": 0.0, "-0": -0.0}.get(text)
    if value is None:
        value = float(text)
    if math.isnan(value):
        return math.isnan
    if value == 0:
        return lambda x: same_bits(x, value)
    return lambda x: x == value


def finite(x):
    return math.isfinite(x)


def integer(x):
    return finite(x) and x == math.floor(x)


PHRASES = [
    (r"either a finite number or NaN", lambda m: lambda x: finite(x) or math.isnan(x)),
    (r"(?:either )?(\S+) or (\S+)", lambda m: lambda x: is_literal(m[1])(x) or is_literal(m[2])(x)),
    (r"a finite number or NaN", lambda m: lambda x: finite(x) or math.isnan(x)),
    (r"a finite number", lambda m: finite),
    (r"a nonzero finite number", lambda m: lambda x: finite(x) and x != 0),
    (r"a positive (?:\(i\.e\., greater than 0\) )?finite number", lambda m: lambda x: finite(x) and x > 0),
    (r"a negative (?:\(i\.e\., less than 0\) )?finite number", lambda m: lambda x: finite(x) and x < 0),
    (r"a nonzero number", lambda m: lambda x: not math.isnan(x) and x != 0),
    (r"any value(?: \(including NaN\))?", lambda m: lambda x: True),
    (r"greater than (\S+)", lambda m: lambda x: x > float(m[1])),
    (r"less than (\S+)", lambda m: lambda x: x < float(m[1])),
    (r"not equal to (\S+)", lambda m: lambda x: x != float(m[1])),
    (r"not NaN", lambda m: lambda x: not math.isnan(x)),
    (r"an odd integer value", lambda m: lambda x: integer(x) and x % 2 == 1),
    (r"not an odd integer value", lambda m: lambda x: not (integer(x) and x % 2 == 1)),
    (r"not an integer value", lambda m: lambda x: not integer(x)),
    (r"already integer-valued", lambda m: integer),
    (r"(\S+)", lambda m: is_literal(m[1])),
]


def phrase(text):
    # The longest patterns come first, and "+0 or -0" must not be taken for "a finite number or NaN".
    for pattern, make in PHRASES:
        found = re.fullmatch(pattern, text)
        if found and not (pattern.startswith("(?:either") and "a finite" in text):
            return make(found)
    raise SystemExit(f"unknown phrase: {text!r}")


def condition(text, names):
    """The predicate of a condition over the operands' values."""
    text = re.sub(r"^a (-infinity)", r"a is \1", text)  # a missing verb in sqrt
    text = text.replace("any value, including NaN", "any value")
    at = lambda name: names[name]
    found = re.fullmatch(r"(?:either )?(\w+) or (\w+) is NaN|(\w+) is NaN or (\w+) is NaN", text)
    if found:
        i, j = (at(n) for n in found.groups() if n)
        return lambda v: math.isnan(v[i]) or math.isnan(v[j])
    found = re.fullmatch(r"x1_i and x2_i have (the same|different) mathematical signs?( and are both nonzero finite numbers)?", text)
    if found:
        same = found[1] == "the same"

        def signs(v):
            if any(map(math.isnan, v)) or (found[2] and not all(finite(x) and x for x in v)):
                return False
            return (math.copysign(1, v[0]) == math.copysign(1, v[1])) == same

        return signs
    tests = []
    for clause in re.split(r", and |, (?=x\d|\bb is)| and (?=x\d?_i\b|b is|a is|c is|the sign)", text):
        found = re.fullmatch(r"the sign bit of (\w+) is ([01])", clause)
        if found:
            tests.append(lambda v, i=at(found[1]), s=found[2] == "1": (math.copysign(1, v[i]) < 0) == s)
            continue
        found = re.fullmatch(r"(\w+) (equals|does not equal) (\w+)", clause)
        if found:
            i, j, equal = at(found[1]), at(found[3]), found[2] == "equals"
            tests.append(lambda v, i=i, j=j, equal=equal: (v[i] == v[j]) == equal)
            continue
        found = re.fullmatch(r"x2_i is -x1_i", clause)
        if found:
            tests.append(lambda v: v[1] == -v[0])
            continue
        found = re.fullmatch(r"(abs\()?(\w+)\)? is (.*)", clause)
        if not found or found[2] not in names:
            raise SystemExit(f"unknown condition: {clause!r} in {text!r}")
        test, i, absolute = phrase(found[3]), at(found[2]), bool(found[1])
        tests.append(lambda v, test=test, i=i, absolute=absolute: test(abs(v[i]) if absolute else v[i]))
    return lambda v: all(test(v) for test in tests)


def negate(token):
    if token in ("nan", "true", "false") or token[0] == "?":
        return token
    return token[1:] if token[0] == "-" else "-" + token.lstrip("+")


def absolute(token):
    return token.lstrip("-")


def symbol(text):
    """One real result in the format's words."""
    text = text.replace(" ", "").replace("infinity", "inf").replace("NaN", "nan").replace("π", "pi")
    text = re.sub(r"pij?/(\d)", r"pi/\1", text)
    if text.startswith("±"):
        return "?" + text[1:]
    if text in "+-":
        return text
    if text == "0":
        return "?0"  # no sign is given
    return text.lstrip("+")


def complex_symbol(text, unspecified, point):
    found = re.fullmatch(r"\+(infinity|0) \* cis\(b\)( - 1\.0)?", text)
    if found:
        b = number(point[1])
        size = "inf" if found[1] == "infinity" else "0"
        parts = [("-" if math.copysign(1, x) < 0 else "") + size for x in (math.cos(b), math.sin(b))]
        if found[2] and size == "0":
            parts[0] = "-1"
        return ",".join(parts)
    found = re.fullmatch(r"([+±-]?\S+?) ([+±-]) (\S+?) ?(j|j/\d)", text)
    if not found:
        raise SystemExit(f"unknown complex result: {text!r}")
    first = symbol(found[1])
    second = symbol(found[2] + found[3] + found[4][1:])
    if "real" in unspecified:
        first = "?" + first.lstrip("?+-")
    if "imaginary" in unspecified:
        second = "?" + second.lstrip("?+-")
    return f"{first},{second}"


def outcome(text, point, is_complex):
    """What the sentence says of one point, in the format's words."""
    text, note = re.match(r"(.*?)\.?(?: \((.*)\)\.?)?$", text).groups()
    note = note or ""
    text = re.sub(r"^(an implementation-dependent approximation to|equal to|equivalent to) ", "", text)
    text = re.sub(r", even if x1_i is NaN$", "", text).rstrip(".")
    names = {"x_i": 0, "x1_i": 0, "x2_i": 1, "a": 0, "b": 1}
    found = re.fullmatch(r"(?:(-?)\|(\w+)\||abs\((\w+)\)|(x\d?_i))", text)
    if found:
        if found[4]:
            result = point[names[found[4]]]
        else:
            result = absolute(point[names[found[2] or found[3]]])
            result = "-" + result if found[1] else result
    elif text in ("True", "False"):
        result = text.lower()
    elif text.startswith("NaN with a sign bit of"):
        result = "-nan" if text.endswith("1") else "+nan"
    elif text.startswith("a signed infinity"):
        result = "-inf" if (point[0][0] == "-") != (point[1][0] == "-") else "inf"
    elif is_complex and ("j" in text or "cis" in text):
        return complex_symbol(text, note, point)
    else:
        result = symbol(text)
    other = re.search(r"libraries may return (\S+) to match", note)
    if other:
        result += "|" + symbol(re.sub(r"\.0$", "", other[1]))
    return result


def docstrings(wheel):
    """Name and docstring of every function of the standard's 2024.12 version."""
    source = zipfile.ZipFile(wheel).read("array_api/_2024_12.py").decode()
    source = source[: source.index("\nclass ArrayNamespace") if "\nclass ArrayNamespace" in source else None]
    name = None
    for found in re.finditer(r'^class (\w+)|^ {4}def (\w+)|r?"""(.*?)"""', source, re.S | re.M):
        if found[1] or found[2]:
            name = found[1] or (found[2] if found[2] != "__call__" else name)
        elif name:
            yield name, found[3]


def sentences(doc):
    """The special-case bullets as (is_complex, ordinal, condition, result); condition None for the rest."""
    start = re.search(r"\*\*special cases", doc, re.I)
    if not start:
        return
    is_complex, count = False, {False: 0, True: 0}
    for line in doc[start.start():].splitlines():
        line = line.strip().replace("``", "").replace("`", "")
        if line.startswith("For complex floating-point operands, let"):
            is_complex = True
        if not line.startswith("- "):
            continue
        line = line[2:].strip()
        count[is_complex] += 1
        found = re.fullmatch(r"In the remaining cases, the result is (True|False)\.", line)
        if found:
            yield is_complex, count[is_complex], None, found[1]
            continue
        found = re.match(r"If (.*?),? the result (?:is|has a) (.*)$", line)
        # Sentences on one component, on four at once or on halves are left to `prose`.
        if found and not re.search(r"component of|\bd (is|are)\b|equally close", found[1]):
            result = found[2]
            sign = re.match(r"(positive|negative) mathematical sign", result)
            if sign:
                result = "+" if sign[1] == "positive" else "-"
            yield is_complex, count[is_complex], found[1].rstrip(","), result


class Table:
    """The rows of one function in order; the first sentence that speaks of a point decides."""

    def __init__(self, name):
        self.name, self.rows = name, {}

    def put(self, kind, operands, expected, source):
        key = kind, tuple(operands)
        if self.rows.get(key, "+")[0] in "+-":  # a bare sign gives way to a value
            self.rows[key] = expected, source

    def of(self, kind):
        return [(operands, expected) for (k, operands), (expected, _) in self.rows.items() if k == kind]

    def write(self):
        lines = [f"# {self.name}: special cases of the array API standard, {len(self.rows)} rows",
                 "# Written by scripts/standard_special_cases.py, where the format is described."]
        for (kind, operands), (expected, source) in self.rows.items():
            lines.append(f"{self.name} {kind} {' '.join(operands)} -> {expected}  # {source}")
        (FOLDER / f"{self.name}.txt").write_text("\n".join(lines) + "\n")


def read(name, doc):
    table = Table(name)
    parsed = list(sentences(doc))
    double = any(c and "x2_i" in c for _, _, c, _ in parsed)
    for is_complex, ordinal, text, result in parsed:
        if is_complex:
            if double:
                continue  # binary operations on complex operands are told in prose: see `prose`
            names, grid = COMPLEX, [(a, b) for a in PART for b in PART]
        elif double:
            extra = ["-nan"] if name in SIGNED_NAN else []
            names, grid = DOUBLE, [(x, y) for x in PAIR + extra for y in PAIR + extra]
        else:
            names, grid = SINGLE, [(x,) for x in REAL + (["-nan"] if name in SIGNED_NAN else [])]
        if text is None and name not in REMAINING:
            continue
        if name == "copysign" and not re.match("x1_i is NaN", text):
            text += " and x1_i is not NaN"
        test = condition(text, names) if text else lambda v: True
        for point in grid:
            if not test([number(x) for x in point]):
                continue
            source = f"{'c' if is_complex else 'r'}{ordinal}"
            expected = outcome(result, point, is_complex)
            if is_complex:
                if (name, *point) in CORRECTIONS:
                    expected, source = CORRECTIONS[(name, *point)], "c99"
                table.put("complex", [",".join(point)], expected, source)
            else:
                table.put("real", point, expected, source)
    return table


def each_part(pair, function):
    return ",".join(f(x) for f, x in zip(function, pair.split(",")))


def keep(token):
    return token


def symmetries(table, odd=False, even=False):
    """The images of the complex rows under conjugation and reflection."""
    for operands, expected in table.of("complex"):
        conjugate = (keep, negate) if "," in expected else (keep,)
        table.put("complex", [each_part(operands[0], (keep, negate))], each_part(expected, conjugate), "conj")
    if odd or even:
        for operands, expected in table.of("complex"):
            image = each_part(expected, (negate, negate)) if odd else expected
            table.put("complex", [each_part(operands[0], (negate, negate))], image, "odd" if odd else "even")


def rotated(table, source, outer):
    """f(z) = g(iz), or -i g(iz) if outer: the operand of g is turned back, the result perhaps too."""
    for operands, expected in source.of("complex"):
        a, b = operands[0].split(",")
        if outer:
            p, q = expected.split(",")
            expected = f"{q},{negate(p)}"
        table.put("complex", [f"{b},{negate(a)}"], expected, f"through {source.name}")


def scaled(table, source, factor):
    """The change of base: only multiples of pi change."""
    scale = lambda token: repr(number(token) * factor) if "pi" in token else token
    for operands, expected in source.of("complex"):
        expected = each_part(expected, (keep, lambda t: ("?" if t[0] == "?" else "") + scale(t)))
        table.put("complex", operands, expected, f"through {source.name}")


def prose(tables):
    """What the standard says outside its lists."""
    get = lambda name: tables.setdefault(name, Table(name))
    for operands, expected in tables["add"].of("real"):
        get("subtract").put("real", [operands[0], negate(operands[1])], expected, "through add")
    for operands, expected in tables["divide"].of("real"):
        if operands[0] == "1":
            get("reciprocal").put("real", [operands[1]], expected, "through divide")
    for operands, expected in tables["multiply"].of("real"):
        if operands[0] == operands[1]:
            get("square").put("real", [operands[0]], expected, "through multiply")
    get("add").put("complex", ["-0,0", "-0,-0"], "-0,0", "text")
    special = [operands[0] for operands, _ in tables["add"].of("real") if operands[0] == operands[1]]
    sums = dict(tables["add"].of("real"))
    for x in ("nan", "inf", "-inf", "0", "-0", "1"):
        for y in special:
            if (x, y) in sums and (y, x) in sums:
                get("add").put("complex", [f"{x},{y}", f"{y},{x}"], f"{sums[x, y]},{sums[y, x]}", "text")
    for name in ("multiply", "divide"):
        get(name).put("complex", ["nan,nan", "nan,nan"], "nan,nan", "c1")
    rounded = {operands[0]: expected for operands, expected in tables["round"].of("real")}
    for x in ("nan", "inf", "-inf", "0", "-0", "1", "-2"):
        for y in ("nan", "inf", "-inf", "0", "-0", "3", "-1"):
            get("round").put("complex", [f"{x},{y}"], f"{rounded[x]},{rounded[y]}", "text")
    for x, even in (("0.5", "0"), ("-0.5", "-0"), ("1.5", "2"), ("-1.5", "-2"), ("2.5", "2"), ("-2.5", "-2")):
        get("round").put("real", [x], even, "text")
    for x in ("nan", "inf", "1"):
        for y in ("nan", "-inf", "2"):
            for z in ("nan", "3"):
                if "nan" in (x, y, z):
                    get("clip").put("real", [x, y, z], "nan", "text")
    for x, y in (("nan", "1"), ("1", "nan"), ("nan", "nan"), ("nan", "inf"), ("-inf", "nan"), ("0", "nan")):
        for name in ("maximum", "minimum"):
            get(name).put("real", [x, y], "nan", "text")
    for x in ("nan", "inf", "-inf", "0", "-0", "1"):
        for y in ("nan", "inf", "-inf", "0", "-0", "1"):
            truth = not (x in ("0", "-0") and y in ("0", "-0"))
            get("bool").put("complex", [f"{x},{y}"], str(truth).lower(), "text")
            if x == y and x != "nan":
                get("equal").put("real", [x, y], "true", "text")
    for x, y in (("1", "2"), ("0", "1"), ("inf", "1"), ("1", "-inf"), ("nan", "1")):
        get("not_equal").put("real", [x, y], "true", "text")
    for x in ("0", "1", "inf", "-inf"):
        get("not_equal").put("real", [x, x], "false", "text")
    get("not_equal").put("real", ["0", "-0"], "false", "text")

    lists = {
        "sum": [("", "0"), ("nan", "nan"), ("1,nan,2", "nan"), ("inf,-inf", "nan"), ("inf,1", "inf"),
                ("-inf,1", "-inf"), ("inf,inf", "inf"), ("inf,nan", "nan")],
        "prod": [("", "1"), ("nan", "nan"), ("1,nan,2", "nan"), ("inf,0", "nan"), ("-inf,2", "-inf"),
                 ("-inf,-1", "inf"), ("0,-1", "-0"), ("inf,nan", "nan")],
        "mean": [("", "nan"), ("nan", "nan"), ("1,nan", "nan"), ("inf,1", "inf"), ("inf,-inf", "nan")],
        "max": [("nan", "nan"), ("1,nan,2", "nan"), ("nan,inf", "nan"), ("inf,nan", "nan"), ("-inf,1", "1")],
        "min": [("nan", "nan"), ("1,nan,2", "nan"), ("nan,-inf", "nan"), ("-inf,nan", "nan"), ("inf,1", "1")],
        "std": [("", "nan"), ("nan", "nan"), ("1,nan", "nan"), ("1", "0")],
        "var": [("", "nan"), ("nan", "nan"), ("1,nan", "nan"), ("1", "0")],
        "any": [("", "false"), ("nan", "true"), ("inf", "true"), ("-inf,0", "true"), ("0,-0", "false")],
        "all": [("", "true"), ("nan", "true"), ("inf", "true"), ("-inf,0", "false"), ("nan,-0", "false")],
    }
    fold_rows = []
    for name, cases in lists.items():
        fold_rows += [(name, "reduce", f"[{items}]", expected) for items, expected in cases]
    for name in ("std", "var"):
        fold_rows += [(name, "reduce:correction=1", "[1]", "nan"), (name, "reduce:correction=2", "[1,2]", "nan"),
                      (name, "reduce:correction=3", "[1,2]", "nan"), (name, "reduce:correction=1", "[2,2]", "0")]
    return fold_rows


def write_reductions(fold_rows):
    lines = [f"# reductions: special cases of the array API standard, {len(fold_rows)} rows",
             "# Written by scripts/standard_special_cases.py, where the format is described."]
    lines += [f"{name} {kind} {items} -> {expected}  # text" for name, kind, items, expected in fold_rows]
    (FOLDER / "reductions.txt").write_text("\n".join(lines) + "\n")


TOLD_IN_PROSE = {"max", "min", "mean", "std", "var", "sum", "prod", "clip", "slogdet"}
ODD = {"asinh", "atanh", "sinh", "tanh"}
CONJUGATE = {"acos", "acosh", "asinh", "atanh", "cosh", "exp", "expm1", "log", "log1p", "sinh", "sqrt", "tanh"}


def build(wheel):
    tables = {}
    for name, doc in docstrings(wheel):
        name = {"__bool__": "bool"}.get(name, name)
        if name.startswith("__") or name in tables or name in TOLD_IN_PROSE:
            continue
        table = read(name, doc)
        if table.rows:
            tables[name] = table
    for name in CONJUGATE:
        symmetries(tables[name], odd=name in ODD, even=name == "cosh")
    rotated(tables["sin"], tables["sinh"], True)
    rotated(tables["cos"], tables["cosh"], False)
    rotated(tables["tan"], tables["tanh"], True)
    rotated(tables["asin"], tables["asinh"], True)
    rotated(tables["atan"], tables["atanh"], True)
    scaled(tables["log2"], tables["log"], 1 / math.log(2))
    scaled(tables["log10"], tables["log"], 1 / math.log(10))
    return tables, prose(tables)


def against_numpy():
    import numpy as np

    np.seterr(all="ignore")
    checked = 0
    for path in sorted(FOLDER.glob("*.txt")):
        for function, kind, operands, expected in rows(path):
            if kind.startswith("reduce"):
                f = getattr(np, function)
                if function in ("std", "var"):
                    f = lambda x, f=f, c=kind: f(x, ddof=int(c[-1]) if "=" in c else 0)
                operands = [np.array(operands[0], float)]
            else:
                f = {"bool": bool}.get(function) or getattr(np, function)
                operands = [(np.complex128 if kind == "complex" else np.float64)(x) for x in operands]
            checked += 1
            got = f(*operands)
            if not matches(got, expected):
                print(f"numpy: {function} {kind} {operands} = {got!r}, the table has {expected}")
    print(f"numpy: {checked} rows checked")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    tables, fold_rows = build(sys.argv[1])
    for table in tables.values():
        if table.rows:
            table.write()
    write_reductions(fold_rows)
    total = sum(len(t.rows) for t in tables.values()) + len(fold_rows)
    print(f"{len(tables) + 1} files, {total} rows")
    if "--numpy" in sys.argv:
        against_numpy()


if __name__ == "__main__":
    main()
