/// @file
/// Sends messages to members of groups, and keeps those for which the port has no room.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/barrier/group_message.hpp"
#include "lib/msg/address.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::barrier {

/// One per context; called under the port's Guard. Messages to one address keep their order; those
/// to a peer that accepts nothing do not delay those to other peers.
class Mail {
 public:
  /// A message that will never be delivered.
  struct Unsent {
    uint32_t part;  ///< of send()
    msg::Address to;
    int error;
  };

  /// @param port outlives it. @param context number of the sending context.
  Mail(msg::MessagePort& port, uint16_t context) : port_(port), context_(context) {}

  /// Hot. Send a message, now or in work(). @param part of the group; comes back in Unsent.
  void send(msg::Address to, const GroupMessage& message, uint32_t part);
  /// Send the messages that wait, where there is room.
  void work(uint64_t now_ns);
  /// Messages that have failed since the last call.
  [[nodiscard]] std::vector<Unsent> take_unsent();
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }
  /// Drop the waiting kJoin of a part.
  void drop_joins(uint32_t part);
  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }
  /// How many messages to this address wait.
  [[nodiscard]] uint32_t waiting(msg::Address to) const {
    const auto found = peers_.find(to);
    return found == peers_.end() ? 0 : found->second.waiting;
  }
  /// Link::session of the peer now. @return 0: it cannot be reached, for lack of memory.
  [[nodiscard]] uint32_t session_with(msg::Address to);

 private:
  /// A join to a peer that is not there yet, or has not opened its context, is tried again after
  /// this time.
  static constexpr uint64_t kAgainNs = 20'000'000;

  struct Peer {
    msg::Route route;
    uint32_t waiting = 0;  // messages
    uint32_t pass = 0;     // the last pass of work() in which it did not accept a message
  };
  struct Item {
    Peer* peer;
    GroupMessage message;
    uint32_t part;
    msg::Address to;
    uint32_t session;  // of the peer, when send() was called
    uint32_t refusals = 0;
    uint64_t from_ns = 0;  // it is not tried before this time
  };

  [[nodiscard]] Peer* peer_of(msg::Address to);
  [[nodiscard]] int try_send(Item& item, uint64_t now_ns);
  [[nodiscard]] int judge(Item& item, int error, uint64_t now_ns);

  msg::MessagePort& port_;
  uint16_t context_;
  uint32_t pass_ = 0;
  std::unordered_map<msg::Address, Peer> peers_;  // entries stay where they are
  std::vector<Item> waiting_;
  std::vector<Unsent> unsent_;
};

}  // namespace rio::barrier
