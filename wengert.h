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
#include "nn/activation.h"
#include "nn/add_norm.h"
#include "nn/attention.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "io/checkpoint.h"
#include "io/config.h"
#include "io/log.h"
#include "io/text.h"
#include "models/bert.h"
#include "train/history.h"
#include "train/metrics.h"
#include "train/trainer.h"

#endif
