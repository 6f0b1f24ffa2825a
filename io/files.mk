io_public = \
	io/checkpoint/checkpoint.h \
	io/config.h \
	io/log.h \
	io/settings.h \
	io/trace.h \
	io/weights/weights.h \
	$(nil)

io_sources = \
	io/checkpoint/column.c \
	io/checkpoint/column.h \
	io/checkpoint/file.c \
	io/checkpoint/file.h \
	io/checkpoint/module.c \
	io/checkpoint/values.c \
	io/config.c \
	io/config_json.h \
	io/differences.c \
	io/differences.h \
	io/gguf.c \
	io/gguf.h \
	io/gguf_bpe.c \
	io/gguf_llama.c \
	io/gguf_tokenizer.c \
	io/gguf_write.c \
	io/llama2c.c \
	io/llama2c.h \
	io/llama_layout.c \
	io/llama_layout.h \
	io/log.c \
	io/settings.c \
	io/trace.c \
	io/weights/binary_file.c \
	io/weights/binary_file.h \
	io/weights/file.h \
	io/weights/hdf5.c \
	io/weights/module.c \
	io/weights/pickle.c \
	io/weights/pickle.h \
	io/weights/pickle_tensors.c \
	io/weights/pickle_torch.c \
	io/weights/pytorch_zip.c \
	io/weights/pytorch_zip.h \
	io/weights/safetensors.c \
	io/weights/shards.c \
	io/weights/shards_write.c \
	io/weights/stale.c \
	io/weights/storage_dtype.c \
	io/weights/weights.c \
	io/weights/write.c \
	$(nil)
