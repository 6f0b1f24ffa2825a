base_public = \
	base/alloc.h \
	base/api.h \
	base/error.h \
	base/text.h \
	$(nil)

base_sources = \
	base/alloc.c \
	base/arena.c \
	base/arena.h \
	base/array.c \
	base/array.h \
	base/counters.c \
	base/counters.h \
	base/error.c \
	base/json.c \
	base/internal.h \
	base/json.h \
	base/poison.h \
	base/refcount.h \
	base/string_table.c \
	base/string_table.h \
	base/text.c \
	base/counts.h \
	base/thread_local.h \
	base/threads.c \
	base/threads.h \
	$(nil)
