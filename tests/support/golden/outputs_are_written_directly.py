"""outputs_are_written_directly

2 launches of 2 kernels; arena 0 bytes.
input[0]: 3x3 float32
output[0]: 3x3 float32
output[1]: 3 float32
output[2]: 3x3 float32
"""


def exp_sum_3821a34b3925(args):
    n0 = args[0]
    n1 = args[1]
    p0 = read_f32(args[2])
    p0_0 = args[3]
    o0 = write_f32(args[4], 0)
    o0_0 = args[5]
    o1 = write_f32(args[6], 1)
    for i0 in range(0, n0, 16):
        count = min(16, n0 - i0)
        v0 = f32x16(f32(0))
        for i1 in range(n1):
            v1 = gather_x16(p0, i0 * p0_0 + i1, p0_0, count)
            v2 = exp_f32(v1)
            scatter_x16(o0, i0 * o0_0 + i1, o0_0, v2, count)
            v0 = fold_sum_f32(v0, v2)
        store_first_x16(o1, i0, v0, count)


def product_a03d145bd845(args):
    batch = args[0]
    m = args[1]
    n = args[2]
    k = args[3]
    x_row = args[4]
    x_column = args[5]
    x_batch = args[6]
    y_row = args[7]
    y_batch = args[8]
    out_row = args[9]
    out_batch = args[10]
    add = args[11]
    x = read_f32(args[12])
    y = read_f32(args[13])
    out = write_f32(args[14], 0)
    for b in range(batch):
        for i in range(0, m, 8):
            rows = rows_8(i, m)
            tile = zero_f32x16(rows)
            at_x = b * x_batch
            at_y = b * y_batch
            for p in range(k):
                tile = add_outer_f32x16(tile, x, at_x, rows, x_row, load_first_f32x16(y, at_y, n))
                at_x += x_column
                at_y += y_row
            at = b * out_batch
            if add:
                tile = add_tiles_f32x16(tile, load_tile_f32x16(out, at, rows, out_row, 0, n))
            store_tile_f32x16(out, at, rows, out_row, tile, 0, n)


def forward(memory):
    # exp, sum
    exp_sum_3821a34b3925([3, 3, memory('input[0]', 0, 'float32'), 3, memory('output[0]', 0, 'float32'), 3, memory('output[1]', 0, 'float32')])
    # matmul
    product_a03d145bd845([1, 3, 3, 3, 3, 1, 0, 3, 0, 3, 9, 0, memory('output[0]', 0, 'float32'), memory('output[0]', 0, 'float32'), memory('output[2]', 0, 'float32')])
