bench_sources = \
	bench/attention.c \
	bench/bench.c \
	bench/bench.h \
	bench/checkpoint.c \
	bench/data.c \
	bench/gemm.c \
	bench/generate.c \
	bench/ops.c \
	bench/plan.c \
	bench/train.c \
	bench/workload.c \
	$(nil)
