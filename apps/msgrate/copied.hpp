/// @file
/// How many bytes drivers and libraries of both sides copy for one long message.
#pragma once

#include <cstdint>
#include <string>

#include "apps/msgrate/options.hpp"
#include "apps/msgrate/tag_side.hpp"

namespace rio::msgrate {

/// The worst of many messages, between pairs of addresses.
struct Copied {
  uint64_t same_bytes = 0;   ///< where the addresses agree modulo the card's alignment
  uint64_t other_bytes = 0;  ///< where they do not
  uint32_t same_pairs = 0;
  uint32_t other_pairs = 0;
};

/// One of the two processes. Options::count offsets of the receiver's memory are tried, of all that
/// its card can tell apart (4096 at most), each with one of the sender's that agrees and with one
/// that does not.
class CopiedSide {
 public:
  CopiedSide(uint32_t peer, const Options& options)
      : peer_(peer), size_bytes_(options.size_bytes), count_(options.count) {}

  /// @return 0, or -errno, which is on stderr.
  [[nodiscard]] int open(const std::string& card) { return card_.open(card, peer_); }
  /// @param sends this side sends, and gets the result. @return 0, or -errno, which is on stderr.
  [[nodiscard]] int run(bool sends, Copied* out) { return sends ? lead(out) : follow(); }

 private:
  /// The sender's next request to the receiver.
  struct Order {
    uint64_t number;  // stands at both ends of the message; 0: it was the last
    uint32_t offset;
  };
  /// The abilities of the receiver's card, and the cost of a message.
  struct Report {
    uint64_t number;
    uint64_t copied_bytes;
    uint32_t dedicated_addr_align;
  };
  static constexpr uint64_t kOrder = 1;
  static constexpr uint64_t kReport = 2;
  static constexpr uint64_t kMessage = 3;

  [[nodiscard]] int send(uint64_t bits, const void* data, uint64_t size_bytes);
  [[nodiscard]] int receive(uint64_t bits, void* data, uint64_t size_bytes);
  [[nodiscard]] int measure(uint32_t own, uint32_t others, uint64_t* copied_bytes);
  [[nodiscard]] int lead(Copied* out);
  [[nodiscard]] int follow();
  void stamp(uint8_t* at, uint64_t number) const;
  [[nodiscard]] bool stamped(const uint8_t* at, uint64_t number) const;

  uint32_t peer_;
  uint32_t size_bytes_;
  uint32_t count_;
  uint64_t number_ = 0;
  TagCard card_{size_bytes_};
  uint8_t* page_ = card_.bytes();
};

}  // namespace rio::msgrate
