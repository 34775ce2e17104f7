/// @file
/// Cuts a frame into what fits into messages, where it lies.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "pmd/net/bundle.hpp"

namespace rio::pmd {

/// Bytes of a frame for one message.
struct Piece {
  static constexpr uint32_t kPlacesMax = regs::kWideAddrs - 1;  // the header is one

  uint32_t bytes;
  uint32_t places;  ///< 0: to be copied
  uint64_t iova[kPlacesMax];
  uint16_t length_bytes[kPlacesMax];  ///< multiples of 8 but for the last
};

/// In the order of the frame. The first piece has the headers, by which the other side knows whose
/// frame it is and what to do with it.
class Cutter {
 public:
  /// Of the first piece, if the frame has as many.
  static constexpr uint32_t kHeadBytesMin = 128;

  /// @param misaligned bits that must be 0 in an address. @param copied all pieces are to be.
  Cutter(const rte_mbuf& frame, uint64_t misaligned, bool copied)
      : segment_(&frame), left_(frame.pkt_len), misaligned_(misaligned), copied_(copied) {}

  /// @return false: that was all.
  [[nodiscard]] bool next(Piece* piece);

 private:
  void skip_empty();
  void gather(Piece* piece);
  void take_head(Piece* piece);
  [[nodiscard]] uint64_t iova() const { return rte_pktmbuf_iova(segment_) + at_; }
  void pass(uint32_t bytes);

  const rte_mbuf* segment_;
  uint32_t at_ = 0;  // in the segment
  uint32_t left_;    // of the frame
  uint64_t misaligned_;
  bool copied_;
  bool is_first_ = true;
};

/// The room that a frame takes.
struct CutSize {
  uint32_t messages = 0;
  uint32_t entries = 0;   ///< of the ring
  uint32_t in_place = 0;  ///< messages that have bytes where they lie
};
[[nodiscard]] CutSize size_of(Cutter cutter);

}  // namespace rio::pmd
