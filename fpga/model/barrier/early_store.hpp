/// @file
/// The early-arrival memory: notifications that arrive before their descriptor. [S1] calls it DAMQ.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fpga/model/barrier/plan.hpp"

namespace rio::model::barrier {

/// Places for early notifications, which the engines of a card share. One thread.
class EarlyRoom {
 public:
  /// @param total notifications. regs: barrier.CAP.EARLY
  explicit EarlyRoom(uint32_t total) : free_(total) {}

  /// @param count places wanted. @return how many it gives: `count`, or what is free.
  [[nodiscard]] uint32_t take(uint32_t count) {
    const uint32_t given = std::min(count, free_);
    free_ -= given;
    return given;
  }
  void give_back(uint32_t count) { free_ += count; }

 private:
  uint32_t free_;
};

/// Early notifications of one engine. One thread.
class EarlyStore {
 public:
  /// @param room outlives the store.
  explicit EarlyStore(EarlyRoom& room) : room_(room) {}
  EarlyStore(const EarlyStore&) = delete;
  EarlyStore& operator=(const EarlyStore&) = delete;
  ~EarlyStore();

  /// Set places aside for this engine alone, instead of those set aside before. @param wanted any
  /// value; if fewer places are free, it gets these. regs: barrier.EARLY_RESERVE
  void reserve(uint32_t wanted);
  /// Store a notification; a copy of one that is stored takes no place. @return false: there is no
  /// place.
  [[nodiscard]] bool store(uint32_t source, const Notice& notice);
  /// Take out the notifications of a group. Those of `epoch` are passed to `each`, those of the
  /// next epoch stay, and all others are dropped. @param each called with source and round, in the
  /// order of arrival.
  template <class Each>
  void take(uint32_t group, uint32_t epoch, const Each& each) {
    if (stored_.empty()) [[likely]] {
      return;
    }
    std::vector<Early> kept;
    std::vector<Early> taken;
    for (const Early& early : stored_) {
      const uint32_t ahead = (early.notice.epoch - epoch) & Notice::kEpochMask;
      if (early.notice.group != group || ahead == 1) {
        kept.push_back(early);
      } else if (ahead == 0) {
        taken.push_back(early);
      }
    }
    stored_.swap(kept);
    fit_room();
    for (const Early& early : taken) {
      each(early.source, early.notice.round);
    }
  }
  void clear();
  [[nodiscard]] size_t size() const { return stored_.size(); }

 private:
  struct Early {
    uint32_t source;
    Notice notice;
  };
  void fit_room();

  EarlyRoom& room_;
  std::vector<Early> stored_;
  uint32_t reserved_ = 0;
  uint32_t taken_ = 0;  // places taken of the room: reserved or used ones, whichever is more
};

}  // namespace rio::model::barrier
