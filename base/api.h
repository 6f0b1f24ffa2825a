/* Marks what the shared library exports; everything else is built with hidden visibility. */
#ifndef WG_BASE_API_H
#define WG_BASE_API_H

#if defined(__GNUC__)
#define WG_API __attribute__((visibility("default")))
#define WG_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define WG_COLD __attribute__((cold)) /* seldom called: the way there is laid out of line */
#else
#define WG_API
#define WG_PRINTF(text, first)
#define WG_COLD
#endif

#endif
