/// @file
/// The rules by which one member takes part in the barriers of a group in software, without I/O. It
/// needs a transport that delivers each notification once, and those of one sender in order. The
/// card's engine has more rules, since its notifications may be lost, copied and overtaken.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lib/barrier/schedule.hpp"

namespace rio::barrier {

/// One member. It knows of two epochs: the last one at which it has arrived, and the next one,
/// since a peer that has passed a barrier may be at the next before this member has passed. No peer
/// can be further ahead: it would have passed a barrier at which this member has not arrived. One
/// thread.
class Meeting {
 public:
  /// How a notification was used.
  enum class Taken : uint8_t {
    kCounted,
    kEarly,    ///< counted, for the barrier at which this member has not arrived
    kForeign,  ///< dropped: not awaited, or a copy
  };

  /// @param schedule one without a broken rule; 0 rounds: every barrier ends at once.
  /// @param epoch that of the first barrier, less one.
  Meeting(const Schedule& schedule, uint32_t epoch) : schedule_(schedule), epoch_(epoch) {}

  /// Arrive at the next barrier. @pre has_passed().
  /// @param send called as send(rank, round) for each notification that is to be sent now.
  template <class Send>
  void arrive(const Send& send) {
    ++epoch_;
    sent(epoch_) = 0;
    has_passed_ = false;
    proceed(send);
  }

  /// A notification has arrived. @param rank, round, epoch any values. @param send as arrive()'s.
  template <class Send>
  [[nodiscard]] Taken receive(uint32_t rank, uint32_t round, uint32_t epoch, const Send& send) {
    const uint32_t ahead = epoch - epoch_;
    const uint64_t bit = awaited_bit(rank, round);
    if (ahead > 1 || (ahead == 0 && has_passed_) || bit == 0 || (got(epoch) & bit) != 0) {
      return Taken::kForeign;
    }
    got(epoch) |= bit;
    if (ahead == 1) {
      return Taken::kEarly;
    }
    proceed(send);
    return Taken::kCounted;
  }

  /// Send again the notifications of this barrier and the one before to a member. Only these can
  /// have been lost, since no member is more than one epoch ahead. @param send called as
  /// send(round, epoch).
  template <class Send>
  void send_again(uint32_t rank, const Send& send) {
    for (const uint32_t epoch : {epoch_ - 1, epoch_}) {
      for (uint64_t left = sent(epoch); left != 0; left &= left - 1) {
        const auto place = static_cast<uint32_t>(std::countr_zero(left));
        if (schedule_.peers[place] == rank) {
          send(place / kWays, epoch);
        }
      }
    }
  }

  /// Whether the last barrier at which this member has arrived has ended; true before the first.
  [[nodiscard]] bool has_passed() const { return has_passed_; }
  /// The epoch of the last barrier at which this member has arrived.
  [[nodiscard]] uint32_t epoch() const { return epoch_; }
  /// Bits of the schedule's `await` that are missing in this barrier.
  [[nodiscard]] uint64_t missing() const {
    return has_passed_ ? 0 : schedule_.await & ~got_[epoch_ & 1];
  }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

 private:
  [[nodiscard]] uint64_t& got(uint32_t epoch) { return got_[epoch & 1]; }
  [[nodiscard]] uint64_t& sent(uint32_t epoch) { return sent_[epoch & 1]; }

  [[nodiscard]] uint64_t awaited_bit(uint32_t rank, uint32_t round) const {
    for (uint32_t way = 0; way < kWays && round < schedule_.rounds; ++way) {
      if (schedule_.awaits(round, way) && schedule_.peer(round, way) == rank) {
        return peer_bit(round, way);
      }
    }
    return 0;
  }

  /// Send what is due in the rounds up to the first one in which something is missing, that one
  /// included; end the barrier if nothing is missing.
  template <class Send>
  void proceed(const Send& send) {
    const uint64_t lacks = missing();
    const uint32_t places = kWays * kRoundsMax;
    const uint32_t end =
        lacks == 0 ? places : (static_cast<uint32_t>(std::countr_zero(lacks)) / kWays + 1) * kWays;
    const uint64_t due = schedule_.send & ((uint64_t{1} << end) - 1) & ~sent(epoch_);
    sent(epoch_) |= due;
    for (uint64_t left = due; left != 0; left &= left - 1) {
      const auto place = static_cast<uint32_t>(std::countr_zero(left));
      send(schedule_.peers[place], place / kWays);
    }
    if (lacks == 0) {
      got(epoch_) = 0;  // the epoch after the next uses the same word
      has_passed_ = true;
    }
  }

  Schedule schedule_;
  std::array<uint64_t, 2> got_{};   // bits of `await`, by the epoch's lowest bit
  std::array<uint64_t, 2> sent_{};  // bits of `send`, by the epoch's lowest bit
  uint32_t epoch_;
  bool has_passed_ = true;
};

}  // namespace rio::barrier
