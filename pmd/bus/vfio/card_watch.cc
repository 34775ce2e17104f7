#include "pmd/bus/vfio/card_watch.hpp"

#include <linux/vfio.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"
#include "pmd/bus/vfio/vfio_device.hpp"

namespace rio::pmd::vfio {
namespace {

struct Event {
  uint32_t index;
  const char* reason;
};
constexpr Event kEvents[] = {
    {VFIO_PCI_REQ_IRQ_INDEX, "the kernel asks for it back (unbind or hot-unplug)"},
    {VFIO_PCI_ERR_IRQ_INDEX, "the bus reports an uncorrectable error of it (AER; see dmesg)"},
};

constexpr uint32_t kNoIndex = VFIO_PCI_NUM_IRQS;

}  // namespace

int CardWatch::start(Kernel& kernel, int device, const std::string& name,
                     std::function<void(const char*)> lost) {
  const auto add = [&](uint32_t index) {
    std::vector<KernelFd> fd;
    fd.emplace_back(kernel, kernel.eventfd());
    int rc = std::min(fd[0].get(), 0);
    rc = rc == 0 && index != kNoIndex ? set_irqs(kernel, device, index, fd) : rc;
    if (rc < 0) {
      base::log_error("%s: cannot learn whether the kernel wants it back: %s", name.c_str(),
                      base::why({"eventfd", rc}).c_str());
      return rc;
    }
    events_.push_back(std::move(fd[0]));
    return 0;
  };
  for (const Event& event : kEvents) {
    if (count_irqs(kernel, device, event.index) == 0) {
      continue;
    }
    if (const int rc = add(event.index); rc != 0) {
      return rc;
    }
    reasons_.push_back(event.reason);
  }
  if (reasons_.empty()) {
    return 0;
  }
  if (const int rc = add(kNoIndex); rc != 0) {
    return rc;
  }
  lost_ = std::move(lost);
  owner_ = getpid();
  const int rc = base::start_thread(
      "rio-vfio", [this](const std::stop_token& /*stop*/) { await(); }, &thread_);
  if (rc != 0) {
    base::log_error("%s: %s; or open it with release=0", name.c_str(),
                    base::why_no_thread(rc).c_str());
  }
  return rc;
}

void CardWatch::stop() {
  if (!thread_.joinable()) {
    return;
  }
  if (owner_ != getpid()) {
    thread_.detach();
    return;
  }
  base::wake(events_.back().get());
  thread_.join();
}

void CardWatch::await() {
  std::vector<pollfd> fds;
  for (const KernelFd& event : events_) {
    fds.push_back({event.get(), POLLIN, 0});
  }
  while (poll(fds.data(), fds.size(), -1) < 0) {
  }
  for (size_t i = 0; i < reasons_.size(); ++i) {
    if (fds[i].revents != 0) {
      lost_(reasons_[i]);
      return;
    }
  }
}

}  // namespace rio::pmd::vfio
