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

/// One connection, which stays: when it breaks, QEMU has gone. One thread.
class Monitor {
 public:
  /// @param answer_within how long QEMU may take; a busy machine is no fault.
  explicit Monitor(std::string socket_path,
                   std::chrono::milliseconds answer_within = std::chrono::seconds(3))
      : path_(std::move(socket_path)), answer_within_(answer_within) {}

  /// Connect if need be (tried at most every 20 ms), and take what QEMU says. Does not wait.
  void serve();
  /// Read a word of guest-physical memory or of a device's registers. Waits at most
  /// `answer_within`.
  /// @param len_bytes 4 or 8. @return 0; -ENOTCONN: QEMU is not there; -ETIMEDOUT; -EPROTO: an
  /// answer of another kind.
  [[nodiscard]] int read_word(uint64_t address, uint32_t len_bytes, uint64_t* out);

  [[nodiscard]] bool here() const { return socket_.valid(); }
  /// Was there, and is no more.
  [[nodiscard]] bool gone() const { return gone_; }
  /// Another QEMU may come.
  void forget() { gone_ = false; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] bool connect();
  [[nodiscard]] bool take();
  [[nodiscard]] int wait_for_word(const std::string& label, Time deadline, uint64_t* out);

  std::string path_;
  std::chrono::milliseconds answer_within_;
  base::Fd socket_;
  std::string said_;  // by QEMU since the last command
  Time next_try_;
  bool gone_ = false;
};

/// The word behind `label` ("fed90020:") in what QEMU said, which goes to the end of a line.
/// @return false: not there, or not yet whole.
[[nodiscard]] bool word_after(std::string_view said, std::string_view label, uint64_t* out);

/// The monitor at a path; cards of one guest share it. Control path.
[[nodiscard]] std::shared_ptr<Monitor> monitor_at(const std::string& socket_path);

}  // namespace rio::cardsim
