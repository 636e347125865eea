"""Reads C source for the checks in ci/: code apart from comments and strings."""

import os
import re
import sys

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)*')
""", re.S | re.X)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"\n]+)[>"]', re.M)


class Source:
    """One file, in four views of the same length, so that offsets agree:
    text; code (comments and the inside of strings blanked); no_comments."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.text = file.read()
        self.strings = []       # (offset, contents), neighbours joined
        code = []
        no_comments = []
        end = 0
        joined_end = None
        for match in TOKEN.finditer(self.text):
            between = self.text[end:match.start()]
            code.append(between)
            no_comments.append(between)
            whole = match.group(0)
            if match.lastgroup == "comment":
                blank = re.sub(r"[^\n]", " ", whole)
                code.append(blank)
                no_comments.append(blank)
            else:
                code.append(whole[0] + " " * (len(whole) - 2) + whole[-1])
                no_comments.append(whole)
            if match.lastgroup == "string":
                gap = None if joined_end is None else "".join(no_comments)[joined_end:match.start()]
                if gap is not None and gap.strip() == "":
                    offset, contents = self.strings[-1]
                    self.strings[-1] = (offset, contents + whole[1:-1])
                else:
                    self.strings.append((match.start(), whole[1:-1]))
                joined_end = match.end()
            end = match.end()
        code.append(self.text[end:])
        no_comments.append(self.text[end:])
        self.code = "".join(code)
        self.no_comments = "".join(no_comments)

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def includes(self):
        """(offset, quoted?, name) of each #include."""
        return [(m.start(), m.group(1) == '"', m.group(2)) for m in INCLUDE.finditer(self.no_comments)]

    def calls(self, name):
        """(offset, argument text as code) of each call of a function or macro."""
        found = []
        for match in re.finditer(r"\b%s\s*\(" % name, self.code):
            depth = 0
            for at in range(match.end() - 1, len(self.code)):
                if self.code[at] == "(":
                    depth += 1
                elif self.code[at] == ")":
                    depth -= 1
                    if depth == 0:
                        found.append((match.start(), self.code[match.end():at]))
                        break
        return found


class Report:
    """Collects what is wrong; finish() prints it and gives the exit code."""

    def __init__(self, name):
        self.name = name
        self.problems = []

    def add(self, source, offset, message):
        self.problems.append("%s:%d: %s" % (source.path, source.line(offset), message))

    def finish(self, checked):
        for problem in self.problems:
            print(problem)
        if checked == 0:
            print("%s: found nothing to check" % self.name)
            return 1
        if self.problems:
            print("%s: %d problem%s" % (self.name, len(self.problems), "" if len(self.problems) == 1 else "s"))
            return 1
        print("%s: ok" % self.name)
        return 0


def root():
    """The tree to check: the argument, or the one that this file is in."""
    if len(sys.argv) > 1:
        return sys.argv[1]
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def sources(top, folder="src"):
    paths = []
    for directory, _, names in os.walk(os.path.join(top, folder)):
        for name in names:
            if name.endswith((".c", ".h")):
                paths.append(os.path.relpath(os.path.join(directory, name), top))
    return [Source(top, path) for path in sorted(paths)]
