/// @file
/// The barriers of one group in shared memory. Private to lib/barrier.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>

#include "lib/barrier/group.hpp"
#include "lib/barrier/memory_meeting.hpp"

namespace rio::barrier {

/// Thread rule: as Group.
class MemoryPart {
 public:
  /// Make the memory (rank 0), or open it. @param serial, key of the group. @return false: it
  /// cannot be had.
  [[nodiscard]] bool load(uint64_t key, uint32_t serial, uint32_t ranks, uint32_t rank) {
    char name[64];
    std::snprintf(name, sizeof(name), ".barrier-%016llx-%08x", static_cast<unsigned long long>(key),
                  serial);
    const int rc = rank == 0 ? MemoryMeeting::create(name, ranks, rank, &meeting_)
                             : MemoryMeeting::open(name, ranks, rank, &meeting_);
    return rc == 0;
  }
  /// All members have opened the memory.
  void start() { meeting_->hide(); }
  /// Hot.
  void arrive(std::span<const uint8_t> shows) { meeting_->arrive(shows); }
  [[nodiscard]] std::span<const uint8_t> shown(uint32_t rank) const {
    return meeting_->shown(rank);
  }
  [[nodiscard]] bool has_passed() const { return meeting_->has_passed(); }
  [[nodiscard]] uint32_t epoch() const { return static_cast<uint32_t>(meeting_->epoch()); }
  /// Tell all members of a failure. @return the failure of the group: that of the member that was
  /// first.
  Failure fail(int error, uint32_t culprit) {
    meeting_->fail(error, culprit);
    return failure();
  }
  /// Read the failure that a member has told; now and then also look whether the members for which
  /// this one waits live. @return error 0: the group has not failed.
  [[nodiscard]] Failure check(uint64_t now_ns) {
    if (!has_passed() && now_ns > looked_ns_ + kLookNs) {
      looked_ns_ = now_ns;
      meeting_->look_for_lost();
    }
    return failure();
  }

 private:
  [[nodiscard]] Failure failure() const {
    const MemoryMeeting::Failure failure = meeting_->failure();
    return {failure.error, failure.rank};
  }

  static constexpr uint64_t kLookNs = 100'000'000;

  std::unique_ptr<MemoryMeeting> meeting_;
  uint64_t looked_ns_ = 0;
};

}  // namespace rio::barrier
