/// @file
/// Wake a thread that polls descriptors: by an eventfd, of which its loop polls one more.
#pragma once

#include <sys/eventfd.h>

#include "base/fd.hpp"
#include "base/no_cancel.hpp"

namespace rio::base {

/// @return a nonblocking eventfd; one that is not valid: errno tells the cause.
[[nodiscard]] inline Fd make_wake_fd() {
  return Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

/// Make it readable until clear_wake_fd(). Any thread: none is cancelled in it.
inline void wake(int wake_fd) {
  const NoCancel no_cancel;
  static_cast<void>(eventfd_write(wake_fd, 1));  // full: it is readable anyway
}

/// Take all wake-ups, if there are any. The loop calls it before it looks at what it was woken for.
/// Any thread: none is cancelled in it.
inline void clear_wake_fd(int wake_fd) {
  const NoCancel no_cancel;
  eventfd_t times = 0;
  static_cast<void>(eventfd_read(wake_fd, &times));
}

}  // namespace rio::base
