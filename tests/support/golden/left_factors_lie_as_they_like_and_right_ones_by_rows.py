"""left_factors_lie_as_they_like_and_right_ones_by_rows

2 launches of 2 kernels; arena 64 bytes.
input[0]: 3x4 float32
input[1]: 5x3 float32
output[0]: 4x5 float32
"""


def transpose_2424c05469c0(args):
    batch = args[0]
    m = args[1]
    n = args[2]
    x_row = args[3]
    x_batch = args[4]
    x = read_f32(args[5])
    out = write_f32(args[6], 0)
    for b in range(batch):
        for j in range(0, n, 16):
            columns = rows_16(j, n)
            width = min(16, n - j)
            for i in range(0, m, 16):
                rows = rows_16(i, m)
                height = min(16, m - i)
                tile = load_tile_f32x16(x, b * x_batch + j, rows, x_row, 0, width)
                store_tile_f32x16(out, b * m * n + i, columns, m, transpose_f32x16(tile), 0, height)


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
    # transpose
    transpose_2424c05469c0([1, 5, 3, 3, 0, memory('input[1]', 0, 'float32'), memory('arena', 0, 'float32')])
    # matmul
    product_a03d145bd845([1, 4, 5, 3, 1, 4, 0, 5, 0, 5, 20, 0, memory('input[0]', 0, 'float32'), memory('arena', 0, 'float32'), memory('output[0]', 0, 'float32')])
