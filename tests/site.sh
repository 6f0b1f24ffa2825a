#!/bin/sh
# Builds the site (docs/site/build.py) and checks that every internal link of it leads somewhere; checks
# the manual pages of the API with mandoc, too. Prints TAP.
. "$(dirname "$0")/cli/setup.sh"

quietly() {
    "$@" >out 2>err
}
missing=
for tool in pandoc doxygen /usr/bin/python3; do
    command -v $tool >/dev/null || missing="$missing $tool"
done
if test -n "$missing"; then
    skip "the site is built" "this needs$missing"
    skip "every internal link of the site leads somewhere" "this needs$missing"
else
    check "the site is built" quietly /usr/bin/python3 "$source/docs/site/build.py" site
    check "every internal link of the site leads somewhere" \
        quietly /usr/bin/python3 "$source/docs/site/build.py" --check site
    check "the search finds functions, headings and structs" eval \
        'grep -q "\"wg_softmax\"" site/search-index.js && grep -q "training.html#" site/search-index.js &&
         grep -q "\"wg_linear_options\"" site/search-index.js'
fi

# ---- Manual pages ----

man=$build/man3
all_functions() {
    awk -f "$source/tests/declared.awk" "$source"/*/*.h "$source"/*/*/*.h | grep '^function' |
        while read -r _ function; do
            test -s "$man/$function.3" || echo "no manual page: $function"
        done >out
    ! test -s out
}
check "every exported function has a manual page" all_functions
lint() {
    (cd "$build" && mandoc -Tlint -W warning man3/*.3) | grep -v 'so is fragile' >out 2>&1
    ! test -s out
}
if command -v mandoc >/dev/null; then
    check "mandoc finds nothing wrong with the manual pages" lint
else
    skip "mandoc finds nothing wrong with the manual pages" "there is no mandoc"
fi
finish
