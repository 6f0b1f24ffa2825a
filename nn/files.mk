nn_public = \
	nn/attention.h \
	nn/conv.h \
	nn/feed_forward.h \
	nn/linear.h \
	nn/lora.h \
	nn/module.h \
	nn/norm.h \
	nn/positions.h \
	nn/recurrent.h \
	nn/stack.h \
	$(nil)

nn_sources = \
	nn/attention.c \
	nn/conv.c \
	nn/embedding.c \
	nn/feed_forward.c \
	nn/init.c \
	nn/internal.h \
	nn/kv_cache.c \
	nn/linear.c \
	nn/lora.c \
	nn/module.c \
	nn/norm.c \
	nn/positions.c \
	nn/quantized.c \
	nn/recurrent.c \
	nn/stack.c \
	$(nil)
