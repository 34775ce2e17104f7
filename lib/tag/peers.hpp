/// @file
/// All contexts of peers that an endpoint has had to do with.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lib/tag/peer.hpp"

namespace rio::tag {

/// Reacts to ended sessions. The objects of an endpoint call it when they meet one.
class SessionWatch {
 public:
  /// Some session may have ended: end what was under way in it.
  virtual void look() = 0;
  /// A session of a link has ended. @param session that has begun instead.
  virtual void end(msg::Link& link, uint32_t session, int error) = 0;

 protected:
  ~SessionWatch() = default;
};

/// Counts of an endpoint.
struct EndpointStats {
  uint64_t unexpected = 0;  ///< messages that came before their receive
  uint64_t stalled = 0;     ///< sends that had to wait
  uint64_t offers = 0;      ///< to peers, of places for what they send next
  uint64_t large = 0;       ///< messages that were moved, or are, by dedicated queues
  uint64_t asked = 0;       ///< of sends, those that were asked for since there was no credit
  uint64_t cut_off = 0;     ///< sessions ended because the peer's messages made no sense
};

/// Peers by address, and the session of each link that the endpoint's state belongs to. One thread.
class Peers {
 public:
  /// @param context number of the endpoint's own.
  Peers(msg::MessagePort& port, uint32_t context) : port_(port), context_(context) {}

  [[nodiscard]] Address self() const { return address(port_.dest_id(), context_); }
  /// A peer to send to. Made if need be. @return null: there is no such address, or no memory.
  [[nodiscard]] Peer* get(Address address);
  /// The sender of a message. Made if need be.
  [[nodiscard]] Peer& of(const msg::Origin& origin);
  /// @return null: the context has had nothing to do with it.
  [[nodiscard]] Peer* known(Address address) const;
  /// @return null: the endpoint's own address, or get() returns null.
  [[nodiscard]] const msg::Link* link_of(Address address);

  /// Call `visit(Peer&)` for each peer, or for each of a link.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [address, peer] : peers_) {
      visit(*peer);
    }
  }
  template <class Visit>
  void for_each_of(const msg::Link& link, Visit&& visit) {
    for (auto& [address, peer] : peers_) {
      if (peer->route.link == &link) {
        visit(*peer);
      }
    }
  }

  /// The session of a link that the endpoint knows to have begun.
  [[nodiscard]] uint32_t& session_of(const msg::Link& link);

 private:
  [[nodiscard]] Peer& add(Address address, const msg::Route& route);

  msg::MessagePort& port_;
  uint32_t context_;
  std::unordered_map<Address, std::unique_ptr<Peer>> peers_;
  std::vector<uint32_t> sessions_;  // by index of the link
};

}  // namespace rio::tag
