#!/bin/sh
# Holds the floors, which docs/design.md lists from the bottom to the top:
#
#   includes   a file includes its own floor and those below, never one above
#   symbols    no object file uses a symbol that a floor above defines; with the order of the floors
#              this also rules out circles of calls. A callback is no use of a symbol.
#   names      only models/ and objectives/ name a model or an objective, but for the words that
#              names_allowed lists
#   unique     the library and the command, which may be linked statically, define each external name
#              in one file, and the library's begin with wg_; each type wg_ is defined in one file
#   drawings   no line of a drawing in a comment has become a line of prose, as clang-format makes it
#
#   tests/floors.sh [TREE [BUILD]]
#
# TREE is the tree to look at, by default the one that this script is in. BUILD has its object files,
# by default the working directory or TREE/build; without them the symbols are skipped. Prints TAP,
# and for each fault a line with its file.
tree=${1:-$(dirname "$0")/..}
build=${2:-$PWD}
cd "$tree" || exit 1
test -f "$build/config.status" || test $# -gt 1 || build=$PWD/build

floors='base tensor autograd nn optim gradcheck io data train models objectives formats cli bench'

# The uses of symbols of a floor above: the command's table of verbs has the entries of `bench' and `plan'.
symbols_allowed='wg__verb_bench wg__verb_plan'

# Names that a folder must say, as FILE WORD: file formats that are called so or store the word, the
# data set SQuAD, the verb `translate' and the cases of the benchmarks.
names_allowed='formats/gguf.c llama
formats/internal.h llama
formats/gguf_tokenizer.c gpt
formats/gguf_tokenizer.c gpt2
formats/gguf_tokenizer.c llama
formats/llama2c.c llama
data/dataset/squad.c squad
data/dataset/examples.h squad
data/score/score.h squad
data/score/squad_score.c squad
data/tokenizer/added_tokens.c translation
data/tokenizer/kind.h translation
data/tokenizer/bpe.c gpt2
data/tokenizer/kind.h gpt2
data/tokenizer/files.c gpt2
data/tokenizer/huggingface.c bert
data/tokenizer/huggingface_write.c bert
data/tokenizer/huggingface_write.c gpt2
data/tokenizer/llama2c.c llama
cli/translate.c translation'

number=0
failed=0

# report FAULTS TITLE: one result; fails if there are faults, a line each.
report() {
    number=$((number + 1))
    if test -z "$1"; then
        echo "ok $number - $2"
    else
        echo "$1" | sed 's/^/# /'
        echo "not ok $number - $2"
        failed=1
    fi
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

sources_of() {
    find "$1" -name '*.[ch]' 2>/dev/null | LC_ALL=C sort
}

# floors_above FLOOR: the names of the floors above it, each followed by a blank.
floors_above() {
    echo " $floors " | sed "s/.* $1 //"
}

# ---- Includes ----

# Prints file:line: include for each include of a floor above. The umbrella header has all floors, so
# only the command and the benchmarks may include it.
wrong_includes() {
    above=$(floors_above "$1" | sed 's/ $//; s/ /|/g')
    case $1 in
    cli | bench) pattern="(wengert/|(\.\./)*)(${above:-none})/" ;;
    *) pattern="((wengert/|(\.\./)*)($above)/|.*wengert\.h)" ;;
    esac
    sources_of "$1" | xargs grep -nHE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$pattern"
}

# ---- Symbols ----

# The object files of a floor's sources: libtool's (FOLDER/.libs/LIBRARY_la-NAME.o) and the command's.
# Both have an object of base/system.c, of which the library's counts.
objects_of() {
    sources_of "$1" | sed -n 's/\.c$//p' | while read -r stem; do
        for object in "$build/${stem%/*}/.libs"/*_la-"${stem##*/}.o" \
            "$build/${stem%/*}"/*_la-"${stem##*/}.o" "$build/$stem.o"; do
            test ! -f "$object" || test "$object" = "$build/base/system.o" || echo "$object"
        done
    done
}

# Prints `FLOOR OBJECT SYMBOL defines|uses' for all external symbols except those of compilers.
symbols() {
    for floor in $floors; do
        objects_of "$floor" | xargs -r nm -A -g -P 2>/dev/null |
            awk -v floor="$floor" -v build="$build/" '
                $2 !~ /^_/ {
                    sub(/:$/, "", $1)
                    print floor, substr($1, length(build) + 1), $2, $3 ~ /[Uwv]/ ? "uses" : "defines"
                }'
    done
}

# wrong_symbols FLOOR FILE: prints the uses of symbols that only floors above define.
wrong_symbols() {
    awk -v floor="$1" -v order="$floors" -v allowed=" $symbols_allowed " '
        BEGIN { n = split(order, names, " "); for (i = 1; i <= n; i++) level[names[i]] = i }
        NR == FNR {
            if ($4 == "defines" && !(($3 in lowest) && level[lowest[$3]] <= level[$1]))
                lowest[$3] = $1
            next
        }
        $1 == floor && $4 == "uses" && ($3 in lowest) && level[lowest[$3]] > level[floor] &&
            !index(allowed, " " $3 " ") { print $2 " uses " $3 ", which " lowest[$3] "/ defines" }
    ' "$2" "$2"
}

# ---- Unique names ----

# Prints the external names that are defined twice, and those of the library without the prefix. A
# kernel that is compiled for several instruction sets has another name in each.
wrong_definitions() {
    awk '$4 == "defines" && ($3 in object) { print $3 " is defined in " object[$3] " and " $2 }
         $4 == "defines" { object[$3] = $2 }
         $4 == "defines" && $1 != "cli" && $1 != "bench" && $3 !~ /^wg_/ {
             print $2 " defines " $3 ", which does not begin with wg_"
         }' "$1"
}

# Prints the tags and the type names with wg_ that two files define.
wrong_types() {
    # shellcheck disable=SC2086
    for floor in $floors; do sources_of "$floor"; done | xargs awk '
        function define(kind, name) {
            if (((kind name) in file) && file[kind name] != FILENAME)
                print kind name " is defined in " file[kind name] " and " FILENAME
            file[kind name] = FILENAME
        }
        match($0, /(struct|union|enum) wg_[a-z0-9_]+ \{/) {
            split(substr($0, RSTART, RLENGTH), part, " "); define("tag ", part[2])
        }
        match($0, /^\} wg_[a-z0-9_]+;/) { define("type ", substr($0, 3, RLENGTH - 3)) }
        /^typedef / && match($0, /\(\*wg_[a-z0-9_]+\)/) { define("type ", substr($0, RSTART + 2, RLENGTH - 3)) }
        /^typedef [a-z0-9_ ]+ \*?wg_[a-z0-9_]+;/ && $2 != "struct" && $2 != "union" {
            name = $NF; gsub(/[*;]/, "", name); define("type ", name)
        }'
}

# ---- Names of models and objectives ----

# The names in the records of models/*.c and objectives/*.c, one a line: `.name = "bert"' and
# `.model_type = "gpt2"' of a wg_model_type or wg_objective, but for that of the task `tokens', which is
# a word of every folder. Without records: a fixed list.
names() {
    found=$(cat models/*.c objectives/*.c 2>/dev/null | awk '
        /^(static )?const wg_(model_type|objective) [a-z0-9_]+ = \{/ { inside = 1 }
        /^\};/ { inside = 0 }
        inside && /^    \.(name|model_type) = "/ { split($0, part, "\""); print part[2] }')
    echo "${found:-bert gpt gpt2 glm llama t5 transformer mlm cloze squad translation classification
        question_answering blank_infilling language_modeling}" | tr -s ' ' '\n' | grep -vx tokens | LC_ALL=C sort -u
}

# Prints file:line: text for each line of a floor that names one, outside of comments, includes and
# sentences (string literals with a blank). Words end at underscores: wg_bert_new names bert.
wrong_names() {
    pattern=$(names | tr 'A-Z\n' 'a-z|' | sed 's/|$//; s/^|//; s/[-_]/[-_]/g')
    sources_of "$1" | xargs awk -v pattern="$pattern" -v allowed="$names_allowed" '
        BEGIN {
            n = split(allowed, rows, "\n")
            for (i = 1; i <= n; i++) exempt[rows[i]] = 1
            word = "(^|[^a-z0-9])(" pattern ")([^a-z0-9]|$)"
        }
        FNR == 1 { comment = 0 }
        {
            rest = $0; code = ""
            while (rest != "") {
                at = index(rest, comment ? "*/" : "/*")
                if (!comment) code = code (at ? substr(rest, 1, at - 1) : rest)
                if (!at) break
                rest = substr(rest, at + 2); comment = !comment
            }
            if (code ~ /^[ \t]*#[ \t]*include/) next
            count = split(code, text, "\"")
            code = text[1]
            for (i = 2; i <= count; i++) code = code "\"" (i % 2 == 0 && text[i] ~ / / ? "" : text[i])
            code = tolower(code)
            while (match(code, word)) {
                name = substr(code, RSTART, RLENGTH)
                gsub(/^[^a-z0-9]|[^a-z0-9]$/, "", name)
                if (!((FILENAME " " name) in exempt)) { print FILENAME ":" FNR ": " $0; next }
                code = substr(code, RSTART + RLENGTH - 1)
            }
        }'
}

# ---- Drawings ----

# Prints file:line: text for each comment line that begins like prose, and has a box's edge or stands
# between two indented lines without a blank line.
joined_drawings() {
    for folder in $floors; do sources_of "$folder"; done | xargs awk '
        function kind(line) {
            return line ~ /^ *\*     +[^ ]/ ? "drawing" : line ~ /^ *\* [^ ]/ ? "prose" : "other"
        }
        FNR == 1 { before = last = "other" }
        {
            now = kind($0)
            if (now == "prose" && /\+--|--\+/)
                print FILENAME ":" FNR ": " $0
            else if (before == "drawing" && last == "prose" && now == "drawing")
                print FILENAME ":" FNR - 1 ": " text
            before = last
            last = /\*\// ? "other" : now
            text = $0
        }'
}

# ---- The tests ----

for floor in $floors; do
    if test -d "$floor"; then
        report "$(wrong_includes "$floor")" "$floor/ includes no floor above"
    else
        skip "$floor/ includes no floor above" 'there is no such folder'
    fi
done

table=$(mktemp)
trap 'rm -f "$table"' EXIT
symbols >"$table"
if test -s "$table"; then
    for floor in $floors; do
        report "$(wrong_symbols "$floor" "$table")" "$floor/ uses no symbol of a floor above"
    done
    report "$(wrong_definitions "$table")" 'each external name is defined once'
else
    skip 'no folder uses a symbol of a floor above' 'there are no object files'
fi
report "$(wrong_types)" 'each type is defined once'
report "$(joined_drawings)" 'no drawing is joined with prose'

for floor in $floors; do
    case $floor in models | objectives) continue ;; esac
    report "$(wrong_names "$floor")" "$floor/ names no model and no objective"
done

echo "1..$number"
exit $failed
