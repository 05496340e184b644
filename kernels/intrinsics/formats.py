# SPDX-License-Identifier: BSD-3-Clause
"""The float formats of the polynomials: layout, split constants, and minimax coefficients."""

from typing import NamedTuple

from .terms import Term


class FloatFormat(NamedTuple):
    """The constants of one float format.

    The coefficients minimise the largest relative error of the function named by the field over its reduced
    range; a comment gives that error. A constant in several parts is their sum: the first parts have so few
    bits that their products with the integers that occur are exact.
    """

    mantissa: int  # stored bits
    bias: int  # of the exponent
    shifter: float  # 1.5 * 2**mantissa: adding it rounds to an integer, which the low bits then hold
    counter: int  # bits of 2**mantissa: "or" puts an integer >= 0 into the low bits of this float
    smallest_normal: float
    sqrt_half: int  # bits of the square root of 1/2
    log_2: tuple[float, float]
    log10_2: tuple[float, float]
    half_pi: tuple[float, float]
    exp_low: float  # below, exp is 0
    exp_high: float  # above, exp is infinite
    expm1_low: float  # below, expm1 is -1
    sinh_high: float  # above, sinh is infinite
    tanh_high: float  # above, tanh is 1
    erf_high: float  # above, erf is 1
    square_high: float  # above, x**2 + 1 is x**2
    angle_high: float  # above, arctan2 scales its operands, so that their sum stays finite
    cbrt_scale: float  # its cube, a power of two, brings subnormal numbers into the normal range
    exp: tuple[float, ...]  # (e**r - 1 - r) / r**2, |r| <= log(2) / 2
    log: tuple[float, ...]  # ((log(1 + s) - log(1 - s)) / s - 2) / z, z = s**2, |s| <= 0.1716
    sin: tuple[float, ...]  # (sin(r) / r - 1) / z, z = r**2, |r| <= pi / 4
    cos: tuple[float, ...]  # (cos(r) - 1 + z / 2) / z**2
    arctan: tuple[float, ...]  # (arctan(t) / t - 1) / z, z = t**2, |t| <= tan(pi / 8)
    arcsin: tuple[float, ...]  # (arcsin(t) / t - 1) / z, z = t**2, |t| <= 1/2
    erf: tuple[float, ...]  # erf(x) / x - 1, of x**2, |x| <= 1
    log_erfc: tuple[float, ...]  # log(1 - erf(x)), of x, 1 <= x <= erf_high
    cbrt: tuple[float, ...]  # (1 + d)**(-1/3), |d| <= 0.11


F32 = FloatFormat(
    mantissa=23,
    bias=127,
    shifter=12582912.0,
    counter=0x4B000000,
    smallest_normal=2.0**-126,
    sqrt_half=0x3F3504F3,
    log_2=(0.693145751953125, 1.428606765330187e-06),
    log10_2=(0.301025390625, 4.605039066518657e-06),
    half_pi=(1.5707963705062866, -4.371138828673793e-08),
    exp_low=-104.0,
    exp_high=89.0,
    expm1_low=-20.0,
    sinh_high=89.5,
    tanh_high=10.0,
    erf_high=4.0,
    square_high=2.0**13,
    angle_high=2.0**100,
    cbrt_scale=2.0**8,
    exp=(0.49999997, 0.166665435, 0.0416675173, 0.00836654287, 0.00138631929),  # 2**-26
    log=(0.666666627, 0.400009722, 0.284987807, 0.242794067),  # 2**-35
    sin=(-0.166666552, 0.00833218824, -0.000195180721),  # 2**-28
    cos=(0.0416666456, -0.00138873106, 2.44325383e-05),  # 2**-33
    arctan=(-0.333333164, 0.19998531, -0.142444685, 0.10599798, -0.0609167665),  # 2**-30
    arcsin=(0.166667536, 0.0749525279, 0.0454757996, 0.0241538882, 0.0422079861),  # 2**-27
    erf=(
        0.128379166, -0.37612626, 0.11283581, -0.0268535465, 0.00518774055, -0.000800463313, 7.8346995e-05,
    ),  # 2**-29
    log_erfc=(
        0.000189537939, -1.12958503, -0.633207679, -0.108430855, 0.0252154954, -0.00420706393,
        0.000441805809, -2.17237448e-05,
    ),  # 2**-35
    cbrt=(0.999997318, -0.333326787, 0.223982051, -0.174828336),  # 2**-18
)  # fmt: skip

F64 = FloatFormat(
    mantissa=52,
    bias=1023,
    shifter=6755399441055744.0,
    counter=0x4330000000000000,
    smallest_normal=2.0**-1022,
    sqrt_half=0x3FE6A09E667F3BCD,
    log_2=(0.6931471806019545, -4.2009150726810846e-11),
    log10_2=(0.3010299956658855, -1.9043128467164274e-12),
    half_pi=(1.5707963267948966, 6.123233995736766e-17),
    exp_low=-746.0,
    exp_high=710.0,
    expm1_low=-40.0,
    sinh_high=710.5,
    tanh_high=20.0,
    erf_high=6.0,
    square_high=2.0**28,
    angle_high=2.0**1000,
    cbrt_scale=2.0**18,
    exp=(
        0.5, 0.16666666666666677, 0.04166666666666651, 0.008333333333321653, 0.001388888888896203,
        0.0001984126988607621, 2.4801587173366375e-05, 2.755724425224002e-06, 2.755740181360789e-07,
        2.5109024938410886e-08, 2.0875622570800565e-09,
    ),  # 2**-60
    log=(
        0.6666666666666735, 0.3999999999941281, 0.285714287428342, 0.22222198524083267, 0.1818356704506868,
        0.1531397682758349, 0.14796727792968162,
    ),  # 2**-58
    sin=(
        -0.1666666666666663, 0.008333333333322005, -0.00019841269829496327, 2.7557313587962467e-06,
        -2.5050742365840903e-08, 1.5895908213297248e-10,
    ),  # 2**-56
    cos=(
        0.041666666666666595, -0.001388888888887288, 2.480158728874017e-05, -2.7557314146624726e-07,
        2.087569633442576e-09, -1.1358299551199918e-11,
    ),  # 2**-59
    arctan=(
        -0.333333333333332, 0.1999999999995382, -0.14285714280221662, 0.11111110784766355,
        -0.09090897796182842, 0.07692060906682122, -0.06663111927170795, 0.058479463165110095,
        -0.050395588648330186, 0.03807092691084393, -0.01791406540132948,
    ),  # 2**-59
    arcsin=(
        0.16666666666666763, 0.07499999999970303, 0.044642857175078925, 0.03038194268570802,
        0.022372215599838433, 0.017351601197206742, 0.01398094804215507, 0.011397886570917514,
        0.010785906116691666, 0.0036854019329970547, 0.021757748891223064, -0.021069152205116452,
        0.0326718020489611,
    ),  # 2**-58
    erf=(
        0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072886,
        0.00522397762478079, -0.0008548326978737888, 0.00012055331036744905, -1.4925593503236107e-05,
        1.6460972759425727e-06, -1.6350024622884217e-07, 1.465787588172751e-08, -1.13656509388007e-09,
        5.945236818271655e-11,
    ),  # 2**-56
    log_erfc=(
        -1.7797586529676376e-07, -1.1283773452884986, -0.6366284161257622, -0.10274745687754507,
        0.01907855451490026, 0.0002799155296028991, -0.001768371997727977, 0.0006406345107628069,
        -4.4458028496453597e-05, -7.056324859019049e-05, 4.512208117346439e-05, -1.65430148846683e-05,
        4.3349369280866234e-06, -8.522471355796339e-07, 1.2597549249165043e-07, -1.3658919415000293e-08,
        1.0283605111253746e-09, -4.809621597653405e-11, 1.0528515923364875e-12,
    ),  # 2**-56
    cbrt=(
        1.0000000062533576, -0.33333335625239435, 0.22221293888982374, -0.1728253986160461,
        0.14607073307714682, -0.12704997706708968,
    ),  # 2**-27
)  # fmt: skip


def format_of(x: Term) -> FloatFormat:
    """Return the format of a term."""
    return F32 if x.bits == 32 else F64
