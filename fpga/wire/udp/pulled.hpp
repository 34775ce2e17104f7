/// @file
/// Received bytes of long messages, kept until the card has put them into place.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fpga/model/wire.hpp"

namespace rio::wire::udp {

/// To the card this looks like pulling from the sender's memory, as on a wire between processes;
/// here the bytes were pushed. Used by one thread.
class Pulled final : public model::Puller {
 public:
  /// Whether more may come: not while the card leaves received bytes here.
  [[nodiscard]] bool has_room() const { return bytes_ < kBytesMax; }
  /// Make room for the bytes of a run. Valid until free_until() frees it.
  [[nodiscard]] uint8_t* add(uint32_t bytes);
  /// Note that the last run's frame lies in the ring. @param end behind it, a tail() of the writer.
  void set_end(uint32_t end) { runs_.back().end = end | 1; }
  /// Drop the last run, which will not be used.
  void drop_last();
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

}  // namespace rio::wire::udp
