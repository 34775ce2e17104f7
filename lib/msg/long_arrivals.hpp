/// @file
/// Reassembles long messages that arrive on a context, and shows them one by one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/parts.hpp"

namespace rio::msg {

/// Length of the longest message, in bytes.
inline constexpr uint64_t kLongMax = kTransferMax;

/// A long message that is being reassembled, or was shown and not yet taken or refused.
struct LongArrival {
  Origin origin = {};
  uint64_t length_bytes = 0;
  Request* request = nullptr;   ///< its request, if the data has not been sent; else null
  std::vector<Delivery> parts;  ///< parts that have arrived, in order
  Assembly assembly;
  bool unwanted = false;  ///< too long: its parts are dropped as they arrive
};

/// Used only on the port's thread. The context outlives it. Every field of a message is untrusted
/// until it was checked. Functions without a comment implement those of LongMessages.
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

  /// Copy the parts that have arrived, up to `capacity` bytes.
  void copy_out(const LongArrival& arrival, void* buffer, uint64_t capacity) const;
  /// Take the request of an arrival whose data was not sent yet; this frees the arrival.
  [[nodiscard]] Request* take_request(LongArrival& arrival);

  /// Whether any message is being reassembled.
  [[nodiscard]] bool busy() const { return !assembling_.empty(); }
  /// A session has ended: drop the incomplete messages of ended sessions. @return false: not done,
  /// because the inbox holds earlier messages.
  [[nodiscard]] bool forget_stale();
  /// Drop or refuse all arrivals.
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
  std::vector<LongArrival*> assembling_;  // being reassembled: at most one for each sender
  base::Slab<LongArrival> arrivals_;
};

}  // namespace rio::msg
