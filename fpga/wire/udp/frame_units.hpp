/// @file
/// Turns frames of the card into units of a connection, and back.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "fpga/model/frame_ring.hpp"
#include "fpga/wire/udp/connection.hpp"
#include "fpga/wire/udp/pulled.hpp"

namespace rio::wire::udp {

/// destIDs at both ends. Frames on the wire carry only an index into their receiver's destIDs,
/// since each member may know the other by destIDs of its own.
struct Ids {
  uint32_t ours = 0;
  uint32_t our_count = 1;
  uint32_t theirs = 0;
  uint32_t their_count = 1;
};

/// Rings between a card and a peer. Used by one thread. A frame of type kPull announces a run of
/// long messages; their bytes follow out of this process's memory, padded with zeros to a multiple
/// of 32, then a word of 32 bytes: 1, or 0 if the card has given the messages up.
class FrameUnits final : public Intake {
 public:
  explicit FrameUnits(const Ids& ids) : ids_(ids) {}

  /// Turn frames of the card into units, as many as the connection accepts. @return whether there
  /// were any.
  bool gather(Connection* session);
  /// Give a unit's frames to the card. A frame that no honest peer sends makes this foul().
  [[nodiscard]] bool take(UnitKind lane, std::span<const uint8_t> unit) override;
  /// Whether the peer has broken the rules.
  [[nodiscard]] bool foul() const { return foul_; }
  /// The flag that the card reads before it sends a frame of type kPull.
  [[nodiscard]] const std::atomic<uint32_t>* pulls() const { return &pulls_; }
  [[nodiscard]] model::Puller* puller() { return &pulled_; }
  /// Whether the card has taken everything.
  [[nodiscard]] bool taken();

  [[nodiscard]] model::FrameWriter* out(UnitKind lane) { return &of(lane).out.writer; }
  [[nodiscard]] model::FrameReader* in(UnitKind lane) { return &of(lane).in.reader; }

 private:
  struct One {
    One(uint32_t out_bytes, uint32_t in_bytes) : out(out_bytes), in(in_bytes) {}
    model::RingBox out;
    model::RingBox in;
    uint64_t sent = 0;           // bytes of the object at the ring's front that are in units
    uint64_t length = 0;         // of all of it
    std::vector<uint8_t> begun;  // of a frame that continues in the next unit
  };
  [[nodiscard]] One& of(UnitKind lane) {
    return lane == UnitKind::kRequests ? requests_ : responses_;
  }
  [[nodiscard]] bool gather(Connection* session, UnitKind lane);
  [[nodiscard]] size_t fill(One& from, std::span<uint8_t> unit);
  void begin_frame(One& from, const model::InFrame& frame);
  void begin_run(const model::InFrame& frame);
  void copy_frame(const One& from, const model::InFrame& frame, std::span<uint8_t> to) const;
  void copy_run(uint64_t at, bool valid, std::span<uint8_t> to);
  void expect_run(std::span<const uint8_t> frame);
  [[nodiscard]] size_t take_run(std::span<const uint8_t> bytes);
  void end_run();
  void put_frame(UnitKind lane, std::span<const uint8_t> frame);

  const Ids ids_;
  One requests_{64 * 1024, 128 * 1024};
  One responses_{32 * 1024, 32 * 1024};
  bool foul_ = false;

  const std::atomic<uint32_t> pulls_{1};
  // An outgoing run: its frame, the place of its messages, and whether they are still there.
  std::vector<uint8_t> out_head_;
  std::vector<model::PullPart> out_parts_;
  uint64_t out_bytes_ = 0;
  bool out_valid_ = false;
  // An incoming run.
  std::vector<uint8_t> in_head_;
  uint8_t* in_bytes_ = nullptr;  // null: none
  uint64_t in_length_ = 0;
  uint64_t in_here_ = 0;
  Pulled pulled_;
};

}  // namespace rio::wire::udp
