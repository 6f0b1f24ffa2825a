gradcheck_public = \
	gradcheck/gradcheck.h \
	$(nil)

gradcheck_sources = \
	gradcheck/check.h \
	gradcheck/differences.c \
	gradcheck/gradcheck.c \
	gradcheck/run.c \
	gradcheck/variants.c \
	$(nil)
