/// @file
/// The barrier engine of a port's card, shared by the groups of a context.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lib/barrier/id_set.hpp"
#include "lib/msg/message_port.hpp"
#include "pmd/dev/barrier_queue.hpp"

namespace rio::barrier {

/// Opens the barrier ring, gives numbers and slots to groups, and completions to the group of each.
/// Thread rule: as BarrierContext.
class CardBarriers {
 public:
  /// A group's part. Called by reap().
  class Part {
   public:
    /// load() is done. @param is_ok false: the card refused the descriptor.
    virtual void on_loaded(bool is_ok) = 0;
    /// The barrier of arrive() has ended.
    virtual void on_ended(const pmd::BarrierDone& done) = 0;

   protected:
    ~Part() = default;
  };
  /// @param port outlives it. @return null: the card has no engine, something else has opened its
  /// ring, or there is no memory.
  [[nodiscard]] static std::unique_ptr<CardBarriers> open(msg::MessagePort& port);
  /// Stops the ring: what runs ends, and its peers are told.
  ~CardBarriers();
  CardBarriers(const CardBarriers&) = delete;
  CardBarriers& operator=(const CardBarriers&) = delete;

  /// Most rounds of a descriptor.
  [[nodiscard]] uint32_t rounds() const { return rounds_; }
  [[nodiscard]] IdSet free_ids(uint64_t now_ns) const { return ids_.free(now_ns); }
  /// The epoch of a group's first barrier.
  static constexpr uint32_t kFirstEpoch = 1;
  /// Take a number, and load its group's descriptor, at which the card forgets the number's earlier
  /// group. @param desc op kRun, group `id`. @param part lives until give_back().
  /// @return false: the number is not free, or the ring is full.
  [[nodiscard]] bool load(uint32_t id, const regs::BarrierDesc& desc, Part& part, uint64_t now_ns);
  /// All members have loaded: put the group into a slot, if one is free.
  void prepare(uint32_t id);
  /// Hot. Run the next barrier: one BAR write. @return false: the ring is full.
  [[nodiscard]] bool arrive(uint32_t id, uint32_t epoch);
  /// End the barrier that runs, and tell its peers.
  void cancel(uint32_t id, uint32_t epoch);
  /// Give back a number that its group needs no more; the part is not called again. The number
  /// rests from the moment when none of its descriptors is on the card.
  /// @param has_failed the number rests for as long as peers may send cancellations again.
  void give_back(uint32_t id, bool has_failed);
  /// Hot. Whether reap() may have something to do: the card has a descriptor.
  [[nodiscard]] bool is_busy() const { return outstanding_ != 0; }
  /// Hot. Take completions. Called after progress of the port, which has let the card work.
  void reap();

 private:
  static constexpr uint32_t kNoSlot = regs::kBarrierSlots;
  enum class Kind : uint8_t { kLoad, kRun, kCancel };

  struct Group {
    Part* part = nullptr;
    regs::BarrierDesc desc{};
    uint32_t use = 0;  // in cookies; distinguishes the groups that have had the number
    uint32_t outstanding = 0;
    uint32_t slot = kNoSlot;
    bool is_free = true;
    bool is_given_back = false;
    bool has_failed = false;
    bool has_run = false;
  };

  explicit CardBarriers(msg::MessagePort& port);
  [[nodiscard]] uint64_t cookie(uint32_t id, Kind kind) const {
    return id | uint64_t{static_cast<uint8_t>(kind)} << 8 | uint64_t{groups_[id].use} << 16;
  }
  [[nodiscard]] bool post(uint32_t id, regs::BarrierOp op, Kind kind, uint32_t epoch);
  void take(const pmd::BarrierDone& done);
  void retire(uint32_t id);
  void count_start(Group& group) {
    ++group.outstanding;
    ++outstanding_;
  }

  Endpoint& endpoint_;
  bool has_rails_;  // progress of the port looks at another card, too
  pmd::BarrierQueue* queue_;
  IdPool ids_;
  uint64_t timeout_ns_;
  uint32_t resends_;
  uint32_t rounds_;
  uint32_t slots_;
  uint32_t outstanding_ = 0;  // of all groups
  std::array<bool, regs::kBarrierSlots> slot_taken_{};
  std::array<Group, kIds> groups_{};
};

}  // namespace rio::barrier
