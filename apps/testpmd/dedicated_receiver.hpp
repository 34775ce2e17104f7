/// @file
/// Receiving end of a lane: posts entries by the alignment plan, collects them, copies what was
/// bounced to its place, checks it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/testpmd/dedicated_path.hpp"
#include "apps/testpmd/mode.hpp"
#include "pmd/mem/alignment_plan.hpp"
#include "pmd/mem/bounce_pool.hpp"

namespace rio::testpmd {

/// Part of a stream; turn() is hot but for recovery.
class DedicatedReceiver {
 public:
  /// Opens the queue and sets lane.cut. @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] static int create(const RunSetup& setup, DedicatedPath& lane, Stream& owner,
                                  std::unique_ptr<DedicatedReceiver>* out, std::string* error);
  ~DedicatedReceiver();
  DedicatedReceiver(const DedicatedReceiver&) = delete;
  DedicatedReceiver& operator=(const DedicatedReceiver&) = delete;

  /// @param may_post false: no new entries. @return entries completed.
  uint32_t turn(bool may_post) noexcept;
  /// All that was confirmed has been looked at.
  [[nodiscard]] bool quiet() const noexcept {
    return seen_ >= lane_.confirmed.load(std::memory_order_acquire) &&
           lane_.state.load(std::memory_order_acquire) == DedicatedPath::State::kRunning;
  }

 private:
  struct Slot {
    pmd::mem::Plan plan;
    uint32_t left = 0;  // entries that are not complete
  };

  DedicatedReceiver(const RunSetup& setup, DedicatedPath& lane, Stream& owner);
  [[nodiscard]] int allocate(std::string* error);
  [[nodiscard]] int open(std::string* error);
  [[nodiscard]] int plan_slot(uint32_t index, std::string* error);
  uint32_t reap() noexcept;
  void look() noexcept;
  void finish(uint32_t index) noexcept;
  void post() noexcept;
  void recover() noexcept;

  DedicatedPath& lane_;
  Verifier& verifier_;
  Stream& owner_;
  uint32_t size_bytes_;
  pmd::DedicatedRxQueue* queue_ = nullptr;
  LaneBuffers buffers_;
  std::unique_ptr<pmd::mem::BouncePool> bounce_;
  std::vector<Slot> slots_;
  // Of all slots in turn, messages_each_ for each.
  std::vector<pmd::DedicatedEntry> entries_;
  std::vector<uint32_t> bounces_;  // buffer of each message, kNone if it is in place
  uint32_t messages_each_ = 0;
  uint32_t at_ = 0;        // in entries_: the next to post
  uint32_t unposted_ = 0;  // entries of free slots that are not posted
  uint32_t partial_ = 0;   // entries posted of the transfer that is next to be granted
  uint64_t granted_ = 0;   // transfers whose entries are all posted
  uint64_t seen_ = 0;      // transfers that were looked at
};

}  // namespace rio::testpmd
