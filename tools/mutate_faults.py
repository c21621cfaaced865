"""The faults that tools/mutate plants: found in the text of a file, and written into it behind numbers."""

import re

NUMBERS = 65536

# Every planted file starts with this. fx_fault(n) says whether fault n is alive (the environment variable FX_FAULT), and
# notes that its place was reached when FX_REACHED names a file to write that to.
SWITCH = """#ifndef FX_FAULT_SWITCH
#define FX_FAULT_SWITCH
#include <cstdio>
#include <cstdlib>
struct FxFaults {
  int alive = std::getenv("FX_FAULT") ? std::atoi(std::getenv("FX_FAULT")) : 0;
  const char* file = std::getenv("FX_REACHED");
  unsigned char reached[NUMBERS] = {};
  ~FxFaults() {
    std::FILE* out = file ? std::fopen(file, "wb") : nullptr;
    if (out) std::fwrite(reached, 1, sizeof reached, out), std::fclose(out);
  }
};
inline bool fx_fault(int number) {
  static FxFaults faults;
  if (faults.file) faults.reached[number] = 1;
  return faults.alive == number;
}
#endif
""".replace("NUMBERS", str(NUMBERS)) + "".join(f'#pragma GCC diagnostic ignored "-W{warning}"\n' for warning in (
    "parentheses", "int-in-bool-context", "bool-compare", "type-limits", "address", "tautological-compare", "unused-variable",
    "unused-parameter", "unused-but-set-variable", "unused-but-set-parameter", "logical-not-parentheses", "nonnull-compare",
    "sign-compare", "bool-operation", "return-type", "null-dereference"))

# What only makes room, or fetches, beforehand changes no result.
ROOM = re.compile(r"\b(reserve|shrink_to_fit|prefetch_near|__builtin_prefetch)\(")


class Fault:
    def __init__(self, path, line, start, end, text, what):
        self.path, self.line, self.start, self.end, self.text, self.what = path, line, start, end, text, what
        self.number, self.key = 0, f"{path}: {what}"

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}"


# ---- reading C++ as far as needed ------------------------------------------------------------------------------------
def blank_out(text):
    """Comments, strings and preprocessor lines as spaces, so that places stay where they are."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#[^\n]*',
                         re.S | re.M)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def closing(text, open_at):
    depth = 0
    for i in range(open_at, len(text)):
        depth += text[i] in "([{"
        depth -= text[i] in ")]}"
        if depth == 0:
            return i
    return -1


def top_level(text, tokens):
    """Places of the tokens outside of brackets, longest token first."""
    depth, i, found = 0, 0, []
    while i < len(text):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
        elif depth == 0:
            token = next((t for t in tokens if text.startswith(t, i)), None)
            if token:
                found.append((i, token))
                i += len(token)
                continue
        i += 1
    return found


COMPARISONS = {" < ": [" <= ", " >= "], " <= ": [" < "], " > ": [" >= ", " <= "], " >= ": [" > "], " == ": [" != "],
               " != ": [" == "]}

TURNED_ROUND = {" < ": " >= ", " >= ": " < ", " > ": " <= ", " <= ": " > ", " == ": " != ", " != ": " == "}


def variants(condition, code):
    """What the condition may become, with what was done. `code` is the same with comments and strings blanked out."""
    yield f"!({condition})", "negated"
    joints = top_level(code, ["&&", "||"])
    for operator in ("&&", "||"):
        places = [place for place, token in joints if token == operator]
        if not places or (operator == "&&" and any(token == "||" for _, token in joints)):
            continue
        ends = [0] + [place + 2 for place in places]
        parts = [condition[a:b].strip() for a, b in zip(ends, places + [len(condition)])]
        for left_out in range(len(parts)):
            rest = f" {operator} ".join(part for i, part in enumerate(parts) if i != left_out)
            yield rest, f"without {' '.join(parts[left_out].split())}"
    compared = top_level(code, sorted(COMPARISONS, key=len, reverse=True))
    for place, token in compared:
        if "template" in condition or "<" in condition[:place].replace(" < ", ""):
            continue
        for other in COMPARISONS[token]:
            if other == TURNED_ROUND[token] and len(compared) == 1 and not joints:
                continue  # the whole condition negated
            yield condition[:place] + other + condition[place + len(token):], f"{token.strip()} is {other.strip()}"


def conditions(code):
    for match in re.finditer(r"\b(if|while) \(", code):
        open_at = match.end() - 1
        end = closing(code, open_at)
        inside = code[open_at + 1:end]
        # `if (auto x = …; condition)`: only what comes last; a declaration alone is no expression.
        start = open_at + 1
        if ";" in inside:
            start += inside.rindex(";") + 1
        elif re.match(r"\s*(const |auto\b|[\w:<>]+[&*]? [\w]+ = |[\w:<>]+\s*[*&]\s*\w+ = )", inside):
            continue
        yield start, end
    for match in re.finditer(r"\breturn ([^;{}]*?(?:&&|\|\|| == | != | < | > | <= | >= |!)[^;{}]*);", code):
        said = match.group(1)
        outside = top_level(said, ["&&", "||", *COMPARISONS])
        if "?" not in said and "[" not in said.split("(")[0] and (said.startswith("!") or outside):
            yield match.start(1), match.end(1)


def calls(code):
    """Statements that are one call and nothing else."""
    for match in re.finditer(r"(?<=[;{}\n])[ \t]*((?:[a-z_][\w]*(?:\.|->|::))*[a-z_]\w*\((?:[^;{}])*\);)[ \t]*(?=\n)", code):
        before = code[:match.start(1)].rstrip()
        if before and (before[-1] in ";{})" or before.endswith("else")):
            if not re.match(r"(assert|static_assert|return|throw|if|for|while|switch|delete)\b", match.group(1)):
                if not ROOM.search(match.group(1)):
                    yield match.start(1), match.end(1)


def faults_of(path, text):
    """All faults for the file at `path`, outermost places only: a number lies behind each, and one is alive at a time."""
    code, faults = blank_out(text), []
    for start, end in conditions(code):
        original = text[start:end].strip()
        if len(original) > 300 or "constexpr" in original or "?" in original or closing(f"({original})", 0) != len(original) + 1:
            continue
        start += len(text[start:end]) - len(text[start:end].lstrip())
        for changed, what in variants(text[start:end], code[start:end]):
            what = f"`{' '.join(original.split())}` {what}"
            faults.append(Fault(path, text.count("\n", 0, start) + 1, start, end, changed, what))
    for start, end in calls(code):
        what = f"left out: {' '.join(text[start:end].split())}"
        faults.append(Fault(path, text.count("\n", 0, start) + 1, start, end, None, what))
    faults, covered = sorted(faults, key=lambda fault: (fault.start, -fault.end)), (-1, -1)
    outermost, seen = [], {}
    for fault in faults:
        place = (fault.start, fault.end)
        if place != covered and place[0] < covered[1]:
            continue
        covered = place
        seen[fault.key] = seen.get(fault.key, 0) + 1
        if seen[fault.key] > 1:
            fault.key += f" #{seen[fault.key]}"
        outermost.append(fault)
    return outermost


# ---- planting --------------------------------------------------------------------------------------------------------
def planted(text, faults):
    """The text with these faults, each alive under its number. Faults of one place choose among themselves."""
    by_place = {}
    for fault in faults:
        by_place.setdefault((fault.start, fault.end), []).append(fault)
    for (start, end), here in sorted(by_place.items(), reverse=True):
        original = text[start:end]
        if here[0].text is None:
            changed = f"{{ if (!fx_fault({here[0].number})) {{ {original} }} }}"
        else:
            changed = f"({original.strip()})"
            for fault in here:
                changed = f"(fx_fault({fault.number}) ? static_cast<bool>({fault.text}) : static_cast<bool>{changed})"
            changed = re.sub(r"//[^\n]*\n", "\n", changed) if "//" in blank_strings(changed) else changed
            changed = re.sub(r"\s*\n\s*", " ", changed) + "\n" * original.count("\n")  # lines keep their numbers
        text = text[:start] + changed + text[end:]
    return SWITCH + "#line 1\n" + text


def blank_strings(text):
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
