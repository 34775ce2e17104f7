/// @file
/// QEMU's human monitor, as far as a card needs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace rio::cardsim {

/// A lasting connection to a monitor: when it breaks, QEMU has gone. One thread.
class Monitor {
 public:
  /// @param answer_within how long QEMU may take; a busy machine is not a fault.
  explicit Monitor(std::string socket_path,
                   std::chrono::milliseconds answer_within = std::chrono::seconds(3))
      : path_(std::move(socket_path)), answer_within_(answer_within) {}

  /// Connect if necessary (at most every 20 ms), and read QEMU's output. Does not wait.
  void serve();
  /// Read a word of guest-physical memory or of a device's registers. Waits at most
  /// `answer_within`. @param len_bytes 4 or 8. @return 0; -ENOTCONN: QEMU is not there; -ETIMEDOUT;
  /// -EPROTO: an unexpected answer.
  [[nodiscard]] int read_word(uint64_t address, uint32_t len_bytes, uint64_t* out);

  [[nodiscard]] bool here() const { return socket_.valid(); }
  /// Whether QEMU was connected and has gone.
  [[nodiscard]] bool gone() const { return gone_; }
  /// Allow another QEMU to come.
  void forget() { gone_ = false; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] bool connect();
  [[nodiscard]] bool take();
  [[nodiscard]] int wait_for_word(const std::string& label, Time deadline, uint64_t* out);

  std::string path_;
  std::chrono::milliseconds answer_within_;
  base::Fd socket_;
  std::string said_;  // QEMU's output since the last command
  Time next_try_;
  bool gone_ = false;
};

/// Find the word behind `label` ("fed90020:") in QEMU's output, in a line that has ended. @return
/// false: it is not there, or not complete yet.
[[nodiscard]] bool word_after(std::string_view said, std::string_view label, uint64_t* out);

/// The monitor at a path; cards of one guest share it. Control path.
[[nodiscard]] std::shared_ptr<Monitor> monitor_at(const std::string& socket_path);

}  // namespace rio::cardsim
