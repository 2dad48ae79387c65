#!/usr/bin/env python3
"""Chebyshev coefficients of src/ops/special_tables.inc, computed with mpmath: prints the file.

Each table approximates a smooth function of one variable on an interval that is mapped to [-1, 1]. Terms that no
float64 could see are cut. Run: python tools/gen_special_tables.py > src/ops/special_tables.inc
"""
import mpmath as mp

mp.mp.dps = 40


def chebyshev(f, lo, hi, n=48):
    """Coefficients c[0..] of f on [lo, hi] by interpolation at the Chebyshev nodes; c[0] is already halved."""
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)]
    values = [f((hi + lo) / 2 + (hi - lo) / 2 * t) for t in nodes]
    c = [2 * sum(v * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / n) for k, v in enumerate(values)) / n for j in range(n)]
    c[0] /= 2
    scale = max(abs(x) for x in c)
    last = max(j for j, x in enumerate(c) if abs(x) > scale * mp.mpf("3e-18"))
    return c[: last + 1]


def at0(f, x0):
    """f with a removable singularity at x0 stepped over."""
    return lambda x: f(x if abs(x - x0) > mp.mpf("1e-12") else x0 + mp.mpf("1e-12"))


def besselPQ(n, s):
    """P and s-scaled Q of the asymptotic form of J_n and Y_n at x = 5 / sqrt(s)."""
    x = 5 / mp.sqrt(s)
    chi = x - mp.pi * (2 * n + 1) / 4
    j, y, r = mp.besselj(n, x), mp.bessely(n, x), mp.sqrt(mp.pi * x / 2)
    return r * (j * mp.cos(chi) + y * mp.sin(chi)), r * (y * mp.cos(chi) - j * mp.sin(chi)) * x


def j_zero(n, k):
    return mp.besseljzero(n, k)


def j_smooth(n, s):
    x = mp.sqrt(s)
    f = mp.besselj(n, x) / (x if n else 1)
    return f / ((s - j_zero(n, 1) ** 2) * (s - j_zero(n, 2) ** 2))


def y0_smooth(s):
    x = mp.sqrt(s)
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)


def y1_smooth(s):
    x = mp.sqrt(s)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.besselj(1, x) * mp.log(x) - 1 / x)) / x


def k_smooth(n, s):
    x = mp.sqrt(s)
    if n == 0:
        return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)
    return (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x)) * x


def airy_osc(s, part):
    """Ai(-x) = x^(-1/4) / sqrt(pi) * (F sin(z + pi/4) - G cos(z + pi/4)), z = 2/3 x^1.5, s = 1/z^2; G scaled by z."""
    z = 1 / mp.sqrt(s)
    x = (z * 3 / 2) ** (mp.mpf(2) / 3)
    a, b, r, t = mp.airyai(-x), mp.airybi(-x), mp.sqrt(mp.pi) * mp.root(x, 4), z + mp.pi / 4
    if part == 0:
        return r * (a * mp.sin(t) + b * mp.cos(t))
    return r * (b * mp.sin(t) - a * mp.cos(t)) * z


def airy_dec(s):
    z = 1 / s
    x = (z * 3 / 2) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * 2 * mp.sqrt(mp.pi) * mp.root(x, 4) * mp.exp(z)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def erfcx_smooth(t):  # t = (x - 3) / (x + 3)
    x = 3 * (1 + t) / (1 - t)
    if x > 40:
        x2 = x * x
        term = total = mp.mpf(1)
        for k in range(1, 12):
            term *= -(2 * k - 1) / (2 * x2)
            total += term
        return total / (x * mp.sqrt(mp.pi)) * (x + mp.mpf(1) / 2)
    return erfcx(x) * (x + mp.mpf(1) / 2)


def ndtri_tail(z):  # z = 1 / r, tail probability q = exp(-r^2 / 2); x = r - log(r)/r - table * z
    r = 1 / z
    lq = -r * r / 2

    def log_tail(x):
        return mp.log(mp.erfc(x / mp.sqrt(2)) / 2)

    x = mp.findroot(lambda v: log_tail(v) - lq, r - mp.log(r) / r, tol=mp.mpf("1e-60"), verify=False, maxsteps=80)
    return (r - mp.log(r) / r - x) * r


# The modified functions decay or grow evenly; every asymptotic one is in c / x on [0, 1], started above zero where the
# function itself cannot be evaluated at infinity.
TINY = mp.mpf("1e-9")
TABLES = [
    ("i0e_near", lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 8),
    ("i0e_far", lambda u: mp.sqrt(8 / u) * mp.exp(-8 / u) * mp.besseli(0, 8 / u), mp.mpf("1e-4"), 1),
    ("i1e_near", at0(lambda x: mp.exp(-x) * mp.besseli(1, x) / x, 0), 0, 8),
    ("i1e_far", lambda u: mp.sqrt(8 / u) * mp.exp(-8 / u) * mp.besseli(1, 8 / u), mp.mpf("1e-4"), 1),
    ("k0_near", at0(lambda s: k_smooth(0, s), 0), 0, 4),
    ("k0_far", lambda u: mp.sqrt(2 / u) * mp.exp(2 / u) * mp.besselk(0, 2 / u), mp.mpf("1e-4"), 1),
    ("k1_near", at0(lambda s: k_smooth(1, s), 0), 0, 4),
    ("k1_far", lambda u: mp.sqrt(2 / u) * mp.exp(2 / u) * mp.besselk(1, 2 / u), mp.mpf("1e-4"), 1),
    ("j0_near", at0(lambda s: j_smooth(0, s), 0), 0, 25),
    ("j1_near", at0(lambda s: j_smooth(1, s), 0), 0, 25),
    ("y0_near", at0(y0_smooth, 0), 0, 25),
    ("y1_near", at0(y1_smooth, 0), 0, 25),
    ("p0_far", lambda s: besselPQ(0, s)[0], mp.mpf("1e-6"), 1),
    ("q0_far", lambda s: besselPQ(0, s)[1], mp.mpf("1e-6"), 1),
    ("p1_far", lambda s: besselPQ(1, s)[0], mp.mpf("1e-6"), 1),
    ("q1_far", lambda s: besselPQ(1, s)[1], mp.mpf("1e-6"), 1),
    ("airy_mid", mp.airyai, -3, 3),
    ("airy_f", lambda s: airy_osc(s, 0), mp.mpf("1e-6"), mp.mpf("0.09")),
    ("airy_g", lambda s: airy_osc(s, 1), mp.mpf("1e-6"), mp.mpf("0.09")),
    ("airy_dec", airy_dec, mp.mpf("1e-3"), mp.mpf("0.3")),
    ("erfcx", at0(erfcx_smooth, 1), -1, 1),
    ("ndtri_near", ndtri_tail, mp.mpf(1) / 8, mp.mpf(1) / 2),
    ("ndtri_far", ndtri_tail, mp.mpf(1) / 64, mp.mpf(1) / 8),
]


def main():
    print("// Chebyshev tables of special.c: made by tools/gen_special_tables.py, not edited by hand.")
    print("// TT_CHEB(name, low, high, coefficients…)")
    for name, f, lo, hi in TABLES:
        c = chebyshev(f, lo, hi)
        print(f"TT_CHEB({name}, {mp.nstr(mp.mpf(lo), 17)}, {mp.nstr(mp.mpf(hi), 17)},")
        text = ", ".join(mp.nstr(x, 18, min_fixed=1, max_fixed=0) for x in c)
        line = "       "
        for item in text.split(", "):
            if len(line) + len(item) + 2 > 118:
                print(line)
                line = "       "
            line += " " + item + ","
        print(line.rstrip(",") + ")")
    for n in (0, 1):
        for k in (1, 2):
            print(f"#define J{n}_ZERO_{k}_SQUARED {mp.nstr(j_zero(n, k) ** 2, 20)}")


if __name__ == "__main__":
    main()
