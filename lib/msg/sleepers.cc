#include "lib/msg/sleepers.hpp"

#include "base/wake_fd.hpp"

namespace rio::msg {

void Sleepers::wake() {
  for (const int fd : wake_fds_) {
    base::wake(fd);
  }
  wake_fds_.clear();
}

void Sleepers::enlist(int wake_fd, uint64_t activity) {
  base::clear_wake_fd(wake_fd);
  strike(wake_fd);
  wake_if_new(activity);  // this call has taken something, which may be for other sleepers
  wake_fds_.push_back(wake_fd);
  seen_ = activity;
}

void Sleepers::strike(int wake_fd) {
  std::erase(wake_fds_, wake_fd);
}

}  // namespace rio::msg
