/// @file
/// Hold off the cancellation (pthread_cancel) of a thread that is in a call of the library.
#pragma once

#include <pthread.h>

namespace rio::base {

/// While one exists, its thread is not cancelled: a pending request takes effect at the next
/// cancellation point afterwards. For system calls that are cancellation points, where the thread
/// holds a lock or is below a function that must not be unwound. Any thread.
class NoCancel {
 public:
  NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace rio::base
