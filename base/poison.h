/* AddressSanitizer's view of memory that we hand out ourselves; nothing in other builds. */
#ifndef WG_BASE_POISON_H
#define WG_BASE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define WG__POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WG__POISONS 1
#endif
#endif

#ifdef WG__POISONS
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define __lsan_register_root_region(address, size) ((void)(address), (void)(size))
#define __lsan_unregister_root_region(address, size) ((void)(address), (void)(size))
#endif

#endif
