/// @file
/// State that all engines of a card share.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "fpga/model/config.hpp"
#include "fpga/model/core/flow.hpp"
#include "fpga/model/core/host_port.hpp"
#include "fpga/model/core/ring.hpp"
#include "fpga/model/ends.hpp"
#include "fpga/model/wire.hpp"

namespace rio::model {

/// A view of the registers: reads host-written words, writes card-written ones. The creator of the
/// card owns the memory, which processes may share.
class Bar {
 public:
  explicit Bar(uint8_t* memory) : memory_(memory) {}

  [[nodiscard]] uint32_t load(uint32_t offset) const {
    // acquire: what the host wrote before the word; pairs with Mmio::write32.
    return __atomic_load_n(word(offset), __ATOMIC_ACQUIRE);
  }
  /// Load a value of two words.
  [[nodiscard]] uint64_t load64(uint32_t low_offset, uint32_t high_offset) const {
    return static_cast<uint64_t>(load(high_offset)) << 32 | load(low_offset);
  }
  void store(uint32_t offset, uint32_t value) const {
    // release: what the card did before the word; pairs with Mmio::read32.
    __atomic_store_n(reinterpret_cast<uint32_t*>(memory_ + offset), value, __ATOMIC_RELEASE);
  }
  [[nodiscard]] const uint32_t* word(uint32_t offset) const {
    return reinterpret_cast<const uint32_t*>(memory_ + offset);
  }

 private:
  uint8_t* memory_;
};

/// Draws faults from a seed. Counts them, so that a soak test can prove that each kind happened.
class Faults {
 public:
  explicit Faults(const FaultConfig& config) : config_(config), rng_(config.seed) {}

  [[nodiscard]] bool enabled() const { return config_.rate > 0.0 && config_.kinds != 0; }

  /// Whether this fault happens now.
  [[nodiscard]] bool draw(Fault fault) {
    if (!enabled() || (config_.kinds & static_cast<uint32_t>(fault)) == 0 ||
        !rng_.chance(config_.rate)) {
      return false;
    }
    ++drawn_[static_cast<size_t>(std::countr_zero(static_cast<uint32_t>(fault)))];
    return true;
  }
  [[nodiscard]] uint32_t below(uint32_t n) { return rng_.below(n); }
  /// How often each was drawn, by bit of Fault.
  [[nodiscard]] const std::array<uint64_t, 32>& drawn() const { return drawn_; }

 private:
  FaultConfig config_;
  base::Random rng_;
  std::array<uint64_t, 32> drawn_{};
};

/// A PCI function: the words of its queue pairs, the memory that they reach, their interrupts.
struct Function {
  Bar bar;
  HostPort* host;
  IrqSink* irqs;
};

struct Pair {
  Ring rings[regs::kRingsPerQp];
  uint32_t number = 0;
  uint32_t ring_set = 0;               ///< rings that it has, one bit each
  const Function* function = nullptr;  ///< which has the pair now
  uint32_t slot = 0;                   ///< the pair's number in that function's BAR
  bool live = false;                   ///< at least one of its rings is not stopped
  uint32_t dest_id = regs::kAllOnes;   ///< source ID of its packets
  uint8_t dedicated_open[regs::kMultiMailboxes] =
      {};  ///< open dedicated rings of each mailbox, one bit each
  uint32_t dedicated_source[regs::kDedicatedQueues] = {};
  uint32_t arrivals = 0;
  uint32_t lost_events = 0;
  uint32_t waiting = 0;    ///< entries that wait inside the card, of all flows
  uint32_t no_flight = 0;  ///< outstanding entries of the transmit ring that have no flight: long,
                           ///< doorbells, waiting; less flights that ended messages keep
  uint32_t resting = 0;    ///< letters in quarantine
  uint32_t blocked_head = 0;  ///< head of the transmit ring when it last had to wait
  uint32_t blocked_runs = 0;  ///< how often that head has had to wait
  Flow* last_flow = nullptr;  ///< none of its entries waits, so the fast paths may send to it
  std::unordered_map<uint32_t, std::unique_ptr<Flow>> flows;
};

inline constexpr uint8_t kNoPair = 0xFF;
inline constexpr uint8_t kNoEntry = kNoPair;

/// The latest end of a time-out, by docs/card.md.
[[nodiscard]] constexpr uint64_t latest_ns(uint64_t time_out_ns) {
  return time_out_ns + time_out_ns / 16 + 1'000'000;
}

/// One row of the receive map: the queue pairs that receive messages for one of the card's destIDs.
struct Owner {
  uint32_t dest_id = 0;
  uint8_t entry_of_mbox[regs::kMailboxes];  ///< of the receive map
  /// For fast/: the entry of each mailbox; kNoEntry if a dedicated ring may claim the message.
  uint8_t plain_entry[regs::kMailboxes];
  /// For each mailbox: the mailboxes with the same plain entry, one bit each.
  uint64_t plain_like[regs::kMailboxes];
  uint8_t pair_of_doorbells = kNoPair;
  uint8_t pair_of_requests = kNoPair;
};

/// Time-outs in force, from block ID.
struct Timers {
  uint64_t response_ns = 0;
  uint64_t receive_ns = 0;
  uint64_t retry_ns = 0;
  uint32_t retry_limit = 0;
};

/// Work that few cards have at any time; bits of Core::chores.
enum Chore : uint8_t {
  kBarrierRingChore = 1u << 0,  ///< a barrier ring runs
  kBarrierChore = 1u << 1,      ///< a barrier runs, or its peers are being told of its end
  kStopChore = 1u << 2,         ///< a ring is being stopped; above all others
};

struct Core {
  Core(const Config& cfg, Ends ends);

  Config config;
  /// Exact mode: segment by segment.
  bool exact = always_exact(config) || config.faults.rate > 0.0;
  bool link_up = false;
  uint8_t chores = 0;  ///< bits of Chore
  const char* thread =
      nullptr;  ///< identifies the thread that steps the card, for Wire::may_enter_neighbour()
  uint64_t now_ns = 0;
  Bar bar;
  HostPort host;
  Faults faults{config.faults};
  std::unique_ptr<Wire> wire;
  Clock* clock;
  IrqSink* irqs;
  Timers timers;
  PortCounts counts;
  std::vector<Pair> pairs;
  std::deque<HostPort> vf_hosts;
  std::vector<Function> functions;  ///< the physical one, then the virtual ones
  std::vector<Owner> owners;
  uint8_t pair_of_entry[regs::kRxMapEntries] = {};  ///< of the receive map
  Owner* last_owner = nullptr;

  [[nodiscard]] uint32_t ticks() const { return static_cast<uint32_t>(now_ns / kTickNs); }

  /// @return the owner of this destID; null: the card has no such destID.
  [[nodiscard]] Owner* owner(uint32_t dest_id) {
    if (last_owner != nullptr && last_owner->dest_id == dest_id) [[likely]] {
      return last_owner;
    }
    return find_owner(dest_id);
  }
  /// The flow of a pair toward a destination, created on first use; null: no route.
  [[nodiscard]] Flow* flow(Pair& pair, uint32_t dest_id) {
    if (pair.last_flow != nullptr && pair.last_flow->dest_id == dest_id &&
        !pair.last_flow->way->gone) [[likely]] {
      return pair.last_flow;
    }
    return find_flow(pair, dest_id);
  }
  /// Whether the response time-out has expired for a request sent at `since_ns` by a ring. Not if a
  /// live partner has not taken the request yet, unless the ring is being stopped.
  [[nodiscard]] bool late(const Flow& flow, uint32_t ring, uint64_t since_ns) const {
    if (now_ns <= since_ns || now_ns - since_ns <= timers.response_ns) {
      return false;
    }
    return !flow.way->watched || since_ns <= flow.way->answerable_ns ||
           !flow.pair.rings[ring].running();
  }
  /// The flow that an answer belongs to; null: nothing was ever sent to that destination.
  [[nodiscard]] Flow* known_flow(Pair& pair, uint32_t dest_id) {
    if (pair.last_flow != nullptr && pair.last_flow->dest_id == dest_id) [[likely]] {
      return pair.last_flow;
    }
    const auto it = pair.flows.find(dest_id);
    return it == pair.flows.end() ? nullptr : it->second.get();
  }
  /// Single-segment messages that a pair may still have in flight.
  [[nodiscard]] uint32_t flights_left(const Pair& pair) const {
    return config.flights + pair.no_flight - pair.rings[kTxRing].outstanding;
  }
  /// Call `fn(flow)` for all flows. It must not make a flow. @param only of this pair; null: of
  /// all.
  template <class Fn>
  void each_flow(Fn fn, const Pair* only = nullptr) {
    for (Pair& pair : pairs) {
      if (only != nullptr && only != &pair) {
        continue;
      }
      for (auto& [dest, flow] : pair.flows) {
        fn(*flow);
      }
    }
  }
  /// Whether any request waits to be taken, or to be pulled.
  [[nodiscard]] bool requests_wait() const {
    for (const Inbound& in : wire->inbound()) {
      if (in.requests->holds() || in.requests->peek() != nullptr) {
        return true;
      }
    }
    return false;
  }
  /// The pair that sends with this source ID; null: none.
  [[nodiscard]] Pair* sender(uint32_t source) {
    for (Pair& pair : pairs) {
      if (pair.dest_id == source) {
        return &pair;
      }
    }
    return nullptr;
  }

  /// Wait until the card's writes have reached memory: before each word or interrupt that says
  /// "done", since the answer to a register read overtakes posted writes.
  void fence() {
    end_gathering();
    if (config.early_status) {
      return;
    }
    for (const Function& function : functions) {
      function.host->flush();
    }
  }
  /// Write a completion whose last member is `status`. There is always room: a ring never has more
  /// outstanding entries than completions. @param last value of `status` without the phase bit.
  template <class Cpl>
  void complete(Ring& ring, Cpl* cpl, uint32_t last) {
    cpl->status = last | ring.phase();
    if constexpr (std::is_same_v<Cpl, regs::SharedShortCpl>) {
      if (exact) {
        gather_short(ring, *cpl);
        return;
      }
    }
    if (ring.cbase == nullptr) [[unlikely]] {
      ++ring.cidx;  // the host has unmapped the ring's memory
      return;
    }
    ring.pcie.write(sizeof(Cpl));
    constexpr uint32_t kWords = sizeof(Cpl) / 4;
    if (host.posting()) [[unlikely]] {
      uint32_t words[kWords];
      std::memcpy(words, cpl, sizeof(Cpl));
      ring.pair->function->host->post_completion(
          ring.cbase_iova + (ring.cidx & ring.cmask) * sizeof(Cpl), words, kWords);
    } else {
      auto* out = reinterpret_cast<Cpl*>(ring.cbase + (ring.cidx & ring.cmask) * sizeof(Cpl));
      std::memcpy(static_cast<void*>(out), cpl, sizeof(Cpl) - 4);
      // release: payload and completion before the last word; pairs with load_completion.
      __atomic_store_n(&out->status, cpl->status, __ATOMIC_RELEASE);
    }
    ++ring.cidx;
  }

  /// Complete the transmit entry `index` of so many units. In exact mode a completion of the
  /// cumulative format grows until the end of the step.
  void complete_tx(Ring& ring, uint32_t cookie, uint32_t index, regs::Status status,
                   uint32_t retries = 0, uint32_t units = 1) {
    regs::TxCpl cpl{cookie, index, ticks(), last_word(status, retries)};
    if (exact && ring.cumulative) {
      gather_tx(ring, cpl, units);
    } else {
      complete(ring, &cpl, cpl.status);
    }
  }
  /// Write the completions that gather, if there are any.
  void end_gathering(Ring& ring) {
    if (ring.gathers) {
      ring.gathers = false;
      complete(ring, &ring.gathered, ring.gathered.status);
    }
    if (ring.waiting != 0) {
      write_short(ring);
    }
  }
  /// Write all completions that gather: at the end of a step in exact mode.
  void end_gathering() {
    for (Pair& pair : pairs) {
      end_gathering(pair.rings[kTxRing]);
      end_gathering(pair.rings[kSharedRing]);
    }
  }
  /// Complete the entry `index` of a DMA, maintenance or dedicated ring.
  void complete_entry(Ring& ring, uint32_t cookie, uint32_t index, uint32_t bytes,
                      regs::Status status, uint32_t retries = 0) {
    regs::EntryCpl cpl{cookie, index, bytes, 0};
    complete(ring, &cpl, last_word(status, retries));
  }
  /// Complete a barrier. @param where the word of the completion.
  void complete_barrier(Ring& ring, uint32_t cookie, uint32_t index, uint32_t where,
                        regs::Status status, uint32_t retries) {
    regs::BarrierCpl cpl{cookie, index, where, 0};
    complete(ring, &cpl, last_word(status, retries));
  }
  /// Complete the posted entries of a ring that is being stopped. @tparam Desc their type.
  template <class Desc>
  void flush_entries(Ring& ring) {
    for (; ring.posted() > 0; ++ring.head) {
      complete_entry(ring, ring.fetch<Desc>(ring.head).cookie, ring.head, 0,
                     regs::Status::kFlushed);
    }
  }

  /// Count the answer to a message, segment or doorbell.
  void count_answer(Answer answer) {
    if (answer == Answer::kRetry) {
      ++counts.rx_retries;
    } else if (answer == Answer::kError) {
      ++counts.rx_errors;
    }
  }
  /// Recompute the plain pairs; call it when owners or dedicated rings have changed.
  void sort_plain();
  [[nodiscard]] Owner* find_owner(uint32_t dest_id);
  [[nodiscard]] Flow* find_flow(Pair& pair, uint32_t dest_id);
  /// Stop a ring because of an error in its contents, and report it by an event.
  void fail_ring(Ring& ring, regs::RingError error, uint32_t entry);
  /// Write RING_STATUS.
  void tell_status(Ring& ring, regs::RingError error);
  /// Write an event for a pair; if its event ring is full or stopped the event is lost and counted.
  void event(Pair& pair, regs::EventType type, uint32_t source, uint32_t info,
             const uint32_t (&data)[4]);
  /// Read the tail of a ring. @return entries to fetch. A tail too far ahead stops the ring.
  [[nodiscard]] uint32_t poll_tail(Ring& ring) {
    if (!ring.running() || ring.held) [[unlikely]] {
      return 0;
    }
    return host.posting() && doorbell_is_late(ring) ? ring.posted() : read_tail(ring);
  }
  /// Read the tail without any injected delay, for a caller that starts or stops the ring.
  uint32_t read_tail(Ring& ring) {
    // acquire: descriptors visible after the tail; pairs with Mmio::write32.
    ring.tail = __atomic_load_n(ring.tail_word, __ATOMIC_ACQUIRE);
    if (ring.posted() > ring.mask + 1) [[unlikely]] {
      refuse_tail(ring);
    }
    return ring.posted();
  }

 private:
  void gather_tx(Ring& ring, const regs::TxCpl& cpl, uint32_t units);
  void gather_short(Ring& ring, const regs::SharedShortCpl& cpl);
  void write_short(Ring& ring);
  [[nodiscard]] static uint32_t last_word(regs::Status status, uint32_t retries) {
    return static_cast<uint32_t>(status) | (retries < 255 ? retries : 255) << 8;
  }
  [[nodiscard]] bool doorbell_is_late(const Ring& ring);
  void refuse_tail(Ring& ring);
};

}  // namespace rio::model
