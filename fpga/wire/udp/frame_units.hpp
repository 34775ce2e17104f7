/// @file
/// Turns frames of the card into units of a connection, and back.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fpga/model/frame_ring.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/udp/connection.hpp"

namespace rio::wire::udp {

/// Received bytes of long messages, kept until the card has put them into place. To the card this
/// looks like pulling from the sender's memory, as on a wire between processes; here the bytes were
/// pushed. Used by one thread.
class Pulled final : public model::Puller {
 public:
  /// Whether more may come: not while the card leaves received bytes here.
  [[nodiscard]] bool has_room() const { return bytes_ < kBytesMax; }
  /// Make room for the bytes of a run. Valid until free_passed() frees it.
  [[nodiscard]] uint8_t* add(uint32_t bytes);
  /// Note that the last run's frame lies in the ring. @param end behind it, a tail() of the writer.
  void set_end(uint32_t end) { runs_.back().end = end | 1; }
  /// Drop the last run, which will not be used.
  void drop_last() {
    bytes_ -= runs_.back().bytes.size();
    runs_.pop_back();
  }
  /// Free the runs that the card has finished with.
  void free_passed(model::FrameWriter* writer);

  [[nodiscard]] uint64_t pull(std::span<const model::PullPiece> pieces) override;

 private:
  static constexpr size_t kBytesMax = 1 << 20;
  struct Run {
    std::vector<uint8_t> bytes;
    uint32_t end;  ///< with bit 0 set; 0: the run is incomplete
  };
  [[nodiscard]] const uint8_t* find(uint64_t from, uint32_t bytes) const;

  std::deque<Run> runs_;
  size_t bytes_ = 0;
  std::vector<std::vector<uint8_t>> spare_;  // memory for the next runs
};

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
  [[nodiscard]] bool taken() {
    return requests_.in.reader.peek() == nullptr && !requests_.in.reader.holds() &&
           responses_.in.reader.peek() == nullptr;
  }

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
  void copy_run(uint64_t at, std::span<uint8_t> to);
  void expect_run(std::span<const uint8_t> frame);
  [[nodiscard]] size_t take_run(std::span<const uint8_t> bytes);
  void end_run();
  void take_frame(UnitKind lane, std::span<const uint8_t> frame);

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
