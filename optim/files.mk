optim_public = \
	optim/optimizer.h \
	$(nil)

optim_sources = \
	optim/adafactor.c \
	optim/average.c \
	optim/internal.h \
	optim/optimizer.c \
	optim/rules.c \
	optim/schedule.c \
	optim/shard.c \
	optim/step.c \
	$(nil)
