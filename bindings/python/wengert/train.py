"""The training loop of the library, for a Module and any batches.

    trainer = wengert.train.Trainer(model, optim.AdamW(weight_decay=0.01), loss, batches, steps=500,
                                    schedule=optim.Schedule("cosine", 1e-3, warmup_steps=20))
    trainer.run()

It clips gradients, follows the schedule, evaluates, saves checkpoints, and resumes them with the same
bits.
"""
import collections
import ctypes
import weakref

from . import _api, _call
from ._errors import fail
from ._library import lib
from .autograd import refuse

Step = collections.namedtuple("Step", "step total loss learning_rate gradient_norm evaluation "
                                      "metrics saved")
OUTCOMES = {value: name[len("WG_TRAIN_"):].lower().replace("_", " ")
            for name, value in _api.wg_train_outcome.items()}


def _metrics(address):
    if not address:
        return None
    found = _api.wg_metrics.from_address(address)
    return {m.name.decode(): m.sum / m.weight if m.weight else float("nan")
            for m in list(found.metrics)[:found.count]}


class Trainer:
    """Trains `model` by calling loss(batch) for each of `batches`, which begin again when they end.

    model       a Module
    optimizer   one without parameters: optim.AdamW(weight_decay=0.01); the trainer takes it over
    loss        a function of a batch: a Tensor of one element, or that and a dict of further metrics
    batches     something to iterate over; without it loss is called without arguments
    steps       how many steps to train
    schedule    optim.Schedule, or a number for a constant rate; None: the optimizer's lr
    evaluate    a function that gives a dict of metrics, of which "loss" is the one that counts
    on_step     a function that is called with a Step after each step

    The options are the members of wg_trainer_options: clip, accumulate, evaluate_every, patience, path,
    save_every, log_path... A step of several batches (accumulate) takes the mean of their losses, so
    batches should be of equal sizes."""

    def __init__(self, model, optimizer, loss, batches=None, steps=1, schedule=None, evaluate=None,
                 on_step=None, **options):
        from .optim import Schedule
        self._as_parameter_ = None
        self.model, self.loss, self.batches, self.evaluate = model, loss, batches, evaluate
        self.on_step, self.error, self.history = on_step, None, []
        self._iterator = None
        rate = optimizer.lr if schedule is None else schedule
        if not isinstance(rate, Schedule):
            rate = Schedule("constant", float(rate))
        made = _call._options(_api.wg_trainer_options, dict(options, steps=steps))
        made.struct.schedule = rate.struct
        if not rate.struct.total_steps:
            made.struct.schedule.total_steps = steps
        this = weakref.ref(self)  # callbacks would be in a cycle that Python never frees
        self._listener = _api.wg_train_listener(lambda *given: this()._hear(*given))
        made.struct.listener = self._listener
        self._task = _api.wg_task()
        self._task.module = model._as_parameter_
        fields = dict(_api.wg_task._fields_)
        self._loss = fields["loss"](lambda *given: this()._next_loss(*given))
        self._task.loss = self._loss
        if evaluate:
            self._evaluate = fields["evaluate"](lambda *given: this()._measure(*given))
            self._task.evaluate = self._evaluate
        handle = optimizer._as_parameter_
        if not handle:
            raise ValueError("the optimizer belongs to another trainer")
        optimizer._as_parameter_ = None  # taken over in every case
        self._options = made  # texts that the trainer borrows
        self._as_parameter_ = lib.wg_trainer_new(ctypes.byref(self._task), handle, made)
        if not self._as_parameter_:
            fail("Trainer")

    def __del__(self):
        if self._as_parameter_ and lib:
            lib.wg_trainer_free(self._as_parameter_)

    # ---- What the loop calls ----

    def _batch(self):
        if self.batches is None:
            return ()
        for _ in range(2):
            if self._iterator is None:
                self._iterator = iter(self.batches)
            for batch in self._iterator:
                return (batch,)
            self._iterator = None
        raise ValueError("there are no more batches: an iterator that is used up cannot begin again; "
                         "give a list, or an object whose __iter__ starts anew")

    def _next_loss(self, context, metrics):
        try:
            found = self.loss(*self._batch())
            loss, more = found if isinstance(found, tuple) else (found, {})
            self._add(metrics, more)
            return lib.wg_alias(_call._tensor(loss))
        except BaseException as error:
            self.error = error
            refuse(error)
            return None

    def _measure(self, context, metrics):
        try:
            self._add(metrics, self.evaluate())
            return 0
        except BaseException as error:
            self.error = error
            return refuse(error)

    def _add(self, metrics, values):
        for name, value in values.items():
            _call._check(lib.wg_metrics_add(metrics, name.encode(), float(value), 1.0))

    def _hear(self, report, context):
        try:
            r = _api.wg_train_report.from_address(report)
            step = Step(r.step, r.total, r.loss, r.learning_rate, r.gradient_norm,
                        _metrics(r.evaluation), _metrics(r.metrics), r.saved)
            self.history.append(step)
            if self.on_step:
                self.on_step(step)
        except BaseException as error:
            self.error = error
            refuse(error)

    # ---- Use ----

    def run(self):
        """Trains to the last step: "finished", "interrupted" or "out of patience"."""
        scope = _api.wg_scope()
        lib.wg_scope_begin(ctypes.byref(scope))
        outcome = lib.wg_trainer_run(self)
        lib.wg_scope_end(ctypes.byref(scope), None)
        if self.error:
            error, self.error = self.error, None
            lib.wg_error_clear()
            raise error
        if outcome < 0:
            fail("Trainer.run")
        return OUTCOMES[outcome]

    def resume(self, path):
        """Takes up the run that a checkpoint holds, before the first step."""
        _call._check(lib.wg_trainer_resume(self, str(path).encode()))
        return self

    def save(self, path):
        """Writes a checkpoint of the current state of the run."""
        _call._check(lib.wg_trainer_save(self, str(path).encode()))

    @property
    def steps(self):
        """Steps done."""
        return lib.wg_trainer_steps(self)
