"""product_goes_on_with_its_rows

1 launch of 1 kernel; arena 0 bytes.
input[0]: 9x3 float32
input[1]: 3x64 float32
input[2]: 64 float32
output[0]: 9x64 float32
"""


def product_add_tanh_f1d789501654(args):
    n0 = args[0]
    n1 = args[1]
    k = args[2]
    x_row = args[3]
    x_column = args[4]
    y_row = args[5]
    x = read_f32(args[6])
    y = read_f32(args[7])
    p1 = read_f32(args[8])
    o0 = write_f32(args[9], 0)
    o0_0 = args[10]
    block = scratch_f32(4096)
    for i in range(0, n0, 8):
        rows = rows_8(i, n0)
        places = rows_8(0, n0 - i)
        for j_next in range(0, n1, 32):
            j = min(j_next, n1 - 32)
            tile = zero_f32x32(rows)
            at_x = 0
            at_y = j
            for p in range(k):
                tile = add_outer_f32x32(tile, x, at_x, rows, x_row, load_f32x32(y, at_y))
                at_x += x_column
                at_y += y_row
            store_tile_f32x32(block, j, places, n1, tile, j_next - j, 32)
        for i0 in range(i, min(i + 8, n0)):
            for i1 in range(n1):
                v0 = block[(i0 - i) * n1 + i1]
                v1 = p1[i1]
                v2 = v0 + v1
                v3 = tanh_f32(v2)
                o0[i0 * o0_0 + i1] = v3


def forward(memory):
    # matmul, add, tanh
    product_add_tanh_f1d789501654([9, 64, 3, 3, 1, 64, memory('input[0]', 0, 'float32'), memory('input[1]', 0, 'float32'), memory('input[2]', 0, 'float32'), memory('output[0]', 0, 'float32'), 64])
