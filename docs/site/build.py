#!/usr/bin/python3
"""Makes the site: static HTML out of docs/*.md, the public headers and the files that pages link to.

    docs/*.md --pandoc--------------------------------> *.html
    public headers --contracts.awk--> Doxygen --------> api/*.html
    files of the tree that pages link to --pandoc-----> source/*.html
    headings and symbols -----------------------------> search-index.js

    docs/site/build.py OUT            writes the site into the folder OUT (make site)
    docs/site/build.py --check OUT    checks that every internal link of the site leads somewhere

Needs pandoc and doxygen (Debian packages of these names). Links in the Markdown are those that work in
the tree; a link that leads nowhere stops the build.
"""
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
DOCS = SOURCE / "docs"
LANGUAGES = {".c": "c", ".h": "c", ".sh": "bash", ".py": "python", ".json": "json", ".am": "makefile",
             ".awk": "awk"}


def fail(message):
    sys.exit("docs/site/build.py: " + message)


def run(command, **options):
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except FileNotFoundError:
        fail("%s is missing (Debian package %s)" % (command[0], command[0]))
    if done.returncode:
        fail("%s failed:\n%s" % (" ".join(map(str, command)), done.stderr))
    return done.stdout


def public_headers():
    return ["wengert.h", "base/api.h"] + [
        name for name in re.findall(r'#include "(.*)"', (SOURCE / "wengert.h").read_text())
        if name != "base/api.h"]


def title_of(page):
    for line in page.read_text().split("\n"):
        if line.startswith("# "):
            return line[2:].strip()
    fail("%s has no title" % page)


class Site:
    def __init__(self, out):
        self.out = out
        self.index = []      # [title, address, text] of what the search box finds
        self.sources = {}    # files of the tree that pages link to: path -> address
        self.symbols = {}    # name of a function, type or constant -> address
        self.headers = {}    # public header -> address
        self.sections = self.read_sections()
        self.bar = (HERE / "bar.html").read_text()

    # ---- The side bar ----

    def read_sections(self):
        sections, listed = [], set()
        for line in (HERE / "pages.txt").read_text().split("\n"):
            name = line.strip()
            if not name or line.startswith("#"):
                continue
            if not line.startswith(" "):
                sections.append((name, []))
            elif (DOCS / name).exists():
                sections[-1][1].append(name)
                listed.add(name)
        others = sorted(page.name for page in DOCS.glob("*.md") if page.name not in listed)
        return sections + ([("More", others)] if others else [])

    def sidebar(self, root, here):
        lines = []
        for section, pages in self.sections:
            lines.append("<b>%s</b><ul>" % section)
            for page in pages:
                address = page[:-3] + ".html"
                lines.append('<li><a href="%s%s"%s>%s</a></li>' % (
                    root, address, ' class="here"' if address == here else "",
                    html.escape(title_of(DOCS / page).replace("`", ""))))
            lines.append("</ul>")
        lines.append("<b>API reference</b><ul>")
        for address, title in (("api/files.html", "Headers"), ("api/annotated.html", "Structs")):
            lines.append('<li><a href="%s%s">%s</a></li>' % (root, address, title))
        lines.append("</ul>")
        return "\n".join(lines)

    # ---- The API reference ----

    def api(self):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            header = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title - Wengert</title>
<link rel="stylesheet" href="$relpath^doxygen.css"><link rel="stylesheet" href="../site.css">
</head><body data-root="../">%s<div class="columns api"><nav class="pages">%s</nav>
<main class="contents"><div id="top"></div><div id="doc-content">
""" % (self.bar.replace("@ROOT@", "../"), self.sidebar("../", ""))
            footer = """</main></div><script src="../search-index.js"></script>
<script src="../site.js"></script></body></html>
"""
            (work / "header.html").write_text(header)
            (work / "footer.html").write_text(footer)
            settings = (HERE / "Doxyfile").read_text() + "".join("%s = %s\n" % pair for pair in {
                "INPUT": " ".join('"%s"' % (SOURCE / name) for name in public_headers()),
                "STRIP_FROM_PATH": '"%s"' % SOURCE,
                "OUTPUT_DIRECTORY": '"%s"' % self.out,
                "GENERATE_TAGFILE": '"%s"' % (work / "tags.xml"),
                "HTML_HEADER": '"%s"' % (work / "header.html"),
                "HTML_FOOTER": '"%s"' % (work / "footer.html"),
                "INPUT_FILTER": '"awk -v mode=doxygen -f %s"' % (HERE / "contracts.awk"),
            }.items())
            run(["doxygen", "-"], input=settings, cwd=work)
            self.read_tags(work / "tags.xml")
        for page in list((self.out / "api").glob("*.html")):
            if page.name.startswith(("globals", "functions", "index")):  # lists that the search replaces
                page.unlink()
                continue
            page.write_text(self.linked(page.read_text()))

    def read_tags(self, tags):
        for compound in xml.etree.ElementTree.parse(tags).getroot():
            name, file = compound.findtext("name"), compound.findtext("filename") or ""
            if not file.endswith(".html"):
                file += ".html"
            if compound.get("kind") == "file":
                path = (compound.findtext("path") or "") + name
                path = path.replace(str(SOURCE) + "/", "").lstrip("/")
                self.headers[path] = "api/" + file
                self.index.append([path, "api/" + file, "header"])
            elif compound.get("kind") in ("struct", "union"):
                self.symbols[name] = "api/" + file
                self.index.append([name, "api/" + file, compound.get("kind")])
            else:
                continue
            for member in compound.iter("member"):
                symbol = member.findtext("name")
                address = "api/%s#%s" % (member.findtext("anchorfile"), member.findtext("anchor"))
                if compound.get("kind") == "file" and symbol not in self.symbols:
                    self.symbols[symbol] = address
                    self.index.append([symbol, address, "%s %s%s" % (
                        member.findtext("type") or "", symbol, member.findtext("arglist") or "")])

    def linked(self, text):
        """Names in contracts become links, and the owner and errors at their end stand out."""
        def link(match):
            address = self.symbols.get(match.group(0))
            return '<a href="../%s">%s</a>' % (address, match.group(0)) if address else match.group(0)

        def contract(match):
            body = re.sub(r"\bwg_\w+\b", link, match.group(2))
            body = re.sub(r"\[(?:scope|kept|NULL|[A-Z_]{4,})[^\]]*\]",
                          lambda m: '<span class="owner">%s</span>' % m.group(0), body)
            return match.group(1) + body + match.group(3)
        return re.sub(r'(<(?:p|pre) class="contract">)(.*?)(</p(?:re)?>)', contract, text, flags=re.S)

    # ---- Pages ----

    def address_of(self, page, target):
        """Where a link of a page of the tree leads on the site."""
        if re.match(r"[a-z]+:|#", target) or not target:
            return target
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        file = pathlib.Path(os.path.normpath(page.parent / path))
        if not file.exists():
            fail("%s links to %s, which is not there" % (page, target))
        name = str(file.relative_to(SOURCE))
        if file.parent == DOCS and file.suffix == ".md":
            address = file.stem + ".html"
        elif file.suffix in (".svg", ".png"):
            shutil.copy(file, self.out / file.name)
            address = file.name
        elif name in self.headers:
            address = self.headers[name]
        else:
            address = self.sources.setdefault(name, "source/%s.html" % (name if file.is_file() else name + "/index"))
        return address + ("#" + anchor if anchor else "")

    def page(self, source, markdown, address, title, toc=True):
        root = "../" * address.count("/")
        target = self.out / address
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["pandoc", "-f", "gfm", "-t", "html5", "--template", str(HERE / "page.html"),
                   "--metadata", "pagetitle=" + title, "-V", "root=" + root,
                   "-V", "bar=" + self.bar.replace("@ROOT@", root),
                   "-V", "sidebar=" + self.sidebar(root, address)]
        text = run(command + (["--toc", "--toc-depth=3"] if toc else []), input=markdown)
        head, body = text.split("<main", 1)
        body, rest = body.split("</main>", 1)

        def rewritten(match):
            there = self.address_of(source, html.unescape(match.group(2)))
            if not re.match(r"[a-z]+:|#", there):
                there = root + there
            return '%s="%s"' % (match.group(1), html.escape(there))
        body = re.sub(r'\b(href|src)="([^"]*)"', rewritten, body)
        body = re.sub(r"<code>(wg_\w+)(\(\))?</code>", lambda m: (
            '<a href="%s%s">%s</a>' % (root, self.symbols[m.group(1)], m.group(0))
            if m.group(1) in self.symbols else m.group(0)), body)
        target.write_text(head + "<main" + body + "</main>" + rest)
        if toc:
            self.add_headings(body, title, address)

    def add_headings(self, body, title, address):
        parts = re.split(r'<h[1-3] id="([^"]*)">(.*?)</h[1-3]>', body, flags=re.S)
        for anchor, heading, text in zip(parts[1::3], parts[2::3], parts[3::3]):
            plain = [" ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())
                     for part in (heading, text)]
            name = title if plain[0] == title else "%s: %s" % (title, plain[0])
            self.index.append([name, address + "#" + anchor, plain[1][:1500]])

    def pages(self):
        for _, names in self.sections:
            for name in names:
                page = DOCS / name
                self.page(page, page.read_text(), name[:-3] + ".html", title_of(page))

    def source_pages(self):
        """Files that pages link to, and those that Markdown among these links to."""
        done = set()
        while set(self.sources) - done:
            for name in sorted(set(self.sources) - done):
                done.add(name)
                file = SOURCE / name
                if file.is_dir():
                    listed = sorted(p.name + ("/" if p.is_dir() else "") for p in file.iterdir()
                                    if not p.name.startswith((".", "build", "__pycache__")))
                    markdown = "# %s/\n\n%s" % (name, "".join("    %s\n" % p for p in listed))
                elif file.suffix == ".md":
                    markdown = file.read_text()
                else:
                    try:
                        text = file.read_text()
                    except UnicodeDecodeError:
                        fail("%s is linked to and is no text" % name)
                    markdown = "# %s\n\n~~~~~~~~ %s\n%s\n~~~~~~~~\n" % (
                        name, LANGUAGES.get(file.suffix, "text"), text)
                self.page(file, markdown, self.sources[name], name, toc=False)

    def build(self):
        if self.out.exists():
            shutil.rmtree(self.out)
        self.out.mkdir(parents=True)
        for name in ("site.css", "site.js"):
            shutil.copy(HERE / name, self.out)
        self.api()
        shutil.copy(self.out / "api" / "doxygen.css", self.out / "doxygen.css")
        self.pages()
        self.source_pages()
        (self.out / "search-index.js").write_text(
            "const searchIndex = %s;\n" % json.dumps(self.index, separators=(",", ":")))


# ---- The check ----

class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.targets = set(), []

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name") and value:
                self.ids.add(value)
            elif key in ("href", "src") and value:
                self.targets.append(value)


def check(out):
    pages = {}
    for page in out.rglob("*.html"):
        pages[page] = Links()
        pages[page].feed(page.read_text())
    broken = count = 0
    for page, links in sorted(pages.items()):
        for target in links.targets:
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            file = page if not path else pathlib.Path(os.path.normpath(page.parent / path))
            if not file.is_file() or anchor and file in pages and anchor not in pages[file].ids:
                broken += 1
                print("%s: %s leads nowhere" % (page.relative_to(out), target))
    for title, address, _ in json.loads((out / "search-index.js").read_text()[20:-2]):
        path, _, anchor = address.partition("#")
        count += 1
        if out / path not in pages or anchor and anchor not in pages[out / path].ids:
            broken += 1
            print("search index: %s, %s leads nowhere" % (title, address))
    print("%d pages, %d internal links, %d broken" % (len(pages), count, broken))
    return broken


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        sys.exit(1 if check(pathlib.Path(sys.argv[2]).resolve()) else 0)
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        fail("usage: build.py [--check] OUT")
    Site(pathlib.Path(sys.argv[1]).resolve()).build()
