/// @file
/// Joins of peers to groups which this member has not begun to create.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/barrier/group_message.hpp"
#include "lib/msg/address.hpp"

namespace rio::barrier {

/// Messages kJoin, kept until this member creates their group. Bounded, since peers decide how many
/// come. One thread.
class EarlyJoins {
 public:
  static constexpr uint32_t kOfPeerMax = 64;
  static constexpr uint32_t kMax = 16384;

  struct Join {
    msg::Address from;
    uint32_t session;  ///< of the message
    GroupMessage message;
  };

  /// @return false: this peer has kOfPeerMax joins here, or all peers together have kMax.
  [[nodiscard]] bool add(const Join& join) {
    const auto of_peer = std::count_if(joins_.begin(), joins_.end(),
                                       [&](const Join& other) { return other.from == join.from; });
    if (of_peer >= kOfPeerMax || joins_.size() >= kMax) {
      return false;
    }
    joins_.push_back(join);
    return true;
  }
  /// Take out those of a key, in the order of their arrival.
  [[nodiscard]] std::vector<Join> take(uint64_t key) {
    std::vector<Join> taken;
    std::erase_if(joins_, [&](const Join& join) {
      const bool is_one = join.message.key == key;
      if (is_one) {
        taken.push_back(join);
      }
      return is_one;
    });
    return taken;
  }
  /// Drop the join of a peer that has given up. @return whether it was here.
  bool drop(msg::Address from, uint32_t ticket) {
    return std::erase_if(joins_, [&](const Join& join) {
             return join.from == from && join.message.ticket == ticket;
           }) != 0;
  }
  /// @param is_over says whether the session of a join has ended.
  template <class IsOver>
  void drop_ended(const IsOver& is_over) {
    std::erase_if(joins_, is_over);
  }
  [[nodiscard]] size_t size() const { return joins_.size(); }

 private:
  std::vector<Join> joins_;
};

}  // namespace rio::barrier
