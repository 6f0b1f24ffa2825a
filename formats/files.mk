formats_public = \
	formats/convert.h \
	$(nil)

formats_sources = \
	formats/convert.c \
	formats/convert_folder.c \
	formats/convert_folder.h \
	formats/published.c \
	formats/published.h \
	formats/published_kind.h \
	formats/published_lists.c \
	$(nil)
