/// @file
/// Notices that the kernel wants a card back, or has seen an error of it. Internal to pmd/bus/vfio.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// A thread that sleeps until VFIO signals a request (unbind, hot-unplug) or an error (AER) of one
/// device. Control path, one thread.
class CardWatch {
 public:
  CardWatch() = default;
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;
  /// Waits until the thread has ended. In a forked child there is none.
  ~CardWatch() { stop(); }

  /// Watch a device. Call once. @param name for messages. @param lost called at most once, in the
  /// thread, with the reason for the log. @return 0, also where the kernel tells neither (there is
  /// no thread then), or -errno, logged.
  [[nodiscard]] int start(Kernel& kernel, int device, const std::string& name,
                          std::function<void(const char* why)> lost);
  /// End the thread. Not from `lost`.
  void stop();

 private:
  void await();

  std::vector<KernelFd> events_;      // the last one ends the thread
  std::vector<const char*> reasons_;  // one for each of the others
  std::function<void(const char*)> lost_;
  std::jthread thread_;
  int owner_ = 0;  // process with the thread
};

}  // namespace rio::pmd::vfio
