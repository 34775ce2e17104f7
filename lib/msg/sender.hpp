/// @file
/// Sends large data: a transfer waits for GRANT, posts as many messages as granted, and sends
/// CLOSED if an attempt fails.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lib/msg/large_control.hpp"
#include "lib/msg/offer.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/receive_queues.hpp"
#include "lib/msg/send_slots.hpp"
#include "lib/msg/send_stripes.hpp"
#include "lib/msg/transfer.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Sender {
 public:
  explicit Sender(const PortObjects& works) : works_(works) {}

  /// Implements MessageContext::send_large(), which has checked the length and that a request may
  /// be sent.
  void send(ContextSlot& context, const Route& route, uint64_t match_bits, const void* data,
            uint64_t len_bytes, SendTransfer& transfer, bool small, const uint64_t* immediate);
  void cancel(SendTransfer& transfer);

  // Handle the peer's messages. @return false: the peer broke the protocol.
  [[nodiscard]] bool on_grant(Link& link, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_stripe(Link& link, std::span<const uint8_t> bytes);
  /// Handles EXTEND and DONE.
  [[nodiscard]] bool on_total(Link& link, Kind kind, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_abort(Link& link, std::span<const uint8_t> bytes);
  /// Keeps an offer until the message that it is for is sent. @param context the peer's.
  [[nodiscard]] bool on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes);

  /// The card of a rail has completed a message of large data.
  void on_sent(Rail& rail, const pmd::TxDone& done);
  /// The ring of a rail runs again after a stop: post the messages that it returned.
  void resume(const Rail& rail);
  /// The session is over: nothing more is posted, and each transfer is done once the card has
  /// completed its messages.
  void end_session(Link& link, int error);
  /// The card of a rail is gone: it neither reads memory nor completes anything any more. Called
  /// before all sessions end.
  void card_gone(Rail& rail);
  void progress();
  /// Whether progress() has anything to do.
  [[nodiscard]] bool busy() const;

 private:
  // Most messages posted for one transfer: as many as its receiver has entries.
  static constexpr uint32_t kOutEach = ReceiveQueues::kEntriesMax;
  // Fewest messages that are left for a burst of their own.
  static constexpr uint32_t kBurstMin = 16;

  void accept(const Route& route, RequestBody& body, SendTransfer& transfer);
  [[nodiscard]] static uint64_t show(SendTransfer& transfer);
  static void hide(const SendTransfer& transfer);
  static void use(SendTransfer& transfer, Path& path);
  [[nodiscard]] OfferTaker& taker(const Link& link, uint32_t context);
  [[nodiscard]] static SendTransfer* find(const Link& link, uint32_t id, uint32_t stripe = 0);
  [[nodiscard]] bool take_grant(SendTransfer& transfer, const GrantBody& body, Path& path,
                                const pmd::mem::Cut& cut);
  void stop_all(SendTransfer& whole, StopCause cause);
  [[nodiscard]] bool take_back(const SendSlots::Out& out, pmd::Status status);
  static void ask_again(SendGrant& grant);
  [[nodiscard]] bool look(SendTransfer& transfer);
  [[nodiscard]] bool look_at_whole(SendTransfer& transfer);
  void post(SendTransfer& transfer);
  [[nodiscard]] pmd::TxMessage message(const SendTransfer& transfer, const pmd::mem::PlanMessage& m,
                                       uint32_t slot);
  [[nodiscard]] bool say_closed(SendTransfer& transfer);
  void finish(SendTransfer& transfer);
  void finish_stripe(SendTransfer& stripe);

  PortObjects works_;
  SendStripes stripes_;
  WorkList<SendTransfer> working_;
  std::vector<SendTransfer*> interrupted_;  // transfers with messages that the card returned unsent
  std::unordered_map<uint64_t, OfferTaker> takers_;  // key: index of the link, and context
  pmd::mem::Plan plan_;
};

}  // namespace rio::msg
