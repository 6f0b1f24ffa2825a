autograd_public = \
	autograd/autograd.h \
	autograd/functional.h \
	$(nil)

autograd_sources = \
	autograd/activation_checkpointing.c \
	autograd/anomaly.c \
	autograd/backward.c \
	autograd/forward.c \
	autograd/functional.c \
	autograd/graph.c \
	autograd/internal.h \
	autograd/vmap.c \
	$(nil)
