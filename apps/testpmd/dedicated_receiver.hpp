/// @file
/// Receiving end of a lane: posts entries by the alignment plan, collects them, copies what was
/// bounced to its place, checks it.
#pragma once

#include <string>
#include <vector>

#include "apps/testpmd/dedicated_path.hpp"

namespace rio::testpmd {

/// Part of a stream; turn() is hot but for recovery.
class DedicatedReceiver : private DedicatedEnd {
 public:
  DedicatedReceiver(const RunSetup& setup, DedicatedPath& lane, Stream& owner)
      : DedicatedEnd(setup, lane, *lane.to, owner) {}
  ~DedicatedReceiver();
  DedicatedReceiver(const DedicatedReceiver&) = delete;
  DedicatedReceiver& operator=(const DedicatedReceiver&) = delete;

  /// Allocate, set lane.cut and open the queue; before turn(). @return 0, or -errno with the remedy
  /// in `error`.
  [[nodiscard]] int start(std::string* error);
  /// @param may_post false: no new entries. @return entries completed.
  uint32_t turn(bool may_post) noexcept;
  /// All that was confirmed has been looked at.
  [[nodiscard]] bool quiet() const noexcept {
    return seen_ >= lane_.confirmed.load(std::memory_order_acquire) &&
           lane_.state.load(std::memory_order_acquire) == DedicatedPath::State::kRunning;
  }

 private:
  [[nodiscard]] int open(std::string* error);
  uint32_t reap() noexcept;
  void look() noexcept;
  void finish(uint32_t index) noexcept;
  void post() noexcept;
  void recover() noexcept;

  pmd::DedicatedRxQueue* queue_ = nullptr;
  std::vector<pmd::DedicatedEntry> entries_;  // of all slots in turn, messages_each_ for each
  uint32_t at_ = 0;                           // in entries_: the next to post
  uint32_t unposted_ = 0;                     // entries of free slots that are not posted
  uint32_t partial_ = 0;  // entries posted of the transfer that is next to be granted
  uint64_t granted_ = 0;  // transfers whose entries are all posted
  uint64_t seen_ = 0;     // transfers that were looked at
};

}  // namespace rio::testpmd
