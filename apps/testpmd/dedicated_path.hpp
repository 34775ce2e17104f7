/// @file
/// One dedicated queue and its sender: the facts that both ends know, and the two ends.
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

/// Transfers of a path are numbered from 0; both ends have `slots` buffers and use them in turn.
/// The receiver grants transfers once their entries are posted; the sender confirms those that were
/// delivered whole, and only these are looked at. After a failure the path is broken: the sender
/// lets it run dry, the receiver closes and opens the queue, and both go on with `resume_at`.
struct DedicatedPath {
  enum class State : uint32_t { kRunning, kBroken, kDry };

  /// @param port that sends; its peer is in this process. @param number of the queue.
  DedicatedPath(TestPort& port, uint32_t number) : from(port), to(*port.peer()), queue(number) {}

  TestPort& from;
  TestPort& to;
  const uint32_t queue;
  const uint32_t from_pair = queue / regs::kMultiMailboxes;
  const uint32_t source = from.dest_id(from_pair);  ///< destID of the sender
  const uint8_t mbox = static_cast<uint8_t>(queue % regs::kMultiMailboxes);
  const uint16_t flow = static_cast<uint16_t>(from.index * regs::kDedicatedQueues + queue);
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
  DedicatedEnd(const RunSetup& setup, std::shared_ptr<DedicatedPath> path, const TestPort& port,
               Stream& owner);

  using MakePlan =
      std::function<int(const pmd::mem::Range&, const pmd::mem::AlignRules&, pmd::mem::Plan* out)>;
  using AddMessage =
      std::function<void(uint32_t slot, const pmd::mem::PlanMessage&, uint64_t iova)>;
  /// Allocate and plan all slots. @param verb for errors: "send".
  /// @param add is called for each message of each slot in turn.
  /// @return 0, or -EINVAL with the remedy in `error`.
  [[nodiscard]] int allocate(const char* verb, const MakePlan& make_plan, const AddMessage& add,
                             std::string* error);
  /// The card may still use the memory: it stays allocated.
  void leave_memory();
  [[nodiscard]] uint32_t index_of(uint64_t transfer) const {
    return static_cast<uint32_t>(transfer & (path_.slots - 1));
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

  const std::shared_ptr<DedicatedPath> shared_;
  DedicatedPath& path_;
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

/// Receiving end: posts entries by the alignment plan, collects them, copies what was bounced to
/// its place, checks it. Part of a stream; turn() is hot but for recovery.
class DedicatedReceiver : private DedicatedEnd {
 public:
  DedicatedReceiver(const RunSetup& setup, const std::shared_ptr<DedicatedPath>& path,
                    Stream& owner)
      : DedicatedEnd(setup, path, path->to, owner) {}
  ~DedicatedReceiver();
  DedicatedReceiver(const DedicatedReceiver&) = delete;
  DedicatedReceiver& operator=(const DedicatedReceiver&) = delete;

  /// Allocate, set path.cut and open the queue; before turn(). @return 0, or -EINVAL with the
  /// remedy in `error`.
  [[nodiscard]] int start(std::string* error);
  /// @param may_post false: no new entries. @return entries completed.
  uint32_t turn(bool may_post) noexcept;
  /// All that was confirmed has been looked at.
  [[nodiscard]] bool quiet() const noexcept {
    return seen_ >= path_.confirmed.load(std::memory_order_acquire) &&
           path_.state.load(std::memory_order_acquire) == DedicatedPath::State::kRunning;
  }

 private:
  [[nodiscard]] int open(std::string* error);
  uint32_t reap() noexcept;
  void look() noexcept;
  void finish(uint32_t index) noexcept;
  void post() noexcept;
  void recover() noexcept;

  pmd::DedicatedRxQueue* queue_ = nullptr;
  std::vector<pmd::DedicatedEntry> entries_;  // of all slots in turn, messages_each_ for each
  uint32_t at_ = 0;                           // in entries_: the next to post
  uint32_t unposted_ = 0;                     // entries of free slots that are not posted
  uint32_t partial_ = 0;  // entries posted of the transfer that is next to be granted
  uint64_t granted_ = 0;  // transfers whose entries are all posted
  uint64_t seen_ = 0;     // transfers that were looked at
};

/// Sending end: cuts each transfer as the receiver did, and sends it in place where it can. Part of
/// a stream, which shares the transmit queue among its paths; hot.
class DedicatedSender : private DedicatedEnd {
 public:
  /// A cookie is path * this + slot.
  static constexpr uint32_t kCookieSlots = 32;

  /// After the receiver of the path was started. @param paths_of_port share --count.
  /// @param index number of the path among those of the port; cookies begin with it.
  DedicatedSender(const RunSetup& setup, const std::shared_ptr<DedicatedPath>& path,
                  uint32_t paths_of_port, uint32_t index, Stream& owner);
  /// Before turn(). @return 0, or -EINVAL with the remedy in `error`.
  [[nodiscard]] int start(std::string* error);

  /// Send up to a burst. @return messages.
  uint32_t turn(bool may_send) noexcept;
  /// A message of the path has completed. @param slot as its cookie says.
  void done(uint32_t slot, const pmd::TxDone& done) noexcept;
  [[nodiscard]] bool quiet() const noexcept {
    return in_flight_ == 0 && confirmed_ == begun_ &&
           path_.state.load(std::memory_order_acquire) == DedicatedPath::State::kRunning;
  }
  [[nodiscard]] bool finished() const noexcept { return left_ == 0; }

 private:
  void begin(uint32_t index) noexcept;
  void confirm() noexcept;
  void mend() noexcept;

  pmd::TxQueue& queue_;
  const uint32_t index_;
  const uint32_t burst_;
  uint64_t left_;                         // transfers of --count
  std::vector<pmd::TxMessage> messages_;  // of all slots in turn, messages_each_ for each
  uint32_t at_ = 0;                       // in messages_: the next to send
  uint32_t unsent_ = 0;                   // messages of transfers that are begun
  uint64_t begun_ = 0;                    // transfers that have their bytes and their number
  uint64_t confirmed_ = 0;                // transfers whose messages were all delivered
  uint32_t in_flight_ = 0;
  LinkPause pause_;
};

}  // namespace rio::testpmd
