/// @file
/// Memory for notifications that arrive before their descriptor is posted. [S1] calls it DAMQ.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fpga/model/barrier/plan.hpp"

namespace rio::model::barrier {

/// Room for early notifications that the engines of a card share. One thread.
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

  /// Keep room for this engine alone, in the place of what it had. @param wanted any value: it gets
  /// what is free. regs: barrier.EARLY_RESERVE
  void reserve(uint32_t wanted);
  /// Store a notification; one that is stored already takes no room. @return false: it is full.
  [[nodiscard]] bool store(uint32_t source, const Notice& notice);
  /// Take out all notifications of a group: those of an epoch are passed to `each`, and those of
  /// the epoch behind it stay. Others have no use any more. @param each called with source and
  /// round, in the order of their arrival.
  template <class Each>
  void take(uint32_t group, uint32_t epoch, const Each& each) {
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
  uint32_t taken_ = 0;  // places of the room: as many as are reserved, or used if these are more
};

}  // namespace rio::model::barrier
