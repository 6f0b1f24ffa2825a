nn_public = \
	nn/activation.h \
	nn/add_norm.h \
	nn/attention.h \
	nn/batch_norm.h \
	nn/block_position.h \
	nn/dropout.h \
	nn/embedding.h \
	nn/feed_forward.h \
	nn/gated_feed_forward.h \
	nn/init.h \
	nn/kv_cache.h \
	nn/layer_norm.h \
	nn/linear.h \
	nn/module.h \
	nn/relative_position.h \
	nn/rms_norm.h \
	nn/rotary.h \
	nn/sinusoidal.h \
	nn/stack.h \
	$(nil)

nn_sources = \
	nn/activation.c \
	nn/add_norm.c \
	nn/attention.c \
	nn/batch_norm.c \
	nn/block_position.c \
	nn/dropout.c \
	nn/embedding.c \
	nn/feed_forward.c \
	nn/gated_feed_forward.c \
	nn/init.c \
	nn/internal.c \
	nn/internal.h \
	nn/kv_cache.c \
	nn/layer_norm.c \
	nn/linear.c \
	nn/module.c \
	nn/relative_position.c \
	nn/rms_norm.c \
	nn/rotary.c \
	nn/sinusoidal.c \
	nn/stack.c \
	$(nil)
