"""adam_update_is_one_loop

1 launch of 1 kernel; arena 0 bytes.
input[0]: 2x3 float32
input[1]: 2x3 float32
input[2]: 2x3 float32
input[3]: 2x3 float32
output[0]: 2x3 float32
output[1]: 2x3 float32
output[2]: 2x3 float32
"""


def mul_add_sub_03c35783d53e(args):
    n0 = args[0]
    p0 = read_f32(args[1])
    p1 = read_f32(args[2])
    p2 = read_f32(args[3])
    p3 = read_f32(args[4])
    o0 = write_f32(args[5], 0)
    o1 = write_f32(args[6], 1)
    o2 = write_f32(args[7], 2)
    c0 = number_f32(args[8])
    c1 = number_f32(args[9])
    c2 = number_f32(args[10])
    c3 = number_f32(args[11])
    c4 = number_f32(args[12])
    c5 = number_f32(args[13])
    for i0 in range(n0):
        v0 = p0[i0]
        v1 = v0 * c0
        v2 = p1[i0]
        v3 = v2 * c1
        v4 = v1 + v3
        o1[i0] = v4
        v5 = p2[i0]
        v6 = v5 * c2
        v7 = v2 * v2
        v8 = v7 * c3
        v9 = v6 + v8
        o2[i0] = v9
        v10 = p3[i0]
        v11 = v4 * c4
        v12 = sqrt_f32(v9)
        v13 = v12 + c5
        v14 = v11 / v13
        v15 = v10 - v14
        o0[i0] = v15


def forward(memory):
    # mul, mul, add, mul, square, mul, add, mul, sqrt, add, div, sub
    mul_add_sub_03c35783d53e([6, memory('input[2]', 0, 'float32'), memory('input[1]', 0, 'float32'), memory('input[3]', 0, 'float32'), memory('input[0]', 0, 'float32'), memory('output[0]', 0, 'float32'), memory('output[1]', 0, 'float32'), memory('output[2]', 0, 'float32'), f32(0.8999999761581421), f32(0.10000000149011612), f32(0.9990000128746033), f32(0.0010000000474974513), f32(0.003000000026077032), f32(9.99999993922529e-09)])
