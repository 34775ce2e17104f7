/// @file
/// Tagged messages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/tag_end.hpp"
#include "apps/msgrate/side.hpp"

namespace rio::msgrate {

/// A card of this process, with a buffer and one context. Functions return 0 or -errno; what failed
/// is on stderr.
class TagCard {
 public:
  static constexpr uint32_t kPageBytes = 4096;  // no card wants more

  /// @param len_bytes of the buffer; a page more may be used.
  explicit TagCard(uint32_t len_bytes) : memory_(uint64_t{len_bytes} + 2 * kPageBytes) {}

  [[nodiscard]] int open(const std::string& card, uint32_t peer) {
    constexpr uint16_t kContext = 1;
    msg::PortConfig config;
    config.card = card;
    int rc = msg::MessagePort::open(config, &port_);
    rc = rc != 0 ? rc : end_.open(*port_, kContext, {});
    end_.set_peer(peer);
    return rc != 0 ? apps::complain(card, -rc) : 0;
  }
  /// The buffer; it begins with a page, as those of others do.
  [[nodiscard]] uint8_t* bytes() {
    return memory_.data() + (0u - reinterpret_cast<uintptr_t>(memory_.data())) % kPageBytes;
  }
  [[nodiscard]] msg::MessagePort& port() { return *port_; }
  [[nodiscard]] apps::TagEnd& end() { return end_; }

 private:
  std::vector<uint8_t> memory_;
  std::unique_ptr<msg::MessagePort> port_;
  apps::TagEnd end_;
};

/// Some requests are always under way.
class TagSide : public Side<TagSide> {
 public:
  /// @param size_bytes of the longest message.
  TagSide(uint32_t peer, uint32_t size_bytes) : peer_(peer), card_(size_bytes) {}
  [[nodiscard]] int open(const std::string& card) { return card_.open(card, peer_); }
  [[nodiscard]] const msg::MessagePort& port() { return card_.port(); }

  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count) {
    return stream_.send(size_bytes, count);
  }
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count) {
    return stream_.receive(size_bytes, count);
  }

 private:
  friend Side;
  static constexpr uint32_t kAhead = 64;

  [[nodiscard]] int send_one(uint32_t size_bytes) { return stream_.send_one(size_bytes); }
  [[nodiscard]] int receive_one(uint32_t size_bytes) { return stream_.receive_one(size_bytes); }

  uint32_t peer_;
  TagCard card_;
  apps::TagStream<kAhead> stream_{card_.end(), card_.bytes()};
};

}  // namespace rio::msgrate
