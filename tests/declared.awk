# Prints what public headers export, `function NAME' or `data NAME' in each line.
BEGIN { RS = ";" }
sub(/.*WG_API/, "") {
    if (match($0, /wg_[a-z0-9_]*\(/)) {
        print "function " substr($0, RSTART, RLENGTH - 1)
        next
    }
    sub(/[a-z_]*wg_[a-z0-9_]+/, "") # the type
    for (; match($0, /[a-z_]*wg_[a-z0-9_]+/); $0 = substr($0, RSTART + RLENGTH))
        print "data " substr($0, RSTART, RLENGTH)
}
