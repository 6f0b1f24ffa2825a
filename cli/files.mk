cli_sources = \
	cli/average.c \
	cli/cli.c \
	cli/cli.h \
	cli/convert.c \
	cli/decoding.c \
	cli/decoding.h \
	cli/dispatch.c \
	cli/eval.c \
	cli/fill.c \
	cli/generate.c \
	cli/gradcheck.c \
	cli/info.c \
	cli/machine.c \
	cli/machine.h \
	cli/main.c \
	cli/output.c \
	cli/output.h \
	cli/plot.c \
	cli/profile.c \
	cli/profile.h \
	cli/settings.c \
	cli/settings.h \
	cli/tokenizer.c \
	cli/training.c \
	cli/training.h \
	cli/translate.c \
	$(nil)
