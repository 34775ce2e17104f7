/// @file
/// Frames of the card as units of a connection, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fpga/model/ring_box.hpp"
#include "fpga/sim/udp/session.hpp"

namespace rio::sim::udp {

/// destIDs of both ends. On their way frames bear only which of its card's destIDs is meant, since
/// each member may call the other by destIDs of its own.
struct Ids {
  uint32_t ours = 0;
  uint32_t our_count = 1;
  uint32_t theirs = 0;
  uint32_t their_count = 1;
};

/// Rings between a card and a peer. Used by one thread.
class Lanes final : public Intake {
 public:
  explicit Lanes(const Ids& ids) : ids_(ids) {}

  /// Frames that the card has sent become units, as many as the connection takes.
  /// @return whether there were any.
  bool gather(Session* session);
  /// A unit's frames are given to the card. A frame that no honest peer sends makes it foul().
  [[nodiscard]] bool take(Lane lane, std::span<const uint8_t> unit) override;
  /// The peer does not keep the rules.
  [[nodiscard]] bool foul() const { return foul_; }
  /// Whether the card has taken all.
  [[nodiscard]] bool taken();

  [[nodiscard]] model::FrameWriter* out(Lane lane) { return &of(lane).out.writer; }
  [[nodiscard]] model::FrameReader* in(Lane lane) { return &of(lane).in.reader; }

 private:
  struct One {
    One(uint32_t out_bytes, uint32_t in_bytes) : out(out_bytes), in(in_bytes) {}
    model::RingBox out;
    model::RingBox in;
    uint32_t sent = 0;           // bytes of the frame at the ring's front that are in units
    std::vector<uint8_t> begun;  // of a frame whose rest is in the next unit
  };
  [[nodiscard]] One& of(Lane lane) { return lane == Lane::kRequests ? requests_ : responses_; }
  [[nodiscard]] bool gather(Session* session, Lane lane);
  [[nodiscard]] size_t fill(One& from, std::span<uint8_t> unit);
  void put_frame(Lane lane, std::span<const uint8_t> frame);
  [[nodiscard]] bool may_come(Lane lane, const model::Frame& frame) const;

  const Ids ids_;
  One requests_{64 * 1024, 128 * 1024};
  One responses_{32 * 1024, 32 * 1024};
  bool foul_ = false;
};

}  // namespace rio::sim::udp
