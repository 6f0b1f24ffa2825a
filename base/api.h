/* The export macro (all other symbols have hidden visibility), the library's version and its number
 * of threads. */
#ifndef WG_BASE_API_H
#define WG_BASE_API_H

#if defined(__GNUC__)
#define WG_API __attribute__((visibility("default")))
#define WG_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define WG_COLD __attribute__((cold)) /* seldom called: kept off the hot path */
#else
#define WG_API
#define WG_PRINTF(text, first)
#define WG_COLD
#endif

/* Enclose the declarations of every public header, so that C++ programs can link with it. */
#if defined(__cplusplus)
#define WG_BEGIN_DECLS extern "C" {
#define WG_END_DECLS }
#else
#define WG_BEGIN_DECLS
#define WG_END_DECLS
#endif

/* The version of these headers. */
#define WG_VERSION "0.1.0"
#define WG_VERSION_MAJOR 0
#define WG_VERSION_MINOR 1
#define WG_VERSION_PATCH 0

/* In a struct of options, a member that is 0 counts as not given and means the default, which may
 * be another value: beta1 of 0 means 0.9. WG_ZERO, the least normal number above 0, asks for 0
 * itself: .beta1 = WG_ZERO. A denormal number would be 0 in threads that flush denormals. */
#define WG_ZERO 2.2250738585072014e-308

WG_BEGIN_DECLS

/* The version of the loaded library; these headers may be of another version. Never NULL. */
WG_API const char *wg_version(void);

/* Sets how many threads the library's loops and GEMM use; the default is OMP_NUM_THREADS or the
 * number of processors. The threads live until the process ends, so main returns or calls exit, and
 * does not call pthread_exit. The same seed gives the same bits at any number of threads. Returns
 * -1 with [ARGUMENT below 1]. */
WG_API int wg_set_threads(int threads);
WG_API int wg_threads(void);

WG_END_DECLS

#endif
