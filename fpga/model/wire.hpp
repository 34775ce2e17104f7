/// @file
/// The interface between a card and the fabric. Loop-back and the in-process cable are here; shared
/// memory, UDP and simulated fabrics implement it elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "fpga/model/frame_ring.hpp"
#include "fpga/model/windows.hpp"

namespace rio::model {

class Puller;

/// The words about leases that a card writes for one partner. A lease is the leave to read a range
/// of the card's memory without asking; all leases that a card gives have one number, and end when
/// it gives another number.
struct LeaseWords {
  alignas(64) std::atomic<uint64_t> number{0};  ///< of the leases that this card gives; 0: none
  /// Packets that this card has read of the partner's memory by the partner's leases.
  alignas(64) std::atomic<uint64_t> packets{0};
};

/// The rings to one partner. Responses have a ring of their own, so that they never wait behind
/// requests, as the specification's priorities demand: two full cards cannot block each other.
struct Outbound {
  FrameWriter* requests;
  FrameWriter* responses;
  bool gone = false;  ///< the partner has left: call route() again
  /// Whether Wire::next_change() reports when the partner dies or leaves. If so, silence only means
  /// that it does not run, and `answerable_ns` decides whether a response is late.
  bool watched = false;
  /// At least one response time-out ago, the partner had taken all frames sent up to this time, and
  /// its answers were visible.
  uint64_t answerable_ns = 0;
  /// Not 0: the partner can pull long messages out of this process. Null: it cannot.
  const std::atomic<uint32_t>* pulls = nullptr;
  /// Whether a partner that cannot pull takes a kPull that carries the bytes.
  bool takes_bytes_behind = false;
  /// Most messages that a kPull without bytes announces, up to kAnnouncedMax.
  uint32_t announced_max = kPullPartsMax;
  /// Whether the partner takes a kLongRequest: it is on this machine, and `pulls` is about the
  /// memory of this process, not about bytes that the wire sends.
  bool takes_long = false;
  /// Whether the partner takes all frames sent to it, in order, and knows a kPledge.
  bool takes_pledges = false;
  /// This process's memory that the partner has mapped; null or empty: none.
  Windows* mapped = nullptr;
  /// Reads the partner's memory; null: it cannot be read.
  Puller* puller = nullptr;
};

/// A range of bytes to be pulled out of a partner's process.
struct PullPiece {
  uint8_t* to;
  uint64_t from;  ///< address in the partner's process
  uint32_t len_bytes;
};

/// Reads memory of a partner's process.
class Puller {
 public:
  Puller() = default;
  /// @param theirs the partner's words. @param mine this card's.
  Puller(const LeaseWords* theirs, LeaseWords* mine) : theirs_(theirs), mine_(mine) {}
  virtual ~Puller() = default;
  /// Read all pieces, in order. @return bytes read: fewer than all if the partner is gone, or has
  /// no memory there.
  [[nodiscard]] virtual uint64_t pull(std::span<const PullPiece> pieces) = 0;

  /// Number of the leases that the partner gives now. Bytes that were read by a lease count only if
  /// the number is still that of the lease afterwards. @return 0: it gives none.
  [[nodiscard]] uint64_t lease_number() const {
    // acquire: the check comes after the bytes were read; pairs with the fence in end_leases().
    std::atomic_thread_fence(std::memory_order_acquire);
    return theirs_ == nullptr ? 0 : theirs_->number.load(std::memory_order_acquire);
  }
  /// Tell the partner how many packets were read without asking.
  void count_leased(uint32_t packets) const {
    if (mine_ != nullptr) {
      mine_->packets.store(mine_->packets.load(std::memory_order_relaxed) + packets,
                           std::memory_order_relaxed);
    }
  }

 private:
  const LeaseWords* theirs_ = nullptr;
  LeaseWords* mine_ = nullptr;
};

struct Inbound {
  FrameReader* requests;
  FrameReader* responses;
  /// Lowest destID that frames from this partner may have as their source; other frames are
  /// dropped.
  uint32_t first_source = 0;
  uint32_t more_sources = ~0u;  ///< how many destIDs follow it
  Puller* puller = nullptr;     ///< null: the partner's memory cannot be read
  Windows* windows = nullptr;   ///< memory of the partner's that is mapped here; null: none
};

/// A partner has come, or is gone for good. A later one with the same destID counts as another
/// partner.
struct PartnerChange {
  uint32_t dest_id;
  bool here;
  uint32_t times;  ///< how often a partner with this destID has come
};

struct Core;

/// The card at the other end of a wire within one process. If one thread steps both, plain messages
/// go straight across instead of through rings (fast/direct.cc).
class Neighbour {
 public:
  virtual ~Neighbour() = default;
  /// Lock the card for this thread; call leave() afterwards. @param self the card asks for itself,
  /// within its step. @return its state; null: not locked, since another thread steps it, or it has
  /// frames to take first.
  [[nodiscard]] virtual Core* enter(bool self) = 0;
  virtual void leave(bool self) = 0;
};

/// A card's connection to the fabric. Used by the thread that steps the card.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Tell the wire which card is plugged in; null before the card is destroyed.
  virtual void attach(Neighbour* /*card*/) {}
  /// Another thread steps the card from now on. @param thread identifies it.
  virtual void stepped_by(const char* /*thread*/) {}
  /// The card tells its wire whether it has work that must go on while its owner does not poll.
  virtual void set_unpolled_work(bool /*has*/) {}
  /// Whether the other end is a card in this process that `thread` steps. Reads no cache line that
  /// another core writes.
  [[nodiscard]] bool may_enter_neighbour(const char* thread) const {
    return neighbour_thread_ != nullptr &&
           neighbour_thread_->load(std::memory_order_relaxed) == thread;
  }
  /// Enter the card at the other end. @return null: not possible now.
  [[nodiscard]] virtual Core* enter_neighbour() { return nullptr; }
  virtual void leave_neighbour() {}
  /// The rings to a destination; null: none. The result is the same for each call, and valid as
  /// long as the wire.
  [[nodiscard]] virtual Outbound* route(uint32_t dest_id) = 0;
  /// All partners that frames may come from. May change between steps.
  [[nodiscard]] std::span<Inbound> inbound() const { return inbound_; }
  [[nodiscard]] virtual bool link_up() const = 0;
  /// Whether pump() may have something to do.
  [[nodiscard]] bool pumps() const { return pumps_.load(std::memory_order_relaxed); }
  /// Move frames, for wires that are not just rings. Called once a step.
  virtual void pump(uint64_t /*now_ns*/) {}
  /// The host has unmapped memory, which may be mapped by partners.
  virtual void on_unmapped() {}
  /// Take the next change that pump() has found. @return false: none.
  [[nodiscard]] virtual bool next_change(PartnerChange* /*out*/) { return false; }
  /// Number of the leases that this card gives. @return 0: none.
  [[nodiscard]] virtual uint64_t lease_number() const { return 0; }
  /// End all leases: before memory goes, a window closes, or requests get another answer for
  /// another reason. Bytes that partners read by them from now on do not count.
  virtual void end_leases() {}
  /// Packets that partners say they have read by leases since the last call.
  [[nodiscard]] virtual uint64_t leased_packets() { return 0; }
  /// Check which partners take the frames sent to them. Called every now and then.
  /// @param response_ns the response time-out.
  virtual void check_partners(uint64_t /*now_ns*/, uint64_t /*response_ns*/) {}

 protected:
  // Members instead of virtual functions, since each step reads them.
  std::span<Inbound> inbound_;
  std::atomic<bool> pumps_{false};
  const std::atomic<const char*>* neighbour_thread_ =
      nullptr;  ///< identifies the thread that steps the neighbour
};

/// A wire on which a card receives its own messages.
[[nodiscard]] std::unique_ptr<Wire> make_loop_wire();

/// A cable within one process. Thread-safe.
class Cable {
 public:
  virtual ~Cable() = default;
  /// Plug into side 0 or 1. The side must be free: an earlier wire of it was destroyed. The cable
  /// lives as long as its wires. The link is up while both sides are plugged in.
  [[nodiscard]] virtual std::unique_ptr<Wire> plug(int side) = 0;
};

[[nodiscard]] std::shared_ptr<Cable> make_cable();

}  // namespace rio::model
