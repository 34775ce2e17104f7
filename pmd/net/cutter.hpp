/// @file
/// Cuts a frame, where it lies, into pieces that fit into messages.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "pmd/net/bundle.hpp"

namespace rio::pmd {

/// The bytes of a frame that go in one message.
struct Piece {
  static constexpr uint32_t kPlacesMax =
      regs::kWideAddrs - 1;  // the bundle's header takes one address

  uint32_t bytes;
  uint32_t places;  ///< 0: the piece has to be copied
  uint64_t iova[kPlacesMax];
  uint16_t length_bytes[kPlacesMax];  ///< multiples of 8, except for the last
};

/// Yields pieces in the order of the frame. The first one holds the headers, by which the receiver
/// tells the frame's destination and queue.
class Cutter {
 public:
  /// Least bytes in the first piece, if the frame has as many.
  static constexpr uint32_t kHeadBytesMin = 128;

  /// @param misaligned bits that must be 0 in an address. @param copied all pieces have to be
  /// copied.
  Cutter(const rte_mbuf& frame, uint64_t misaligned, bool copied)
      : segment_(&frame), left_(frame.pkt_len), misaligned_(misaligned), copied_(copied) {}

  /// Get the next piece. @return false: there are no more.
  [[nodiscard]] bool next(Piece* piece);

 private:
  void skip_empty();
  void gather(Piece* piece);
  void take_head(Piece* piece);
  [[nodiscard]] uint64_t iova() const { return rte_pktmbuf_iova(segment_) + at_; }
  void pass(uint32_t bytes);

  const rte_mbuf* segment_;
  uint32_t at_ = 0;  // position in the segment
  uint32_t left_;    // bytes of the frame that are left
  uint64_t misaligned_;
  bool copied_;
  bool is_first_ = true;
};

/// The most entries that messages take if some are gathered: the queue skips one where an entry of
/// two units would cross 4 KiB or the ring's end. @param entries without these.
[[nodiscard]] constexpr uint32_t with_skips(uint32_t entries) {
  return entries + 1 + entries / (4096 / uint32_t{sizeof(regs::TxDesc)});
}

/// Resources that a frame takes.
struct CutSize {
  uint32_t messages = 0;
  uint32_t entries = 0;   ///< entries of the ring, with_skips()
  uint32_t in_place = 0;  ///< messages with bytes that stay in place
};
[[nodiscard]] CutSize size_of(Cutter cutter);

}  // namespace rio::pmd
