/// @file
/// The window through which peers' cards read large data from where it lies.
#pragma once

#include <cstdint>

#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per rail; used only on the port's thread. Only emulated cards that read each other's
/// processes have it: each may read the other's memory anyway. A card of its own would let a peer
/// read all that is registered. See docs/decisions/0075-large-data-is-read.md.
class ShownMemory {
 public:
  explicit ShownMemory(Endpoint& endpoint) : endpoint_(endpoint) {}
  ShownMemory(const ShownMemory&) = delete;
  ShownMemory& operator=(const ShownMemory&) = delete;

  /// Open the window, if the card is of that kind, and has one left. @param iova a bus address of
  /// the card: the window is onto the 2^47 ones among which it is.
  void open(uint64_t iova);
  [[nodiscard]] bool is_open() const { return is_open_; }
  /// Where peers find registered bytes. @pre is_open(), and the region holds the bytes. @return 0:
  /// not in one piece.
  [[nodiscard]] uint64_t address(const pmd::mem::Region& region, const uint8_t* va,
                                 uint64_t len_bytes) const;
  /// Let nothing be read any more by an address told before: the reads that are under way fail.
  void renew();
  /// Close the window for good, as another one needs its place. @return whether it was open.
  bool give_up();

 private:
  void open();
  [[nodiscard]] bool close();

  Endpoint& endpoint_;
  uint64_t first_iova_ = 0;
  uint32_t index_ = 0;
  uint16_t key_ = 0;
  bool is_open_ = false;
  bool is_given_up_ = false;
};

}  // namespace rio::msg
