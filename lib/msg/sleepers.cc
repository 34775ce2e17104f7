#include "lib/msg/sleepers.hpp"

#include <unistd.h>

#include "base/no_cancel.hpp"

namespace rio::msg {

void Sleepers::wake() {
  const base::NoCancel no_cancel;
  for (const int fd : wake_fds_) {
    const uint64_t one = 1;
    static_cast<void>(!::write(fd, &one, sizeof(one)));
  }
  wake_fds_.clear();
}

void Sleepers::enlist(int wake_fd, uint64_t activity) {
  uint64_t old = 0;
  static_cast<void>(!::read(wake_fd, &old, sizeof(old)));
  strike(wake_fd);
  wake_if_new(activity);  // this call has taken something, which may be theirs
  wake_fds_.push_back(wake_fd);
  seen_ = activity;
}

void Sleepers::strike(int wake_fd) {
  std::erase(wake_fds_, wake_fd);
}

}  // namespace rio::msg
