/// @file
/// Progress while the user is elsewhere, as FI_PROGRESS_AUTO promises it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <thread>

#include "base/fd.hpp"

namespace rio::ofi {

class Domain;

/// A thread that sleeps while the user looks itself, or nothing comes; where a card has no
/// interrupts it looks once a millisecond. Of a domain whose calls are made under a Guard.
class Attendant {
 public:
  /// @return 0, -errno; logged.
  [[nodiscard]] static int start(Domain& domain, std::unique_ptr<Attendant>* out);
  /// Without a Guard. The thread has ended then.
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

 private:
  explicit Attendant(Domain& domain) : domain_(domain) {}
  void run(const std::stop_token& stop);
  void rest(int ms) const;
  void attend(const std::stop_token& stop, uint64_t looks);

  Domain& domain_;
  int owner_ = getpid();
  base::Fd stop_fd_;
  std::jthread thread_;
};

}  // namespace rio::ofi
