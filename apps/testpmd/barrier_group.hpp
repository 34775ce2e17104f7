/// @file
/// The members of a barrier that this process polls: when each of them arrived.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace rio::testpmd {

/// The arrivals and ends of this process's members, shared by the streams of a run. Each member has
/// words of its own, which the thread that polls the member writes.
class BarrierGroup {
 public:
  /// @param members of this process. @param last epoch that the group has had.
  BarrierGroup(uint32_t members, uint64_t last) : members_(members), top_(last) {
    for (Member& member : members_) {
      member.arrived.store(last, std::memory_order_relaxed);
      member.ended.store(last, std::memory_order_relaxed);
    }
  }

  /// Whether a member may arrive at an epoch: any, while the run goes on; after that only at epochs
  /// at which another member has arrived, so that all members end with the same epoch.
  [[nodiscard]] bool may_arrive(uint64_t epoch, bool goes_on) {
    uint64_t top = top_.load(std::memory_order_relaxed);
    while (epoch > (top & ~kClosed)) {
      if (!goes_on || (top & kClosed) != 0) {
        top = top_.fetch_or(kClosed, std::memory_order_relaxed);
        return epoch <= (top & ~kClosed);
      }
      if (top_.compare_exchange_weak(top, epoch, std::memory_order_relaxed)) {
        return true;
      }
    }
    return true;
  }
  /// A member arrives. Called before it starts its card. @param tsc now.
  void arrive(uint32_t member, uint64_t epoch, uint64_t tsc) {
    members_[member].tsc[epoch % kEpochs].store(tsc, std::memory_order_relaxed);
    // release: the time before the epoch; pairs with last_arrival().
    members_[member].arrived.store(epoch, std::memory_order_release);
  }
  /// A barrier has ended for a member, as OK or not.
  void end(uint32_t member, uint64_t epoch) {
    members_[member].ended.store(epoch, std::memory_order_relaxed);
  }
  /// When the last member arrived at an epoch. @return 0: a member has not arrived.
  [[nodiscard]] uint64_t last_arrival(uint64_t epoch) const {
    uint64_t last = 0;
    for (const Member& member : members_) {
      // acquire: pairs with arrive().
      if (member.arrived.load(std::memory_order_acquire) < epoch) {
        return 0;
      }
      last = std::max(last, member.tsc[epoch % kEpochs].load(std::memory_order_relaxed));
    }
    return last;
  }
  /// Whether an epoch has ended at all members.
  [[nodiscard]] bool all_ended(uint64_t epoch) const {
    return std::ranges::all_of(members_, [epoch](const Member& member) {
      return member.ended.load(std::memory_order_relaxed) >= epoch;
    });
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;
  static constexpr uint32_t kEpochs = 4;  // no member is more than one epoch ahead

  struct alignas(64) Member {
    std::atomic<uint64_t> arrived;
    std::atomic<uint64_t> ended;
    std::array<std::atomic<uint64_t>, kEpochs> tsc{};
  };

  std::vector<Member> members_;
  std::atomic<uint64_t> top_;  // greatest epoch at which a member has arrived, and kClosed
};

}  // namespace rio::testpmd
