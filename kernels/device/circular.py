# SPDX-License-Identifier: BSD-3-Clause
"""Sine, cosine and tangent of huge numbers as plain Python, for devices, which have no C library.

Note [digits of pi]
The product of x and 2 / pi, without multiples of 4, tells the quarter of the circle and the angle in it. Whole turns
are left out before anything is rounded: x is a whole number of 53 bits times a power of 2, and 2 / pi has digits of 26
bits. Those digits whose products with x are multiples of 4 are skipped (M. Payne and R. Hanek, Radian reduction for
trigonometric functions, 1983). Each product has up to 53 bits, so it is exact. A float64 is never nearer to a multiple
of pi / 2 than 2**-62; even then, eight digits leave more than 60 bits.
"""

from collections.abc import Callable

_DIGITS = (  # of 2 / pi
    42722829,
    48555073,
    21659401,
    56087029,
    13858563,
    28715353,
    38736100,
    4324945,
    26128250,
    62674459,
    29957006,
    37899730,
    58726692,
    49193117,
    6588223,
    35515164,
    46442140,
    65964067,
    24988590,
    54822121,
    41009306,
    54917092,
    5137525,
    37323603,
    15192690,
    4585659,
    58608142,
    52426903,
    67074070,
    25231090,
    63202006,
    34237727,
    28629499,
    15891632,
    40752081,
    37709470,
    25143477,
    55737260,
    33225084,
    24853767,
    15195689,
    19476134,
    50255852,
    18845021,
    2185228,
    50622407,
)

_SINE = (
    -1 / 6,
    1 / 120,
    -1 / 5040,
    1 / 362880,
    -1 / 39916800,
    1 / 6227020800,
    -1 / 1307674368000,
    1 / 355687428096000,
)
_COSINE = (1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200, 1 / 20922789888000,
           -1 / 6402373705728000)  # fmt: skip
_HALF_PI, _REST = 1.5707963267948966, 6.123233995736766e-17
_UPPER_HALF_PI = 1.5707963109016418  # 27 bits
_LOWER_HALF_PI = _HALF_PI - _UPPER_HALF_PI
_SPLIT = 134217729.0  # 2**27 + 1
_SINE_OF, _COSINE_OF, _TANGENT_OF = 0, 1, 2
_INFINITY, _NAN = float("inf"), float("nan")


def _circular(kind: int) -> Callable[[float], float]:
    """Return the sine, cosine or tangent as one function, because a device's functions call no others."""

    def function(x: float) -> float:
        size = abs(float(x))
        if size == 0.0:
            return 1.0 if kind == _COSINE_OF else x
        if not size < _INFINITY:
            return _NAN
        exponent, unit = 0, 67108864.0  # 2**26
        while size >= 9007199254740992.0:
            size, unit, exponent = size * 0.5, unit * 2.0, exponent + 1
        while size < 4503599627370496.0:
            size, unit, exponent = size * 2.0, unit * 0.5, exponent - 1
        whole = int(size)
        high, low = float(whole >> 26), float(whole & 0x3FFFFFF)
        first = (exponent - 2) // 26 if exponent > 2 else 0
        for _ in range(first + 1):
            unit *= 1.4901161193847656e-08  # 2**-26; at the end that of the upper half times the first digit
        quarter, angle, lost = 0, 0.0, 0.0  # the angle, in quarters of the circle, is angle + lost
        for number in range(16):
            part = (high if number % 2 == 0 else low) * float(_DIGITS[first + number // 2])
            if number % 2:
                unit *= 1.4901161193847656e-08  # 2**-26
            if unit < 4.0:
                part *= unit
                part -= 4.0 * float(int(part * 0.25))
                total = angle + part
                back = total - angle
                lost += (angle - (total - back)) + (part - back)
                angle = total + lost
                back = angle - total
                lost = (total - (angle - back)) + (lost - back)
                turns = int(angle + 0.5)
                angle -= float(turns)
                quarter += turns
        # The product with pi / 2, and what is lost when it is rounded.
        r = angle * _HALF_PI
        scaled = _SPLIT * angle
        upper = scaled - (scaled - angle)
        lower = angle - upper
        error = (upper * _UPPER_HALF_PI - r) + upper * _LOWER_HALF_PI + lower * _UPPER_HALF_PI
        error += lower * _LOWER_HALF_PI + angle * _REST + lost * _HALF_PI
        z = r * r
        sine, cosine = 0.0, 0.0
        for number in range(7, -1, -1):
            sine = sine * z + _SINE[number]
            cosine = cosine * z + _COSINE[number]
        sine = r + (r * (z * sine) + error * (1.0 - 0.5 * z))
        rounded = 1.0 - 0.5 * z
        cosine = rounded + (((1.0 - rounded) - 0.5 * z) + (z * z * cosine - error * r))
        if x < 0.0:
            sine, quarter = -sine, -quarter
        if kind == _TANGENT_OF:
            return sine / cosine if quarter % 2 == 0 else -cosine / sine
        quarter = (quarter + kind) % 4
        result = sine if quarter % 2 == 0 else cosine
        return result if quarter < 2 else -result

    return function


sin, cos, tan = _circular(_SINE_OF), _circular(_COSINE_OF), _circular(_TANGENT_OF)
