gradcheck_public = \
	gradcheck/gradcheck.h \
	$(nil)

gradcheck_sources = \
	gradcheck/internal.h \
	gradcheck/check.h \
	gradcheck/differences.c \
	gradcheck/gradcheck.c \
	gradcheck/grown.c \
	gradcheck/layers.c \
	gradcheck/op.c \
	gradcheck/layouts.c \
	gradcheck/oracles.c \
	gradcheck/points.c \
	gradcheck/run.c \
	gradcheck/variants.c \
	$(nil)
