# Reads public headers, in which a comment stands before the declarations that it describes, or behind
# one on its line:
#
#     /* The contract of both. [scope; SHAPE] */               typedef struct wg_x {
#     WG_API wg_tensor *wg_a(wg_tensor *x);                        int a; /* its meaning */
#     WG_API wg_tensor *wg_b(wg_tensor *x);                    } wg_x;
#
# and writes them as Doxygen wants them (mode=doxygen, one header to stdout, a filter of the Doxyfile),
# or writes a page of section 3 of the manual for each function (mode=man, folder=FOLDER).
#
#     awk -v mode=doxygen -f docs/site/contracts.awk tensor/ops.h
#     awk -v mode=man -v folder=man3 -v version=0.1.0 -v date="24 Nov 2026" -f docs/site/contracts.awk tensor/ops.h ...

# A date such as 24 Nov 2026 in the form of manual pages, 2026-11-24.
BEGIN {
    if (split(date, part, " ") == 3)
        date = sprintf("%s-%02d-%02d", part[3],
                       (index("JanFebMarAprMayJunJulAugSepOctNovDec", part[2]) + 2) / 3, part[1])
}

# ---- Comments ----

# The text of a comment: without its delimiters, stars and common indentation.
function text_of(comment,    lines, n, i, indent, least, text) {
    sub(/^[ \t]*\/\*+/, "", comment)
    sub(/[ \t\n]*\*+\/[ \t]*$/, "", comment)
    n = split(comment, lines, "\n")
    sub(/^ /, "", lines[1])
    least = 1000
    for (i = 2; i <= n; i++) {
        sub(/[ \t]+$/, "", lines[i])
        if (!sub(/^[ \t]*\* ?/, "", lines[i]) && lines[i] != "") {
            match(lines[i], /^[ \t]*/)
            indent[i] = 1
            if (RLENGTH < least)
                least = RLENGTH
        }
    }
    text = lines[1]
    for (i = 2; i <= n; i++)
        text = text "\n" (indent[i] ? substr(lines[i], least + 1) : lines[i])
    sub(/^\n+/, "", text)
    sub(/\n+$/, "", text)
    return text
}

# Lines that are laid out by hand: formulas, shapes and drawings.
function is_layout(line) { return line ~ /^   / || line ~ /[^ ]   +[^ ]/ }

# ---- HTML ----

function html_escaped(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}

# Prose as paragraphs, laid-out lines as they are; docs/site/build.py makes links of names.
function html_of(text,    lines, n, i, state, out) {
    n = split(html_escaped(text), lines, "\n")
    for (i = 1; i <= n; i++) {
        wanted = lines[i] == "" ? "" : is_layout(lines[i]) ? "pre" : "p"
        if (wanted == "" && state == "pre" && i < n && is_layout(lines[i + 1]))
            wanted = "pre"
        if (wanted != state) {
            if (state != "")
                out = out "</" state ">"
            if (wanted != "")
                out = out "<" wanted " class=\"contract\">"
            state = wanted
        } else
            out = out "\n"
        out = out lines[i]
    }
    if (state != "")
        out = out "</" state ">"
    gsub(/`[^`\n]+`/, "<code>&</code>", out)
    gsub(/<code>`/, "<code>", out)
    gsub(/`<\/code>/, "</code>", out)
    return out
}

function doxygen_block(text, opening) {
    return opening " \\htmlonly[block]\n" html_of(text) "\n\\endhtmlonly */"
}

# A member's remark, in one paragraph of Doxygen's own table.
function doxygen_remark(text) {
    text = html_escaped(text)
    gsub(/\n/, " ", text)
    return "/**< \\htmlonly " text " \\endhtmlonly */"
}

# ---- Manual pages ----

function roff_escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/)
        text = "\\&" text
    return text
}

function roff_of(text,    lines, n, i, state, out) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        if (lines[i] == "") {
            if (i > 1 && i < n)
                out = out (state == "layout" ? ".fi\n" : "") ".PP\n"
            state = ""
            continue
        }
        if (is_layout(lines[i]) && state != "layout") {
            out = out ".nf\n"
            state = "layout"
        } else if (!is_layout(lines[i]) && state == "layout") {
            out = out ".fi\n"
            state = "prose"
        }
        out = out roff_escaped(lines[i]) "\n"
    }
    return out (state == "layout" ? ".fi\n" : "")
}

# What a function is, in a line: the beginning of its contract.
function purpose(text, name) {
    gsub(/\n/, " ", text)
    sub(/   .*/, "", text)
    sub(/\. [A-Z].*/, "", text)
    sub(/ *\[(scope|NULL|kept)[^]]*\].*/, "", text)
    sub(/[.:;] .*/, "", text)
    sub(/[.:;]$/, "", text)
    if (length(text) > 90) {
        text = substr(text, 1, 90)
        sub(/ [^ ]*$/, " ...", text)
    }
    return text == "" ? name : text
}

# A prototype on lines of at most 78 columns.
function synopsis(prototype,    words, n, i, line, out) {
    gsub(/[ \n\t]+/, " ", prototype)
    if (length(prototype) <= 78)
        return roff_escaped(prototype) "\n"
    n = split(prototype, words, ", ")
    line = words[1]
    for (i = 2; i <= n; i++)
        if (length(line) + length(words[i]) > 74) {
            out = out roff_escaped(line) ",\n"
            line = "    " words[i]
        } else
            line = line ", " words[i]
    return out roff_escaped(line) "\n"
}

# Writes the pages of the declarations that share a contract.
function flush_pages(    i, page, list) {
    for (i = 1; i <= shared; i++)
        list = list synopsis(prototypes[i])
    for (i = 1; i <= shared; i++) {
        page = folder "/" names[i] ".3"
        if (i > 1 && remarks[i] == "" && remarks[1] == "") {
            printf ".so man3/%s.3\n", names[1] >page
        } else {
            printf ".\\\" Written by docs/site/contracts.awk out of %s; do not edit.\n", header >page
            printf ".TH %s 3 \"%s\" \"wengert %s\" \"Wengert\"\n", toupper(names[i]), date, version >page
            printf ".SH NAME\n" >page
            if (remarks[i] == "" && remarks[1] == "")
                for (j = 1; j <= shared; j++)
                    printf "%s%s", names[j], j < shared ? ",\n" : " " >page
            else
                printf "%s ", names[i] >page
            printf "\\- %s\n", roff_escaped(purpose(remarks[i] != "" ? remarks[i] : pending, names[i])) >page
            printf ".SH SYNOPSIS\n.nf\n#include <wengert/wengert.h> /* wengert/%s */\n\n", \
                roff_escaped(header) >page
            printf "%s.fi\n", remarks[i] == "" ? list : synopsis(prototypes[i]) >page
            above = remarks[i] == "" || remarks[1] != "" ? pending : ""
            if (remarks[i] != "" || above != "" || section != "")
                printf ".SH DESCRIPTION\n" >page
            if (remarks[i] != "")
                printf "%s", roff_of(remarks[i]) >page
            if (above != "")
                printf "%s%s", remarks[i] != "" ? ".PP\n" : "", roff_of(above) >page
            if (section != "")
                printf "%s%s", remarks[i] above != "" ? ".PP\n" : "", roff_of(section) >page
            printf ".SH NOTES\n" >page
            printf "Brackets at the end of a contract give the owner of the result (scope: the innermost\n" >page
            printf "open scope) and the errors that may be recorded, which\n.BR wg_error_pending (3)\n" >page
            printf "returns.\n" >page
        }
        close(page)
    }
    shared = 0
}

# ---- Reading ----

function read_comment(first,    comment) {
    comment = first
    while (comment !~ /\*\// && (getline line) > 0)
        comment = comment "\n" line
    return comment
}

function count(text, character,    copy) {
    copy = text
    return gsub(character, "", copy)
}

# "---- Title ----", and what a section's comment says of all its declarations.
function begin_section(text,    title, rest) {
    gsub(/^-+ *| *-+$/, "", text)
    title = text
    sub(/\n.*/, "", title)
    rest = text == title ? "" : text
    if (title ~ /\. [A-Z]/) {
        rest = text
        sub(/\. [A-Z].*/, "", title)
    }
    sub(/[.,:] *$/, "", title)
    sub(/ *\([a-z_\/]*\.[ch]\)/, "", title)
    section = rest
    if (mode == "doxygen") {
        if (group)
            print "/** @} */"
        gsub(/[@\\]/, "", title)
        print "/** @name " title
        if (rest != "")
            print "\\htmlonly[block]\n" html_of(rest) "\n\\endhtmlonly"
        print "@{ */"
        group = 1
    }
}

function begin_file() {
    header = FILENAME
    first_comment = 1
    depth = 0
    pending = section = statement = ""
    shared = group = 0
}

FNR == 1 {
    if (mode == "man" && NR > 1)
        flush_pages()
    begin_file()
}

# The further lines of a macro.
in_macro {
    print_line($0)
    in_macro = /\\$/
    next
}

# A comment that has its lines for itself.
/^[ \t]*\/\*/ && statement == "" {
    text = text_of(read_comment($0))
    if (mode == "man")
        flush_pages()
    if (first_comment) {
        first_comment = 0
        if (mode == "doxygen") {
            brief = text
            gsub(/\n/, " ", brief)
            sub(/[.:]( .*)?$/, "", brief)
            sub(/[.:] [A-Z].*/, "", brief)
            gsub(/[@\\#%<>&*_"`]/, "\\\\&", brief)
            print "/** \\file\n\\brief " brief ".\n\n" substr(doxygen_block(text, ""), 2)
        }
        pending = ""
    } else if (text ~ /^----/ && depth == 0) {
        begin_section(text)
        pending = ""
    } else {
        pending = text
        fresh = 1
    }
    next
}

/^[ \t]*$/ && statement == "" {
    if (mode == "man")
        flush_pages()
    pending = ""
    print_line("")
    next
}

function print_line(text) {
    if (mode == "doxygen")
        print text
}

{
    code = $0
    remark = ""
    at = index(code, "/*")
    if (at) {
        remark = text_of(read_comment(substr(code, at)))
        code = substr(code, 1, at - 1)
        sub(/[ \t]+$/, "", code)
    }
    # A remark behind a declaration takes the place of the comment above it, unless that is of a group
    # whose first declaration has a remark, too.
    if (statement == "" && depth == 0) {
        if (fresh)
            of_group = remark != ""
        fresh = 0
    }
    if (mode == "doxygen" && statement == "" && pending != "" && code !~ /^ *[}]/ &&
        code !~ /^#(ifndef|endif|include|if|else)/ && (remark == "" || of_group || depth > 0)) {
        print doxygen_block(pending, "/**")
        if (depth > 0)
            pending = ""
    }
    statement = statement (statement == "" ? "" : "\n") code
    depth += count(code, "{") - count(code, "}")
    ended = code ~ /[;{},]$/ || code ~ /^#/ || code ~ /^WG_(BEGIN|END)_DECLS/
    if (depth == 0 && code ~ /,$/)
        ended = 0
    if (mode == "doxygen") {
        if (remark != "" && code !~ /\{$/ && (ended || depth > 0))
            print code " " doxygen_remark(remark)
        else
            print code
    } else if (ended && (statement ~ /^WG_API/ && statement ~ /;$/ && statement !~ /\{/ ||
                         statement ~ /^static inline wg_tensor.*\{/) && match(statement, /wg_[a-z0-9_]+\(/)) {
        shared++
        names[shared] = substr(statement, RSTART, RLENGTH - 1)
        sub(/^(WG_API|static inline) */, "", statement)
        sub(/ *\{.*/, ";", statement)
        sub(/WG_COLD */, "", statement)
        sub(/ *WG_PRINTF\([^)]*\)/, "", statement)
        prototypes[shared] = statement
        remarks[shared] = remark
    }
    in_macro = code ~ /^#.*\\$/
    if (ended || (depth > 0 && remark != ""))
        statement = ""
}

END {
    if (mode == "man")
        flush_pages()
    if (mode == "doxygen" && group)
        print "/** @} */"
}
