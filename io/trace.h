/* Profiles as traces. */
#ifndef WG_IO_TRACE_H
#define WG_IO_TRACE_H

#include "../base/api.h"

WG_BEGIN_DECLS

/* Writes the events that wg_profile_begin(true) recorded (tensor/profile.h) as JSON in Chrome's
 * format, which chrome://tracing and Perfetto open: one complete event each, with name, category
 * (forward, backward, region), thread, microseconds, and as arguments the shapes of the operands
 * and, where there were products, GFLOP/s. -1 with [IO: disk full and so on; NOT_FOUND for a folder
 * that is not there; MEMORY] */
WG_API int wg_trace_write(const char *path);

WG_END_DECLS

#endif
