/// @file
/// Annotations for the thread sanitizer. These functions do nothing in any other build.
///
/// The sanitizer pairs a release with an acquire of the same address only. The last word of a
/// completion is written alone or with the word before it, and read either way: the pair is named
/// by the address of the last word.
#pragma once

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define RIO_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(RIO_TSAN)
#define RIO_TSAN 1
#endif

#ifdef RIO_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace rio::base {

#ifdef RIO_TSAN
/// The sanitizer takes a read of what is not there yet for a race, even where the value is unused.
inline constexpr bool kThreadSanitizer = true;
/// Call before the store that pairs with tsan_acquire() of the same word.
inline void tsan_release(const void* last_word) {
  __tsan_release(const_cast<void*>(last_word));
}
/// Call after the load that pairs with tsan_release() of the same word.
inline void tsan_acquire(const void* last_word) {
  __tsan_acquire(const_cast<void*>(last_word));
}
#else
inline constexpr bool kThreadSanitizer = false;
inline void tsan_release(const void* /*last_word*/) {}
inline void tsan_acquire(const void* /*last_word*/) {}
#endif

}  // namespace rio::base
