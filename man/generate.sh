#!/bin/sh
# Writes the man pages, wengert.1 and one for each verb, out of what the command's --help says.
#
#   man/generate.sh WENGERT FOLDER
set -eu
wengert=$1
folder=$2

# Reads a --help and writes its synopsis, description and options as roff.
to_roff() {
    awk '
    function escaped(text) {
        gsub(/\\/, "\\e", text)
        gsub(/-/, "\\-", text)
        sub(/^\./, "\\\\\\&.", text)
        sub(/^'\''/, "\\\\\\&'\''", text)
        return text
    }
    function say(text) {
        if (parted && (state == "description" || state == "after"))
            print ".PP"
        parted = 0
        print escaped(text)
    }

    # "Usage: wengert fill [OPTION...] ..." and "  or:  ..."
    state == "" && /^(Usage: |  or:  )/ {
        if (NR == 1)
            print ".SH SYNOPSIS"
        else
            print ".br"
        say(substr($0, 8))
        next
    }
    state == "" { state = "description"; print ".SH DESCRIPTION" }

    # Blank lines part the description, the options and what is said after them.
    /^$/ { parted = 1; next }
    /^  +-/ && state != "after" {
        if (state != "options") { state = "options"; print ".SH OPTIONS" }
        print ".TP"
        match($0, /^ +/)
        rest = substr($0, RLENGTH + 1)
        text = ""
        if (match(rest, /   */)) {
            text = substr(rest, RSTART + RLENGTH)
            rest = substr(rest, 1, RSTART - 1)
        }
        print ".B " escaped(rest)
        if (text != "")
            say(text)
        next
    }
    /^ [A-Z].*:$/ && state != "after" {
        if (state != "options") { state = "options"; print ".SH OPTIONS" }
        print ".SS " escaped(substr($0, 2, length($0) - 2))
        next
    }
    state == "options" && /^    / { sub(/^ +/, ""); say($0); next }
    state == "options" { state = "after"; parted = 0; print ".SH NOTES" }
    # What is indented stays as it is laid out.
    /^ / { print ".nf"; say($0); print ".fi"; next }
    { say($0) }
    '
}

page() {
    printf '.\\" Written by man/generate.sh out of --help; do not edit.\n'
    printf '.TH %s 1 "" wengert "User Commands"\n' "$(echo "$1" | tr a-z A-Z)"
    printf '.SH NAME\n%s \\- %s\n' "$1" "$2"
}

verbs=$("$wengert" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1 \2/p')
test -n "$verbs" || { echo "man/generate.sh: $wengert --help lists no verbs" >&2; exit 1; }

{
    page wengert 'train and run transformers on the CPU, and check gradients'
    "$wengert" --help | sed '/^Verbs:/,$d' | to_roff
    echo '.SH VERBS'
    echo "$verbs" | while read -r verb purpose; do
        printf '.TP\n.BR wengert\\-%s (1)\n%s\n' "$verb" "$purpose"
    done
    cat <<'END'
.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
Failure; one line on standard error says of what.
.TP
.B 2
Wrong usage.
.TP
.B 128 + signal
A training was stopped by that signal; it finished its step and saved.
END
} >"$folder/wengert.1"

echo "$verbs" | while read -r verb purpose; do
    {
        page "wengert-$verb" "$purpose"
        "$wengert" "$verb" --help | to_roff
        printf '.SH SEE ALSO\n.BR wengert (1)\n'
    } >"$folder/wengert-$verb.1"
done

# A bench is a verb of `wengert bench`.
"$wengert" bench --help | sed -n '/^Benches:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1 \2/p' |
    while read -r bench purpose; do
        {
            page "wengert-bench-$bench" "$purpose"
            "$wengert" bench "$bench" --help | to_roff
            printf '.SH SEE ALSO\n.BR wengert-bench (1)\n'
        } >"$folder/wengert-bench-$bench.1"
    done
