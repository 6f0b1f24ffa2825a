base_public = \
	base/alloc.h \
	base/api.h \
	base/error.h \
	base/group.h \
	$(nil)

base_sources = \
	base/alloc.c \
	base/array.c \
	base/array.h \
	base/error.c \
	base/group.c \
	base/group_exchange.c \
	base/group_internal.h \
	base/json.c \
	base/internal.h \
	base/json.h \
	base/replacement.c \
	base/replacement.h \
	base/system.c \
	base/system.h \
	base/threads.c \
	$(nil)
