/* Variables of each thread's own that every op looks at. */
#ifndef WG_BASE_THREAD_LOCAL_H
#define WG_BASE_THREAD_LOCAL_H

/* Found without a call, also in the shared library. For what is small: room for it is set aside
 * when the library is loaded. */
#define WG__THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

#endif
