"""transposes_are_flags_of_blas

1 launch of 1 kernel; arena 0 bytes.
input[0]: 3x4 float32
input[1]: 5x3 float32
output[0]: 4x5 float32
"""


def gemm_286348f813db(args):
    gemm_f32(
        args[0],
        args[1],
        args[2],
        args[3],
        args[4],
        args[5],
        args[6],
        args[7],
        args[8],
        args[9],
        args[10],
        args[11],
        args[12],
        args[13],
        args[14],
    )


def forward(memory):
    # matmul
    gemm_286348f813db([symbol('sgemm'), 1, 4, 5, 3, 1, 4, 0, 1, 3, 0, 0, memory('input[0]', 0, 'float32'), memory('input[1]', 0, 'float32'), memory('output[0]', 0, 'float32')])
