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
  /// Whether the whole request is inside of one window. @param bus set to its bus address. @return
  /// the memory; null: no.
  [[nodiscard]] HostPort* find_long(const InFrame& frame, uint32_t length, uint64_t* bus);
  /// A partner will be told by the kReadable at a ring position where to pull bytes from.
  void promise(Outbound& out, uint32_t dest_id, uint32_t position);
  /// Forget the kReadables that are over. Call it now and then, at least once in 2^32 bytes of
  /// answers to a partner.
  void forget_used() {
    std::erase_if(promises_, [](const Promise& one) { return one.is_over(); });
  }
  /// Revoke all kReadables: before a window closes, or memory goes. Their readers ask again.
  void withdraw();
  /// The partner is gone, and its rings with it.
  void lose(uint32_t dest_id) {
    std::erase_if(promises_, [=](const Promise& one) { return one.dest_id == dest_id; });
  }

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
  /// A kReadable that its reader may not have used yet.
  struct Promise {
    Outbound* out;
    uint32_t dest_id;
    uint32_t position;

    [[nodiscard]] bool is_over() const {
      return out->responses->is_old(position) ||
             out->responses->passed(position + static_cast<uint32_t>(sizeof(Frame)));
    }
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
  std::vector<Promise> promises_;  // as many as rings hold, and some that are over
  size_t promises_max_ = 0;        // when those that are over are removed
};

}  // namespace rio::model
