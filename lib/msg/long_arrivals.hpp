/// @file
/// Long messages that arrive on a context: put together, and shown one by one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/parts.hpp"

namespace rio::msg {

/// The longest message.
inline constexpr uint64_t kLongMax = kTransferMax;

/// A long message that was shown and neither taken nor refused; or is being put together.
struct LongArrival {
  Origin origin = {};
  uint64_t length_bytes = 0;
  Request* request = nullptr;   ///< of what was only asked for
  std::vector<Delivery> parts;  ///< of what has arrived, in their order
  Assembly assembly;
  bool unwanted = false;  ///< too long: its parts are dropped as they come
};

/// The port's thread. The context outlives it. Every field of a message is the peer's word until it
/// was compared with what we know. Functions without a comment are as those of LongMessages.
class LongArrivals {
 public:
  explicit LongArrivals(MessageContext& context) : context_(context) {}

  [[nodiscard]] int accept(uint64_t length_bytes_max);
  /// Hot.
  [[nodiscard]] bool look() {
    const Inbox& inbox = context_.inbox();
    return shown_ != nullptr ||
           (!inbox.empty() &&
            ((kind_of(inbox.at(0)) == Kind::kData && assembling_.empty()) || look_further()));
  }
  [[nodiscard]] LongArrival* shown() { return std::exchange(shown_, nullptr); }
  void refuse(LongArrival& arrival);

  /// Copy what has arrived in parts, as far as there is capacity.
  void copy_out(const LongArrival& arrival, void* buffer, uint64_t capacity) const;
  /// The request of one that was only asked for; the arrival is gone afterwards.
  [[nodiscard]] Request* take_request(LongArrival& arrival);

  /// Whether any message is being put together.
  [[nodiscard]] bool busy() const { return !assembling_.empty(); }
  /// Some session has ended: what is being put together of it goes no further. @return false: not
  /// done, since the inbox holds messages that came before.
  [[nodiscard]] bool forget_stale();
  /// Refuse all.
  void forget_all();

 private:
  [[nodiscard]] bool look_further();
  [[nodiscard]] LongArrival* incoming(const Origin& origin);
  [[nodiscard]] const char* arrive(LongArrival* incoming, Kind kind, const Origin& origin);
  [[nodiscard]] const char* arrive_first(const Origin& origin);
  [[nodiscard]] const char* arrive_part(LongArrival& incoming, Kind kind);
  [[nodiscard]] const char* arrive_request(const Origin& origin);
  void keep_part(LongArrival& arrival);
  void drop_oldest();
  void forget(LongArrival& incoming);
  void bad(const Origin& origin, const char* what);

  MessageContext& context_;
  uint64_t length_bytes_max_ = 0;
  LongArrival* shown_ = nullptr;
  std::vector<LongArrival*> assembling_;  // being put together: at most one of each sender
  base::Slab<LongArrival> arrivals_;
};

}  // namespace rio::msg
