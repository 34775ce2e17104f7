/// @file
/// The target of remote reads, writes and atomics: inbound windows.
#pragma once

#include <array>
#include <vector>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class TargetEngine {
 public:
  TargetEngine(Core& core, Responder& responder) : core_(core), responder_(responder) {}

  /// Carry out a request and answer it. @return false: no room for the answer; leave the frame in
  /// the ring.
  [[nodiscard]] bool on_request(const InFrame& frame) { return answer(frame, true); }
  /// Answer a request as one outside of every window. @return as on_request().
  [[nodiscard]] bool refuse(const InFrame& frame) { return answer(frame, false); }
  /// Read the windows of a pair whose CONTROL has changed.
  void read_windows(Pair& pair);
  /// The pair was reset: close its windows.
  void forget(const Pair& pair);

  // For kLongRequests.
  /// Where the bytes of a request are.
  struct Place {
    HostPort* host = nullptr;  ///< null: not all in one window
    uint64_t bus = 0;
    uint64_t before_bytes = 0;  ///< of the window
    uint64_t after_bytes = 0;
  };
  /// Find the window that a request of so many bytes is inside of.
  [[nodiscard]] Place find_long(const InFrame& frame, uint32_t length);

 private:
  struct Window {
    uint32_t control = 0;
    uint32_t source = 0;
    uint32_t source_mask = 0;
    uint32_t key = 0;
    uint64_t rio = 0;
    uint64_t size = 0;
    uint64_t bus = 0;
  };
  using Windows = std::array<Window, regs::kWindowsPerQp>;

  [[nodiscard]] bool answer(const InFrame& frame, bool has_windows);
  [[nodiscard]] const Window* find(const InFrame& frame, uint32_t length, uint32_t pair) const;
  [[nodiscard]] HostPort& host_of(uint32_t pair) { return *core_.pairs[pair].function->host; }
  void serve(const InFrame& frame, HostPort& host, const Window& window, Frame* response);
  [[nodiscard]] static const uint8_t* readable(const InFrame& frame, HostPort& host,
                                               const Window& window);
  [[nodiscard]] bool atomic(const InFrame& frame, HostPort& host, uint64_t bus, Frame* response);

  Core& core_;
  Responder& responder_;
  std::vector<Windows> windows_ = std::vector<Windows>(core_.pairs.size());
};

}  // namespace rio::model
