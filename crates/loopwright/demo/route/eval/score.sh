# The referee: lets route.awk plan the round, checks that it is one, and prints
#
#   length=…   how long it is, in blocks (the metric: less is better)
#   late=…     how many express parcels come later than they are due (the guard)
#
# A round that leaves out a stop, visits one twice or invents one has no length: exit status 1.
# Run it from the project's top directory: sh eval/score.sh

# Where loopwright would look for a result is nobody's business but the referee's.
order=$(unset LOOPWRIGHT_RESULT; awk -f route.awk eval/stops.txt) || {
    echo "score: route.awk failed" >&2
    exit 1
}

printf '%s\n' "$order" | awk '
    function size(number) { return number < 0 ? -number : number }
    function way(a, b) { return size(x[a] - x[b]) + size(y[a] - y[b]) }
    function refuse(why) { print "score: " why; refused = 1; exit 1 }

    # The first file: the stops.
    NR == FNR && /^#/ { next }
    NR == FNR { x[$1] = $2; y[$1] = $3; due[$1] = $4; if ($1 > last) last = $1; next }

    # The second: the round.
    !($0 in x) || $0 == 0 { refuse("there is no stop `" $0 "`") }
    $0 in seen { refuse("stop " $0 " is visited twice") }
    {
        seen[$0] = 1
        driven += way(here + 0, $0)
        here = $0
        if (due[here] != "-" && driven > due[here]) late++
    }

    END {
        if (refused) exit 1
        for (i = 1; i <= last; i++) if (!(i in seen)) { print "score: stop " i " is left out"; exit 1 }
        driven += way(here + 0, 0)
        printf "length=%d\nlate=%d\n", driven, late
    }
' eval/stops.txt -
