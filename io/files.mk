io_public = \
	io/checkpoint/checkpoint.h \
	io/trace.h \
	io/settings.h \
	io/weights/adapter.h \
	io/weights/weights.h \
	$(nil)

io_sources = \
	io/config.h \
	io/checkpoint/column.c \
	io/checkpoint/file.c \
	io/checkpoint/file.h \
	io/checkpoint/module.c \
	io/checkpoint/values.c \
	io/config.c \
	io/event_file.c \
	io/file_kind.c \
	io/internal.h \
	io/log.c \
	io/settings.c \
	io/weights/adapter.c \
	io/weights/binary_file.c \
	io/weights/binary_file.h \
	io/weights/file.h \
	io/weights/hdf5.c \
	io/weights/pytorch.c \
	io/weights/safetensors.c \
	io/weights/shards.c \
	io/weights/weights.c \
	io/weights/write.c \
	$(nil)
