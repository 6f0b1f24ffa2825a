tensor_public = \
	tensor/dtype.h \
	tensor/easy.h \
	tensor/npy.h \
	tensor/op.h \
	tensor/ops.h \
	tensor/profile.h \
	tensor/quantize.h \
	tensor/random.h \
	tensor/tensor.h \
	$(nil)

tensor_sources = \
	tensor/convert.c \
	tensor/convert.h \
	tensor/create.c \
	tensor/gemm/blis.c \
	tensor/gemm/blis.h \
	tensor/gemm/gemm.c \
	tensor/gemm/gemm.h \
	tensor/gemm/large.c \
	tensor/gemm/large.h \
	tensor/gemm/quantized.c \
	tensor/gemm/quantized.h \
	tensor/internal.h \
	tensor/iter.c \
	tensor/iter.h \
	tensor/npy.c \
	tensor/op.c \
	tensor/ops/attention/attention.c \
	tensor/ops/attention/attention.h \
	tensor/ops/attention/rotary.c \
	tensor/ops/attention/tiles.c \
	tensor/ops/elementwise/activation.c \
	tensor/ops/elementwise/binary.c \
	tensor/ops/elementwise/compare.c \
	tensor/ops/elementwise/elementwise.c \
	tensor/ops/elementwise/elementwise.h \
	tensor/ops/elementwise/special.c \
	tensor/ops/elementwise/unary.c \
	tensor/ops/index/advanced_index.c \
	tensor/ops/index/index.c \
	tensor/ops/index/indexing.c \
	tensor/ops/index/indexing.h \
	tensor/ops/index/sort.c \
	tensor/ops/linalg/dense.c \
	tensor/ops/linalg/dense.h \
	tensor/ops/linalg/einsum.c \
	tensor/ops/linalg/einsum.h \
	tensor/ops/linalg/linear_algebra.c \
	tensor/ops/linalg/matmul.c \
	tensor/ops/linalg/quantized.c \
	tensor/ops/loss/cross_entropy.c \
	tensor/ops/loss/linear_loss.c \
	tensor/ops/loss/loss.c \
	tensor/ops/loss/loss.h \
	tensor/ops/reduce/minmax.c \
	tensor/ops/reduce/norm.c \
	tensor/ops/reduce/reduce.c \
	tensor/ops/reduce/reduction.c \
	tensor/ops/reduce/reduction.h \
	tensor/ops/reduce/scan.c \
	tensor/ops/registry.h \
	tensor/ops/shape/arrange.c \
	tensor/ops/shape/slice.c \
	tensor/ops/shape/unfold_pad.c \
	tensor/ops/shape/view.c \
	tensor/ops/support.c \
	tensor/ops/support.h \
	tensor/print.c \
	tensor/profile.c \
	tensor/quantize.c \
	tensor/quantize_rows.h \
	tensor/random.c \
	tensor/ops/registry.c \
	tensor/simd/simd.c \
	tensor/simd/simd.h \
	tensor/span.h \
	tensor/tensor.c \
	$(nil)

# Kernels that are compiled once for each instruction set: see Makefile.am.
simd_kernels = \
	optim/kernels.c \
	optim/kernels_of_real.h \
	tensor/simd/attention.h \
	tensor/simd/functions.h \
	tensor/simd/kernels_bf16.c \
	tensor/simd/kernels_f32.c \
	tensor/simd/kernels_f64.c \
	tensor/simd/kernels_i8.c \
	tensor/simd/products.h \
	tensor/simd/quantized.h \
	tensor/simd/random_words.h \
	tensor/simd/rows.h \
	tensor/simd/table.h \
	tensor/simd/vector.h \
	$(nil)
