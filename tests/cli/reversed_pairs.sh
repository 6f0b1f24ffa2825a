# shellcheck shell=sh
# Sentences and their translations for scripts that train the Transformer; they source this file.

# write_pairs COUNT SEED NAME: sentences of two to four words in NAME.from, and the same words in
# reverse in NAME.to.
write_pairs() {
    awk -v count="$1" -v seed="$2" -v name="$3" 'BEGIN {
        words = split("red blue green one two cat dog fish", word, " ")
        for (i = 0; i < count; i++) {
            from = to = ""
            for (k = 0; k < 2 + i % 3; k++) {
                seed = (seed * 1103515245 + 12345) % 2147483648
                w = word[1 + int(seed / 65536) % words]
                from = from (from ? " " : "") w
                to = w (to ? " " : "") to
            }
            print from > (name ".from")
            print to > (name ".to")
        }
    }'
}
