gradcheck_public = \
	gradcheck/gradcheck.h \
	gradcheck/module.h \
	$(nil)

gradcheck_sources = \
	gradcheck/check.h \
	gradcheck/conduct.c \
	gradcheck/diagnosis.c \
	gradcheck/differences.c \
	gradcheck/forward.c \
	gradcheck/gradcheck.c \
	gradcheck/module.c \
	gradcheck/op.c \
	gradcheck/order2.c \
	gradcheck/report.c \
	gradcheck/run.c \
	gradcheck/variants.c \
	gradcheck/vjp.c \
	$(nil)
