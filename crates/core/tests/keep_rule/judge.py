#!/usr/bin/env python3
"""The keep rule as it was simulated when it was designed: the peer that the rule is held against.

    judge.py STREAMS        one loop per line of that file (JSON); its trace per line of the output

A trace is a letter per run, `i` or `c` for the arm that was wanted, with `+` behind the run that
led to a keep and `-` behind the one that led to a revert; then where the loop stands: reference and
its readings (12 at most), standard deviation of one run and its degrees of freedom, purse. Sums are plain
left-to-right additions and squares plain products, as in the rule. Needs nothing but Python.
"""

import json
import math
import sys

CLIP = 2.5
# The h with h = E[min(Z^2, CLIP^2 h)] for a standard normal Z.
CLIP_VAR = 0.9755803856098227


def normal_upper_quantile(p):
    """z with P(N > z) = p (Acklam's rational approximation)."""
    p = min(max(p, 1e-300), 1 - 1e-16)
    a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.3577518672690, -30.66479806614716, 2.506628277459239]
    b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572]
    c = [-.007784894002430293, -.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783]
    d = [.007784695709041462, .3224671290700398, 2.445134137142996, 3.754408661907416]
    if p < .02425 or p > 1 - .02425:
        t = math.sqrt(-2 * math.log(p if p < .5 else 1 - p))
        x = (((((c[0]*t+c[1])*t+c[2])*t+c[3])*t+c[4])*t+c[5]) / ((((d[0]*t+d[1])*t+d[2])*t+d[3])*t+1)
        return -x if p < .5 else x
    u = p - .5
    r = u * u
    return -((((((a[0]*r+a[1])*r+a[2])*r+a[3])*r+a[4])*r+a[5])*u / (((((b[0]*r+b[1])*r+b[2])*r+b[3])*r+b[4])*r+1))


def t_to_z(t, df):
    """Wallace (1959): normal deviate with (almost) the tail probability of Student's t."""
    df = max(df, .5)
    sign = (t > 0) - (t < 0)
    return sign * math.sqrt(df * math.log1p(t * t / df)) * (8 * df + 1) / (8 * df + 3)


class Judge:
    """Ask want(), run that tree once, feed() the value; feed returns keep, revert or None."""

    def __init__(j, doubt=.1, pairs=24, first_bar=.5, coarse=False, identical=2):
        j.doubt, j.pairs, j.first_bar, j.coarse, j.identical = doubt, pairs, first_bar, coarse, identical
        j.purse = .6 * doubt
        j.ref = 0.
        j.nref = 0
        j.last3 = [0., 0., 0.]
        j.since = 0
        j.era = 0
        j.refreshed = False
        j.ss = 0.
        j.df = 0.
        j.grain = math.inf
        j.prev = None
        j.noisy = False
        j.same = 0
        j.phase = "baseline"

    def seed_noise(j, values):
        total = 0.
        for v in values:
            total += v
        m = total / len(values)
        squares = 0.
        for v in values:
            squares += (v - m) * (v - m)
        j.ss += squares
        j.df += len(values) - 1
        if len(set(values)) > 1:
            j.noisy = True
        else:
            j.same += len(values) - 1

    def noise(j):
        if j.df <= 0:
            return None
        return max(math.sqrt(j.ss / max(j.df, 1) / CLIP_VAR), .3 * j.grain if j.grain < math.inf else 0.)

    def pool(j, r2, sd):
        if j.df >= 3:
            r2 = min(r2, (CLIP * sd) * (CLIP * sd))
        f = 39 / 40 if j.df >= 40 else 1.
        j.ss = j.ss * f + r2
        j.df = j.df * f + 1

    def want(j):
        if j.phase == "baseline":
            return "incumbent"
        if j.phase == "duel":
            return "incumbent" if j.step % 4 in (1, 2) else "candidate"
        if j.noisy and not j.refreshed and (j.nref < min(1 + .5 * math.sqrt(j.era), 12) or j.since >= 12):
            return "incumbent"
        return "candidate"

    def feed(j, y):
        who = j.want()
        dueling = j.phase == "duel"
        ref0 = j.ref
        if j.prev is not None and y != j.prev:
            j.grain = min(j.grain, abs(y - j.prev))
        j.prev = y
        sd = j.noise()
        if who == "incumbent":
            step = y - j.ref
            if j.nref >= 3 and j.df >= 3 and sd is not None:
                step = max(-3 * sd, min(3 * sd, step))
            j.last3 = [j.last3[1], j.last3[2], ref0 + step]
            j.ref += step / min(j.nref + 1, 12)
            j.nref += 1
            f3 = (j.last3[0] + j.last3[1] + j.last3[2]) / 3
            if j.nref >= 5 and j.df >= 3 and abs(f3 - j.ref) > 2 * sd * math.sqrt(1/3 + 1/min(j.nref, 12)):
                j.ref, j.nref = f3, 3
            j.since = 0
            if j.phase == "baseline":
                j.phase = "open"
                return None
            if not dueling:
                j.refreshed = True
                return None
        else:
            j.since += 1
        ne = min(j.nref, 12)
        if not dueling:
            if j.noisy and j.df > 0 and sd > 0:
                z1 = (j.ref - y) / (sd * math.sqrt(1 + 1 / ne))
                go = z1 > j.first_bar
            else:
                z1 = 1. if y < j.ref else -9.
                go = z1 > 0
            if not go:
                return j.end(False)
            if not j.noisy and j.same >= j.identical:
                return j.end(True, y, 1)
            j.x1 = y
            j.stake = j.purse * min(.25 * math.exp(min(z1 - 1, 5)), .4)
            j.purse -= j.stake
            j.phase = "duel"
            j.step = 0
            j.sc = 0.
            j.nc = 0
            j.sdiff = 0.
            j.np = 0
            return None
        j.step += 1
        if who == "candidate":
            j.sc += y
            j.nc += 1
        if not j.noisy:
            if y == (j.x1 if who == "candidate" else ref0):
                j.same += 1
                if j.same >= (j.identical if j.coarse else 1):
                    return j.end(True, j.x1, max(math.ceil(j.nc / 2), 1))
            else:
                j.noisy = True
        full = j.step % 2 == 0
        if not full:
            j.cur = y
        keep = drop = False
        if full:
            d = j.cur - y if who == "candidate" else y - j.cur
            if j.noisy:
                if j.np >= 1:
                    off = d - j.sdiff / j.np
                    j.pool(off * off / 2 * j.np / (j.np + 1), sd)
                if j.df >= 3 and sd is not None:
                    lim = CLIP * sd * math.sqrt(2)
                    d = max(-lim, min(lim, d))
                j.sdiff += d
                j.np += 1
        sd = j.noise()
        if not j.noisy:
            return None
        if full and j.df > 0:
            m = j.sdiff / j.np
            z = t_to_z(m / (sd * math.sqrt(2 / j.np)), j.df) if sd > 0 else (99. if m > 0 else -99.)
            keep = z > normal_upper_quantile(min(j.stake * max(.25, 1 / math.sqrt(j.pairs)), .5))
        if not keep:
            ne = min(j.nref, 12)
            n = j.nc + 1
            if j.df >= 2 and j.nc >= 1 and sd > 0:
                drop = (j.ref - (j.x1 + j.sc) / n) / (sd * math.sqrt(1 / ne + 1 / n)) < .75 + .3 * math.log(n / 2)
            drop = drop or (full and ((j.np >= 4 and j.sdiff < 0) or j.np >= j.pairs))
        if keep:
            j.purse += min(.5, 1.5 * j.doubt)
            return j.end(True, j.sc / j.nc + .5 * sd / math.sqrt(j.nc), math.ceil(j.nc / 2))
        return j.end(False) if drop else None

    def end(j, kept, ref=None, n=None):
        if kept:
            j.ref, j.nref, j.era, j.last3 = ref, n, 0, [ref] * 3
        else:
            j.era += 1
        j.purse += .4 * j.doubt / 60
        j.refreshed = False
        j.phase = "open"
        return "keep" if kept else "revert"


def trace(stream):
    """One loop: each candidate moves the mean by its effect; a kept one moves it for good."""
    judge = Judge(stream["doubt"], stream["pairs"], stream["first_bar"], stream["coarse"], stream["identical"])
    if stream["noise"]:
        judge.seed_noise([float(v) for v in stream["noise"]])
    mean, quantum, effects = float(stream["level"]), float(stream["quantum"]), stream["effects"]
    trial, letters = 0, []
    for e in stream["runs"]:
        effect = float(effects[trial % len(effects)])
        want = judge.want()
        y = (mean - effect if want == "candidate" else mean) + float(e)
        if quantum:
            y = math.floor(y / quantum + .5) * quantum
        verdict = judge.feed(y)
        letters.append(want[0])
        if verdict:
            trial += 1
            letters.append("+" if verdict == "keep" else "-")
        if verdict == "keep":
            mean -= effect
    sd = judge.noise()
    stands = [judge.ref, min(judge.nref, 12), 0. if sd is None else sd, judge.df, judge.purse]
    return " ".join(["".join(letters)] + [repr(float(number)) for number in stands])


def main():
    with open(sys.argv[1], encoding="ascii") as streams:
        for line in streams:
            print(trace(json.loads(line)))


if __name__ == "__main__":
    main()
