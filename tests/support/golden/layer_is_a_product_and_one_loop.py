"""layer_is_a_product_and_one_loop

2 launches of 2 kernels; arena 128 bytes.
input[0]: 4x3 float32
input[1]: 3x5 float32
input[2]: 5 float32
output[0]: 4x5 float32
"""


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


def add_tanh_b5dc16ee29a6(args):
    n0 = args[0]
    n1 = args[1]
    p0 = read_f32(args[2])
    p0_0 = args[3]
    p1 = read_f32(args[4])
    o0 = write_f32(args[5], 0)
    o0_0 = args[6]
    for i0 in range(n0):
        for i1 in range(n1):
            v0 = p0[i0 * p0_0 + i1]
            v1 = p1[i1]
            v2 = v0 + v1
            v3 = tanh_f32(v2)
            o0[i0 * o0_0 + i1] = v3


def forward(memory):
    # matmul
    product_a03d145bd845([1, 4, 5, 3, 3, 1, 0, 5, 0, 5, 20, 0, memory('input[0]', 0, 'float32'), memory('input[1]', 0, 'float32'), memory('arena', 0, 'float32')])
    # add, tanh
    add_tanh_b5dc16ee29a6([4, 5, memory('arena', 0, 'float32'), 5, memory('input[2]', 0, 'float32'), memory('output[0]', 0, 'float32'), 5])
