/// @file
/// A card's end of the fabric. Loop-back and the in-process pair are here; shared memory, UDP and
/// simulated fabrics implement the same interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "fpga/model/frame_ring.hpp"

namespace rio::model {

/// Where frames for a destination go. Responses have a ring of their own: they never wait behind
/// requests, as the specification's priorities demand, so two full cards cannot lock each other.
struct Outbound {
  FrameWriter* requests;
  FrameWriter* responses;
  bool gone = false;  ///< the partner has left: route() has to be asked again
  /// Whether a partner that dies, or leaves, is told by Wire::next_change(). Silence then means
  /// that it does not run, and a response is late only where `answerable_ns` says so.
  bool watched = false;
  /// The partner took all frames sent up to this time, and its answers were visible, a response
  /// time-out ago.
  uint64_t answerable_ns = 0;
  /// Null, or whether the partner can pull long messages out of this process.
  const std::atomic<uint32_t>* pulls = nullptr;
  /// If the partner cannot pull, whether it takes a kPull that carries the bytes.
  bool takes_bytes_behind = false;
};

/// Bytes to be pulled out of a partner's process.
struct PullPiece {
  uint8_t* to;
  uint64_t from;  ///< address there
  uint32_t len_bytes;
};

/// Reads out of a partner's process.
class Puller {
 public:
  virtual ~Puller() = default;
  /// @return bytes that came, from the first piece on: fewer than all if the partner is gone, or
  /// has no memory there.
  [[nodiscard]] virtual uint64_t pull(std::span<const PullPiece> pieces) = 0;
};

struct Inbound {
  FrameReader* requests;
  FrameReader* responses;
  /// destIDs that frames from there may bear as their source: what does not is dropped.
  uint32_t first_source = 0;
  uint32_t more_sources = ~0u;  ///< and so many behind it
  Puller* puller = nullptr;     ///< null: nothing can be pulled from there
};

/// A partner has come, or is gone for good: a later one under its destID is another partner.
struct PartnerChange {
  Outbound* way;
  uint32_t dest_id;
  bool here;
  uint32_t times;  ///< how often a partner has come under this destID
};

struct Core;

/// A card at the other end of a wire within one process, when the same thread steps both: plain
/// messages then go straight across instead of through rings (detail/direct.cc).
class Neighbour {
 public:
  virtual ~Neighbour() = default;
  /// Keep the card from other threads. @param self the card asks for itself, within its step.
  /// @return its state, or null: another thread steps it, or it has frames to take first. leave()
  /// after each that is not null.
  [[nodiscard]] virtual Core* enter(bool self) = 0;
  virtual void leave(bool self) = 0;
};

/// Used by the thread that steps the card.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Tell the wire which card is plugged in; null before the card goes.
  virtual void attach(Neighbour* card) { static_cast<void>(card); }
  /// Another thread steps the card from now on. @param thread tells threads apart.
  virtual void stepped_by(const char* thread) { static_cast<void>(thread); }
  /// Whether there is a card in this process at the other end, and `thread` steps it. Reads no
  /// line that another core writes.
  [[nodiscard]] bool may_enter_neighbour(const char* thread) const {
    return neighbour_thread_ != nullptr &&
           neighbour_thread_->load(std::memory_order_relaxed) == thread;
  }
  /// enter() of the card at the other end; null: it cannot be entered now.
  [[nodiscard]] virtual Core* enter_neighbour() { return nullptr; }
  virtual void leave_neighbour() {}
  /// The way to a destination, null if there is none. Stays valid as long as the wire, and the same
  /// for a destination.
  [[nodiscard]] virtual Outbound* route(uint32_t dest_id) = 0;
  /// All that frames may come from. May change between steps.
  [[nodiscard]] std::span<Inbound> inbound() const { return inbound_; }
  [[nodiscard]] virtual bool link_up() const = 0;
  /// Whether pump() has anything to do.
  [[nodiscard]] bool pumps() const { return pumps_.load(std::memory_order_relaxed); }
  /// Move frames, for wires that are more than rings. Called once a step.
  virtual void pump(uint64_t now_ns) { static_cast<void>(now_ns); }
  /// The changes that pump() has found, in order. @return false: nothing more.
  [[nodiscard]] virtual bool next_change(PartnerChange* out) {
    static_cast<void>(out);
    return false;
  }
  /// Check which partners take the frames sent to them. Called every now and then.
  /// @param response_ns the response time-out.
  virtual void look_at_partners(uint64_t now_ns, uint64_t response_ns) {
    static_cast<void>(now_ns);
    static_cast<void>(response_ns);
  }

 protected:
  // Members and no virtual functions, since each step looks at them.
  std::span<Inbound> inbound_;
  std::atomic<bool> pumps_{false};
  const std::atomic<const char*>* neighbour_thread_ = nullptr;  ///< who steps the neighbour
};

/// A card that hears itself.
[[nodiscard]] std::unique_ptr<Wire> make_loop_wire();

/// A cable within one process. Thread-safe.
class Cable {
 public:
  virtual ~Cable() = default;
  /// Plug into side 0 or 1, which must be free: the wire that was plugged there is destroyed. The
  /// cable lives as long as a wire of it. The link is up while both sides are plugged in.
  [[nodiscard]] virtual std::unique_ptr<Wire> plug(int side) = 0;
};

[[nodiscard]] std::shared_ptr<Cable> make_cable();

}  // namespace rio::model
