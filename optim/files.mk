optim_public = \
	optim/average.h \
	optim/optimizer.h \
	optim/schedule.h \
	$(nil)

optim_sources = \
	optim/adafactor.c \
	optim/adam.c \
	optim/average.c \
	optim/choice.c \
	optim/internal.h \
	optim/kernels.h \
	optim/lion.c \
	optim/muon.c \
	optim/optimizer.c \
	optim/schedule.c \
	optim/sgd.c \
	optim/step.c \
	optim/step_in_backward.c \
	$(nil)
