autograd_public = \
	autograd/activation_checkpointing.h \
	autograd/autograd.h \
	autograd/functional.h \
	$(nil)

autograd_sources = \
	autograd/activation_checkpointing.c \
	autograd/anomaly.c \
	autograd/anomaly.h \
	autograd/backward.c \
	autograd/forward.c \
	autograd/forward.h \
	autograd/functional.c \
	autograd/hooks.c \
	autograd/jacobian.c \
	autograd/node.c \
	autograd/node.h \
	autograd/pass.c \
	autograd/pass.h \
	autograd/pass_vjp.c \
	autograd/region.h \
	autograd/transform.h \
	$(nil)
