/// @file
/// Tells which sanitizer a test was built with.
#pragma once

#if defined(__has_feature)
#define RIO_HAS_FEATURE(name) __has_feature(name)
#else
#define RIO_HAS_FEATURE(name) 0
#endif

namespace rio::test {

#if defined(__SANITIZE_ADDRESS__) || RIO_HAS_FEATURE(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || RIO_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif

}  // namespace rio::test

#undef RIO_HAS_FEATURE
