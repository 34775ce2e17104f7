/// @file
/// The barriers of a group whose members are processes of one machine and user: they meet in memory
/// that they share, without messages. Private to lib/barrier.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/mapping.hpp"
#include "lib/barrier/group.hpp"

namespace rio::barrier {

/// A hash that is the same for all processes that can share memory in the user's folder and see
/// each other's process numbers, and differs for others; 0: there is no such memory. Any thread.
[[nodiscard]] uint64_t node_mark();

/// One member's part. A barrier goes on without polls of this member. One thread. The members trust
/// each other, as processes of one user do.
class MemoryMeeting {
 public:
  /// Why the meeting has failed.
  struct Failure {
    int error = 0;      ///< 0: it has not
    uint32_t rank = 0;  ///< the member that was the cause
  };

  /// Make the memory; called by one member, before the others open() it.
  /// @param name of a file in the user's folder; the creator calls hide() once all have opened it.
  /// @param rank of this member. @param out set only on success.
  /// @return 0; -EEXIST; errors of the file system.
  [[nodiscard]] static int create(const std::string& name, uint32_t members, uint32_t rank,
                                  std::unique_ptr<MemoryMeeting>* out);
  /// Open the memory that another member has made. @param rank of this member. @param out set only
  /// on success. @return 0; -ENOENT, -EINVAL (it is no such memory, or of another number of
  /// members).
  [[nodiscard]] static int open(const std::string& name, uint32_t members, uint32_t rank,
                                std::unique_ptr<MemoryMeeting>* out);
  /// Leave: members that arrive at a barrier at which this one has not arrived learn of it.
  ~MemoryMeeting();
  MemoryMeeting(const MemoryMeeting&) = delete;
  MemoryMeeting& operator=(const MemoryMeeting&) = delete;
  /// Remove the file's name. Members that have opened it keep the memory. All members do so, since
  /// the one that has made it may have been killed.
  void hide();

  /// Hot. Arrive at the next barrier. @pre has_passed().
  /// @param shows bytes for shown() at all members, at most kShownMost; all show as many. Copied.
  void arrive(std::span<const uint8_t> shows = {}) {
    ++epoch_;
    own().shown_bytes[epoch_ & 1] = static_cast<uint16_t>(shows.size());
    if (!shows.empty()) {
      is_brief_ = shows.size() <= kBriefMost;
      std::memcpy(shown_by(own()), shows.data(), shows.size());
    }
    // release: all that this member has done before is visible to those that pass. Pairs with
    // has_passed() and look_for_lost().
    own().arrived.store(epoch_, std::memory_order_release);
    if (members_ <= kLookedAtMost) {
      return;
    }
    // acquire: the last member to arrive sees the work of the others, and passes it on by `ended`.
    const uint64_t arrived = words_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (arrived == epoch_ * members_) {
      words_->ended.store(epoch_, std::memory_order_release);
    }
  }
  /// Hot. Whether the last barrier at which this member has arrived has ended; true before the
  /// first.
  [[nodiscard]] bool has_passed() const {
    if (members_ > kLookedAtMost) {
      return words_->ended.load(std::memory_order_acquire) == epoch_;
    }
    for (uint32_t rank = 0; rank < members_; ++rank) {
      if (member(rank).arrived.load(std::memory_order_acquire) < epoch_) {
        return false;
      }
    }
    return true;
  }
  /// Hot. The bytes that a member has shown at the last barrier, until this member arrives at the
  /// next one: a member can be one barrier ahead, for which it uses the other half of its bytes.
  /// @pre has_passed(). @return of another length than this member's: its bytes are not valid.
  [[nodiscard]] std::span<const uint8_t> shown(uint32_t rank) const {
    Member& from = member(rank);
    return {shown_by(from), from.shown_bytes[epoch_ & 1]};
  }
  /// The epoch of the last barrier at which this member has arrived.
  [[nodiscard]] uint64_t epoch() const { return epoch_; }

  /// Hot. Whether a member has told of a failure.
  [[nodiscard]] bool has_failed() const {
    return words_->failed.load(std::memory_order_relaxed) != 0;
  }
  /// The failure that a member has told. @return error 0: none has.
  [[nodiscard]] Failure failure() const;
  /// Tell all members of a failure; the first failure stays. @param error -errno.
  void fail(int error, uint32_t rank);
  /// While has_passed() is false: find out whether a member for which this one waits has died or
  /// left, and tell all if so. Ends the barrier if all have arrived and one of them died before it
  /// said so. Reads a file for each member that has not arrived.
  void look_for_lost();

 private:
  static constexpr uint32_t kBriefMost = 16;
  /// Most members that look at each other's `arrived`. More members count: each of them moves the
  /// line of the count, and then reads that of `ended`, however many they are.
  static constexpr uint32_t kLookedAtMost = 4;

  /// In the shared memory. Members that count write `arrived` and wait for `ended`, so both have
  /// cache lines of their own.
  struct Words {
    alignas(64) std::atomic<uint64_t> arrived;  ///< of all members, at all barriers
    alignas(64) std::atomic<uint64_t> ended;    ///< number of barriers
    std::atomic<uint64_t> failed;               ///< error << 32 | rank; 0: not
    alignas(64) uint64_t magic;
    uint64_t members;
  };
  struct alignas(64) Member {
    std::atomic<uint64_t> arrived;  ///< at how many barriers
    std::atomic<uint64_t> left;     ///< 0: it has not left; else `arrived` when it left, plus one
    // By the lowest bit of the barrier's number. At most kBriefMost bytes lie in `brief`, so that
    // they move with `arrived`.
    uint16_t shown_bytes[2];
    alignas(16) uint8_t brief[2][kBriefMost];
    alignas(64) std::atomic<uint64_t> process;
    std::atomic<uint64_t> started;  ///< of the process, in ticks since the machine's start
    alignas(64) uint8_t shown[2][kShownMost];
  };
  static_assert(offsetof(Member, process) == 64, "`brief` is in the line of `arrived`");
  static constexpr uint64_t kMagic = 0x7269'6F62'6172'7202;  // "riobarr", and the edition

  MemoryMeeting(base::Mapping memory, uint32_t members, uint32_t rank);
  [[nodiscard]] static size_t bytes_for(uint32_t members);
  [[nodiscard]] static int map(const std::string& path, int flags, size_t bytes,
                               base::Mapping* out);
  [[nodiscard]] Member& member(uint32_t rank) const {
    return reinterpret_cast<Member*>(words_ + 1)[rank];
  }
  [[nodiscard]] Member& own() const { return member(rank_); }
  [[nodiscard]] uint8_t* shown_by(Member& member) const {
    return is_brief_ ? member.brief[epoch_ & 1] : member.shown[epoch_ & 1];
  }
  void sign();
  [[nodiscard]] static bool has_died(const Member& member);

  base::Mapping memory_;
  Words* words_;
  uint64_t members_;
  uint32_t rank_;
  uint64_t epoch_ = 0;
  bool is_brief_ = false;  // what the members show at this barrier
  std::string path_;       // to be removed; empty: it was
};

}  // namespace rio::barrier
