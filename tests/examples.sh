#!/bin/sh
# Runs the examples and looks for what each is to show. Prints TAP, one result an example.
number=0
failed=0

# report NAME "what is wrong, or nothing"
report() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1: $2"
        failed=1
    fi
}

echo "1..1"

if ! shown=$(./examples/spiral); then
    report "spiral runs" "it failed"
else
    share=$(echo "$shown" | sed -n 's/^right on new points: \([0-9]*\).*/\1/p')
    [ "${share:-0}" -ge 97 ] && problem= || problem="only ${share:-no} % of new points are right"
    report "spiral tells new points apart" "$problem"
fi

exit $failed
