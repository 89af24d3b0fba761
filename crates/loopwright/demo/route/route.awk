# A courier's round: reads the stops, prints the order to visit them in, one number a line.
#
# Every line of the input is a stop: its number, where it lies (x, y), and the distance by which it
# is due, or `-`. Stop 0 is the depot, where the round begins and ends; it isn't printed.

/^#/ { next }
{ x[$1] = $2; y[$1] = $3; due[$1] = $4; if ($1 > last) last = $1 }

END {
    plan()
    for (i = 1; i <= last; i++) print order[i]
}

# Sweeps the town in strips, up one and down the next.
function plan(    i, k) {
    for (i = 1; i <= last; i++) {
        for (k = i; k > 1 && place(i) < place(order[k - 1]); k--) order[k] = order[k - 1]
        order[k] = i
    }
}

# Where a stop comes in the sweep.
function place(stop,    strip) {
    strip = int(x[stop] / 20)
    return 1000 * strip + (strip % 2 ? 999 - y[stop] : y[stop])
}
