/* All of Wengert's public interface. */
#ifndef WENGERT_H
#define WENGERT_H

#include "tensor/alloc.h"
#include "tensor/dtype.h"
#include "tensor/error.h"
#include "tensor/npy.h"
#include "tensor/op.h"
#include "tensor/ops.h"
#include "tensor/random.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "io/checkpoint.h"
#include "train/history.h"
#include "train/metrics.h"
#include "train/trainer.h"

#endif
