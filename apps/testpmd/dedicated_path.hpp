/// @file
/// One dedicated queue and its sender: the facts that both ends know, and what both ends have.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/testpmd/stream.hpp"
#include "pmd/mem/alignment_plan.hpp"
#include "pmd/mem/bounce_pool.hpp"

namespace rio::testpmd {

/// Transfers of a lane are numbered from 0; both ends have `slots` buffers and use them in turn.
/// The receiver grants transfers once their entries are posted; the sender confirms those that were
/// delivered whole, and only these are looked at. After a failure the lane is broken: the sender
/// lets it run dry, the receiver closes and opens the queue, and both go on with `resume_at`.
struct DedicatedPath {
  enum class State : uint32_t { kRunning, kBroken, kDry };

  TestPort* from = nullptr;
  uint32_t from_pair = 0;
  TestPort* to = nullptr;
  uint32_t queue = 0;
  uint32_t source = 0;  ///< destID of the sender
  uint8_t mbox = 0;
  uint16_t flow = 0;
  uint32_t slots = 0;  ///< power of two
  pmd::mem::Cut cut;   ///< the receiver's; the grant carries it

  // Written by the receiver; release pairs with the sender's acquire: entries are posted.
  alignas(64) std::atomic<uint64_t> granted{0};
  // Written by the sender; release pairs with the receiver's acquire: completions were OK.
  alignas(64) std::atomic<uint64_t> confirmed{0};
  // kRunning -> kBroken -> kDry by the sender, kDry -> kRunning by the receiver.
  std::atomic<State> state{State::kRunning};
  std::atomic<uint64_t> resume_at{0};
};

/// One end of a path: buffers of its user, the plan of each, and buffers to bounce.
class DedicatedEnd {
 protected:
  /// @param port of this end.
  DedicatedEnd(const RunSetup& setup, DedicatedPath& lane, const TestPort& port, Stream& owner);

  using MakePlan =
      std::function<int(const pmd::mem::Range&, const pmd::mem::AlignRules&, pmd::mem::Plan* out)>;
  using AddMessage =
      std::function<void(uint32_t slot, const pmd::mem::PlanMessage&, uint64_t iova)>;
  /// Allocate and plan all slots. @param verb, plan_for for errors: "send", "to send".
  /// @param add is called for each message of each slot in turn.
  /// @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] int allocate(const char* verb, const char* plan_for, const MakePlan& make_plan,
                             const AddMessage& add, std::string* error);
  /// The card may still use the memory: it stays allocated.
  void leave_memory();
  [[nodiscard]] uint32_t index_of(uint64_t transfer) const {
    return static_cast<uint32_t>(transfer & (lane_.slots - 1));
  }
  /// The user's bytes of a slot.
  [[nodiscard]] uint8_t* bytes(uint32_t index) const {
    return memory_.va(uint64_t{index} * stride_bytes_ + offset_bytes_);
  }
  /// Call `copy(bounce buffer, message)` for the bounced messages of a slot, and count all.
  template <typename Copy>
  void bounce_messages(uint32_t index, Copy&& copy) {
    const pmd::mem::Plan& plan = slots_[index].plan;
    for (uint32_t i = 0; i < messages_each_; ++i) {
      const uint32_t bounce = bounces_[index * messages_each_ + i];
      if (bounce != pmd::mem::BouncePool::kNone) {
        copy(bounce, plan.messages[i]);
      }
    }
    owner_.stats.bytes_placed.add(plan.bytes_placed);
    owner_.stats.bytes_copied.add(plan.bytes_copied);
  }

  struct Slot {
    pmd::mem::Plan plan;
    uint32_t left = 0;  // messages that are not complete
    uint64_t start_tsc = 0;
  };

  DedicatedPath& lane_;
  Verifier& verifier_;
  Stream& owner_;
  const uint32_t size_bytes_;
  std::vector<Slot> slots_;
  uint32_t messages_each_ = 0;  // of a slot
  std::unique_ptr<pmd::mem::BouncePool> bounce_;

 private:
  const TestPort& port_;
  const uint32_t offset_bytes_;
  const uint32_t stride_bytes_;
  CardMemory memory_;
  std::vector<uint32_t> bounces_;  // buffer of each message, kNone if it is in place
};

}  // namespace rio::testpmd
