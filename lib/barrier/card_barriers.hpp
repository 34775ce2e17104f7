/// @file
/// The barriers that the card's engine runs for the groups of a context. Private to lib/barrier.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/barrier/id_set.hpp"
#include "lib/barrier/schedule.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::barrier {

/// Numbers, descriptors and slots of a queue pair's engine. Nothing here needs the users' polls but
/// to learn of what has happened. Thread rule: as BarrierContext.
class CardBarriers {
 public:
  /// A member of the group that has a number. Called by attend().
  class User {
   public:
    /// load() is done. @param error 0, or -errno.
    virtual void on_loaded(int error) = 0;
    /// The barrier of the last arrive() has ended. @param place at which peer, unless kOk: 2r + w
    /// as in Schedule.
    virtual void on_end(pmd::Status status, uint32_t place) = 0;

   protected:
    ~User() = default;
  };

  /// Open the barrier ring. @param endpoint outlives it. @param out null if the card has no engine.
  /// @return 0, or as pmd::QueuePair::open_barriers().
  [[nodiscard]] static int open(Endpoint& endpoint, uint64_t rest_ns,
                                std::unique_ptr<CardBarriers>* out);

  [[nodiscard]] IdSet free_ids(uint64_t now_ns) const { return ids_.free(now_ns); }
  /// Take a number, and make its group known to the card; on_loaded() follows.
  /// @param desc of op kLoad, with the group's first epoch. @return false: the number is not free.
  [[nodiscard]] bool load(uint32_t id, const regs::BarrierDesc& desc, uint64_t now_ns, User& user);
  /// Hot. Arrive at a barrier; on_end() follows. @param id loaded, and no barrier of it runs.
  void arrive(uint32_t id, uint32_t epoch);
  /// End the barrier that runs, if one does, and tell the peers.
  void cancel(uint32_t id);
  /// The user goes. The number rests once nothing of it runs any more.
  void release(uint32_t id);

  /// Hot. Take what the card has completed.
  void attend() {
    if (queue_.outstanding() != 0 || !waiting_.empty()) {
      work();
    }
  }
  /// Whether the card still has to tell a peer of a barrier's end.
  [[nodiscard]] bool is_busy() const { return queue_.outstanding() != 0 || !waiting_.empty(); }

 private:
  enum class Kind : uint8_t { kLoad, kRun, kCancel };
  static constexpr uint8_t kNoSlot = 0xFF;
  /// A number.
  struct Place {
    User* user = nullptr;
    regs::BarrierDesc desc{};  // of kRun
    uint32_t epoch = 0;
    uint8_t slot = kNoSlot;
    bool has_run = false;
    std::array<bool, 3> pending{};  // by Kind: posted, or in waiting_
  };
  struct Wish {
    uint32_t id;
    Kind kind;
  };

  CardBarriers(pmd::BarrierQueue& queue, uint32_t slots, uint64_t rest_ns)
      : queue_(queue), ids_(rest_ns), slots_(slots) {}
  void work();
  void ask(uint32_t id, Kind kind);
  [[nodiscard]] bool post(uint32_t id, Kind kind);
  void take(const pmd::BarrierDone& done);
  void free_if_quiet(uint32_t id);

  pmd::BarrierQueue& queue_;
  IdPool ids_;
  uint32_t slots_;
  uint32_t slots_taken_ = 0;  // bits
  std::array<Place, kIds> places_{};
  std::vector<Wish> waiting_;  // for room in the ring
};

}  // namespace rio::barrier
