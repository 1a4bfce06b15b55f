#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: make_site.py FOLDER: writes the documentation as a site of plain files that needs no server and no network.

Pages are the documents (Markdown, converted by cmark-gfm) and a reference of each public header, made from
its own comments. Names of the API lead to their declarations everywhere. A link that leads nowhere, a page
that is in no menu and a function without an entry are errors."""
import html
import os
import re
import shutil
import subprocess
import sys

import headers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
NAME = re.compile(r'\b(?:bh_|BH_)\w+')
errors = []


def source(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def page_of(path):
    """The file of a page: all are in one folder, so that links between them are names."""
    if path == 'README.md':
        return 'index.html'
    flat = re.sub(r'^docs/', '', path)
    flat = re.sub(r'^include/(bulkhead/)?', 'api-', flat)
    return re.sub(r'\.(md|h)$', '', flat).replace('/', '-') + '.html'


def read_menu():
    groups = []
    for line in source('scripts/docs/pages.txt').split('\n'):
        if line.startswith('= '):
            groups.append((line[2:], []))
        elif line and not line.startswith('#'):
            path, title = line.split(None, 1)
            groups[-1][1].append((path, title.strip()))
    listed = {path for _, pages in groups for path, _ in pages}
    found = []
    for folder, _, files in sorted(os.walk(os.path.join(ROOT, 'docs'))):
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in sorted(files) if name.endswith('.md')]
    # The pages of folders are many and alike: their names are the menu.
    for path in found:
        if path.startswith('docs/architecture/'):
            groups[-1][1].append((path, path[len('docs/architecture/'):-3]))
        elif path not in listed:
            errors.append(f'{path} is not in scripts/docs/pages.txt')
    for name in sorted(os.listdir(os.path.join(ROOT, 'include/bulkhead'))):
        if f'include/bulkhead/{name}' not in listed:
            errors.append(f'include/bulkhead/{name} is not in scripts/docs/pages.txt')
    return groups


def markdown(text):
    done = subprocess.run(['cmark-gfm', '--unsafe', '-e', 'table', '-e', 'autolink'], input=text, text=True,
                          capture_output=True, check=True)
    return done.stdout


def anchor(title):
    plain = html.unescape(re.sub(r'<[^>]*>', '', title)).lower()
    return re.sub(r'[^a-z0-9_-]', '', plain.replace(' ', '-'))


def with_anchors(text):
    return re.sub(r'<h([1-6])>(.*?)</h\1>', lambda m: f'<h{m[1]} id="{anchor(m[2])}">{m[2]}</h{m[1]}>', text, flags=re.S)


def with_names(text, index, here):
    """Names of the API outside of links lead to their declarations."""
    parts, inside = re.split(r'(<[^>]*>)', text), 0
    for i, part in enumerate(parts):
        if part.startswith('<'):
            inside += part.startswith(('<a ', '<style', '<script')) - part.startswith(('</a', '</style', '</script'))
        elif not inside:
            parts[i] = NAME.sub(lambda m: link_to(m[0], index, here), part)
    return ''.join(parts)


def link_to(name, index, here):
    page = index.get(name)
    if page is None:
        return name
    return f'<a href="{"" if page == here else page}#{name}">{name}</a>'


def prose(comment):
    """The text of a comment as Markdown. What is lined up in columns stays as it is."""
    blocks = []
    for block in re.split(r'\n\s*\n', comment):
        lines = block.split('\n')
        if not block.startswith('    ') and any(re.search(r'\S {3,}\S', line) for line in lines):
            blocks.append('\n'.join('    ' + line for line in lines))
        elif block.startswith('    '):
            blocks.append(block)
        else:
            parts = re.split(r'(`[^`]*`)', block)
            parts[::2] = [re.sub(r'([*<\[\]])', r'\\\1', part) for part in parts[::2]]
            blocks.append(''.join(parts))
    return '\n\n'.join(blocks)


def declaration(group, here, index):
    """A piece of code whose names are targets where they are declared, and links elsewhere."""
    declared = set(name for name in group.names if index.get(name) == here)
    out = []
    for part in re.split(r'(/\*.*?\*/)', group.code, flags=re.S):
        comment = part.startswith('/*')

        def one(found):
            name = found[0]
            if not comment and name in declared:
                declared.discard(name)
                return f'<a id="{name}" href="#{name}">{name}</a>'
            return link_to(name, index, here)
        text = NAME.sub(one, html.escape(part, quote=False))
        out.append(f'<span class="comment">{text}</span>' if comment else text)
    text = ''.join(out).replace('BH_API ', '')
    # Markdown ends raw HTML at an empty line.
    return '<pre class="declaration"><code>' + re.sub(r'\n\n', '\n&#32;\n', text) + '</code></pre>'


def reference(header, index, here):
    text = [f'# {header.name}', '', prose(header.introduction), '']
    for section in header.sections:
        if section.title:
            text += [f'## {section.title}', '']
        for group in section.groups:
            if group.comment:
                text += [prose(group.comment), '']
            if group.code:
                text += [declaration(group, here, index), '']
    return markdown('\n'.join(text))


def cxx_reference(path):
    """C++ is shown as it is written: its templates say more than a summary would."""
    text = source(path)
    introduction = re.match(r'/\* SPDX[^\n]*\n(/\*.*?\*/)', text, flags=re.S).group(1)
    code = html.escape(text[text.index(introduction) + len(introduction):].strip(), quote=False)
    return markdown(f'# {os.path.basename(path)}\n\n' + prose(headers.comment_text(introduction))) + \
        f'\n<h2>The header</h2>\n<pre><code>{code}</code></pre>\n'


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.menu = read_menu()
        self.pages = {path: page_of(path) for _, pages in self.menu for path, _ in pages}
        self.titles = {path: title for _, pages in self.menu for path, title in pages}
        self.sources = []  # files that documents lead to and that are no pages of the menu
        self.headers = {path: headers.read(os.path.join(ROOT, path), path[len('include/'):])
                        for path in self.pages if path.endswith('.h')}
        self.index = {}
        for path, header in self.headers.items():
            for group in [group for section in header.sections for group in section.groups]:
                for name in group.names:
                    # A struct that is named first and described later is described later.
                    if name not in self.index or '{' in group.code:
                        self.index[name] = self.pages[path]
        self.written = {}

    def resolve(self, path, link):
        """Where a link of the document `path` leads in the site."""
        if re.match(r'[a-z]+:', link):
            return link
        file, _, mark = link.partition('#')
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if os.path.isdir(os.path.join(ROOT, target)):
            target += '.md'
        if target not in self.pages:
            if not os.path.isfile(os.path.join(ROOT, target)):
                errors.append(f'{path}: {link} does not exist')
                return link
            self.pages[target] = 'source-' + target.replace('/', '-') + '.html'
            self.sources.append(target)
        return self.pages[target] + (f'#{mark}' if mark else '')

    def write(self, page, title, body):
        here = lambda path: ' class="here"' if self.pages[path] == page else ''
        menu = ['<a class="home" href="index.html">Bulkhead</a>', '<a href="names.html">All names</a>']
        for group, pages in self.menu:
            menu.append(f'<b>{group}</b>')
            menu += [f'<a href="{self.pages[path]}"{here(path)}>{html.escape(name)}</a>' for path, name in pages]
        text = f'''<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)} - Bulkhead</title><link rel="stylesheet" href="site.css"></head>
<body><nav>{''.join(menu)}</nav><main>
{body}
</main></body></html>
'''
        self.written[page] = text
        with open(os.path.join(self.folder, page), 'w', encoding='utf-8') as file:
            file.write(text)

    def make(self):
        os.makedirs(self.folder, exist_ok=True)
        shutil.copy(os.path.join(HERE, 'site.css'), self.folder)
        for path, page in list(self.pages.items()):
            if path.endswith('.h'):
                body = reference(self.headers[path], self.index, page)
            elif path.endswith('.hpp'):
                body = cxx_reference(path)
            else:
                body = re.sub(r'href="([^"]*)"', lambda m: f'href="{self.resolve(path, m[1])}"', markdown(source(path)))
            self.write(page, self.titles[path], with_names(with_anchors(body), self.index, page))
        for path in self.sources:
            body = f'<h1>{path}</h1>\n<pre><code>{html.escape(source(path), quote=False)}</code></pre>'
            self.write(self.pages[path], path, with_names(body, self.index, self.pages[path]))
        self.write_names()
        self.check()

    def write_names(self):
        items = ''.join(f'<li>{link_to(name, self.index, "names.html")}</li>'
                        for name in sorted(self.index, key=str.lower))
        self.write('names.html', 'All names', f'''<h1>All names</h1>
<p><input id="filter" placeholder="part of a name" autofocus></p><ul id="names">{items}</ul>
<script>
document.getElementById("filter").addEventListener("input", function () {{
    var part = this.value.toLowerCase();
    document.querySelectorAll("#names li").forEach(function (item) {{
        item.style.display = item.textContent.toLowerCase().indexOf(part) < 0 ? "none" : "";
    }});
}});
</script>''')

    def check(self):
        """Every link leads to a page and a place in it, every declared function has one."""
        places = {page: set(re.findall(r'\bid="([^"]*)"', text)) for page, text in self.written.items()}
        for page, text in self.written.items():
            for link in set(re.findall(r'href="([^"]*)"', text)):
                target, _, mark = link.partition('#')
                target = target or page
                if re.match(r'[a-z]+:', link) or target == 'site.css':
                    continue
                if target not in places or mark and mark not in places[target]:
                    errors.append(f'{page}: {link} leads nowhere')
        for path in self.headers:
            text = re.sub(r'/\*.*?\*/', '', source(path), flags=re.S)
            for name in re.findall(r'^BH_API\b[^;]*?\b(bh_\w+)\(', text, flags=re.M):
                if name not in places[self.pages[path]]:
                    errors.append(f'{path}: {name} has no entry')


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: make_site.py FOLDER')
    if shutil.which('cmark-gfm') is None:
        sys.exit('error: there is no cmark-gfm\nFix: sudo apt-get install cmark-gfm')
    site = Site(sys.argv[1])
    site.make()
    for error in errors:
        print(f'error: {error}', file=sys.stderr)
    if errors:
        sys.exit(1)
    print(f'{len(site.written)} pages, {len(site.index)} names: {os.path.join(sys.argv[1], "index.html")}')


if __name__ == '__main__':
    main()
