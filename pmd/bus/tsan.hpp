/// @file
/// What the thread sanitizer has to be told. Nothing in any other build.
///
/// It pairs a release with an acquire of the same address only. The last word of a completion is
/// written alone or with the word before it, and read either way: the pair is named by the address
/// of the last word.
#pragma once

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define RIO_PMD_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(RIO_PMD_TSAN)
#define RIO_PMD_TSAN 1
#endif

#ifdef RIO_PMD_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace rio::pmd {

#ifdef RIO_PMD_TSAN
/// It takes a read of what is not there yet for a race, though nothing comes of the value.
inline constexpr bool kThreadSanitizer = true;
/// After the load that pairs with model::tsan_release of the same word.
inline void tsan_acquire(const void* last_word) {
  __tsan_acquire(const_cast<void*>(last_word));
}
#else
inline constexpr bool kThreadSanitizer = false;
inline void tsan_acquire(const void* /*last_word*/) {}
#endif

}  // namespace rio::pmd
