# SPDX-License-Identifier: Apache-2.0
"""Reads a public header: its introduction, its sections, and each declaration with the comment before it.

The headers are C in a regular form (clang-format), so lines are enough: a comment directly above a
declaration belongs to it and to those that follow without an empty line; `/* ---- title ---- */` begins a
section; a comment with an empty line after it is text of the section."""
import re
from dataclasses import dataclass, field


@dataclass
class Group:
    """Declarations that stand together, and what is said of them. Without declarations: text."""
    comment: str
    code: str
    names: list = field(default_factory=list)


@dataclass
class Section:
    title: str
    groups: list = field(default_factory=list)


@dataclass
class Header:
    name: str  # "bulkhead/core.h"
    summary: str
    introduction: str
    sections: list


def comment_text(block):
    """The text of a comment without its marks; what is indented stays indented."""
    text = block.strip()
    text = text[2:-2]
    lines = [re.sub(r'^\s*\*? ?', '', line) if i else line.strip() for i, line in enumerate(text.split('\n'))]
    return '\n'.join(line.rstrip() for line in lines).strip('\n')


def as_c(text):
    """The text as a C compiler sees it, of what is different for C++ and for other compilers."""
    kept, stack = [], []  # of each open #if: whether its lines are kept; None: its own lines are kept too
    for line in text.split('\n'):
        word = re.match(r'#\s*(ifdef|ifndef|if|elif|else|endif)\b\s*(.*)', line)
        if not word:
            if all(state is not False for state in stack):
                kept.append(line)
            continue
        kind, what = word.groups()
        if kind in ('ifdef', 'ifndef', 'if'):
            if '__cplusplus' in what:
                stack.append(kind == 'ifndef' or '!' in what)
            else:
                stack.append(True)
        elif kind == 'elif':
            stack[-1] = False
        elif kind == 'else':
            stack[-1] = not stack[-1]
        else:
            stack.pop()
    return '\n'.join(kept)


def names_in(code):
    """The names that a piece of code declares: functions, types, fields' structs, constants, macros."""
    bare = re.sub(r'/\*.*?\*/', '', code, flags=re.S)
    names = re.findall(r'^#define (\w+)', bare, flags=re.M)
    bare = re.sub(r'^#.*(\\\n.*)*$', '', bare, flags=re.M)
    for body in re.findall(r'\benum\b[^{;]*\{(.*?)\}', bare, flags=re.S):
        names += re.findall(r'(?:^|,)\s*(BH_\w+)', body)
    while re.search(r'\{[^{}]*\}', bare):
        bare = re.sub(r'\{[^{}]*\}', ' ', bare)
    names += re.findall(r'^typedef (?:struct |union )?(?:\w+\s+)?\*?(\w+)\s*;', bare, flags=re.M)
    names += re.findall(r'^(?:BH_API|static inline|typedef)\b[^(;]*?\b(bh_\w+)\s*\(', bare, flags=re.M)
    seen = []
    for name in names:
        if re.match(r'(bh_|BH_)', name) and not name.endswith('_') and name not in seen:
            seen.append(name)
    return seen


def without_comments(text):
    """The lines with comments blanked out, and for each whether a comment goes on into the next line."""
    blank = re.sub(r'/\*.*?\*/', lambda found: re.sub(r'[^\n]', ' ', found.group()), text, flags=re.S)
    inside, open_at_end = False, []
    for line in text.split('\n'):
        for mark in re.findall(r'/\*|\*/', line):
            inside = mark == '/*'
        open_at_end.append(inside)
    return [line.rstrip() for line in blank.split('\n')], open_at_end


def split(body):
    """(kind, text) for the comments, empty lines and declarations of a body, in their order."""
    lines = body.split('\n')
    bare, open_at_end = without_comments(body)
    i = 0
    while i < len(lines):
        start, depth = i, 0
        if not lines[i].strip():
            kind = 'empty'
        elif lines[i].startswith('/*'):
            kind = 'comment'
        elif lines[i].startswith('#'):
            kind = 'code'
            while lines[i].endswith('\\'):
                i += 1
        else:
            kind = 'code'
            while True:
                depth += sum(bare[i].count(c) for c in '{(') - sum(bare[i].count(c) for c in '})')
                if depth == 0 and (bare[i][-1:] in (';', '}') or re.match(r'[A-Z_]+_\(', bare[i])):
                    break
                i += 1
                if i == len(lines):
                    raise ValueError('a declaration does not end: ' + lines[start])
        while open_at_end[i]:
            i += 1
        yield kind, '\n'.join(lines[start:i + 1])
        i += 1


def shown(code):
    """What a reader needs of a declaration: no bodies of inline functions and of long macros, nothing internal."""
    if re.match(r'[A-Z_]+_\(.*\)$|#undef|#define \w+_(\(| )|struct bh_\w+_ \{', code):
        return ''
    if code.startswith('#define') and code.split('\n')[0].endswith('\\'):
        return code.split('\n')[0].rstrip('\\ ')
    return re.sub(r'^(static inline [^{]*?)\s*\{.*\}$', r'\1;', code, flags=re.S)


def sections_of(body):
    section = Section('')
    sections = [section]
    pending, group = None, None
    for kind, text in list(split(body)) + [('empty', '')]:
        if kind == 'comment':
            title = re.match(r'/\* ---- (.*?) ----', text)
            if title:
                section = Section(title.group(1))
                sections.append(section)
                rest = re.sub(r'^/\* ---- .*? ----', '/*', text)
                if comment_text(rest).strip():
                    section.groups.append(Group(comment_text(rest), ''))
                pending, group = None, None
                continue
            group = None
            pending = f'{pending}\n\n{comment_text(text)}' if pending else comment_text(text)
        elif kind == 'empty':
            if pending is not None:
                section.groups.append(Group(pending, ''))
            pending, group = None, None
        else:
            text = shown(text)
            if not text:
                pending = None
            elif group is None:
                group = Group(pending or '', text)
                section.groups.append(group)
                pending = None
            else:
                group.code += '\n' + text
    for section in sections:
        for group in section.groups:
            group.names = names_in(group.code)
    return [section for section in sections if section.groups]


def read(path, name):
    text = open(path, encoding='utf-8').read()
    blocks = re.match(r'/\* SPDX[^\n]*\n(/\*.*?\*/)(.*)', text, flags=re.S)
    introduction, body = comment_text(blocks.group(1)), blocks.group(2)
    body = as_c(body)
    body = re.sub(r'^#(define BULKHEAD_\w+_H|include.*)\n', '', body, flags=re.M)
    body = re.sub(r'^/\* clang-format (on|off) \*/\n', '', body, flags=re.M)
    body = re.sub(r'^#define BH_API.*\n', '', body, flags=re.M)
    introduction = re.sub(r'^[\w./]+: (\w)', lambda found: found[1].upper(), introduction)
    first = re.split(r'\n\s*\n', introduction)[0].replace('\n', ' ')
    return Header(name, first, introduction, sections_of(body))
