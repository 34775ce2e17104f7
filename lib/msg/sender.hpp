/// @file
/// Sends of large data: they wait for GRANT, post messages as far as that allows, and say CLOSED
/// where an attempt does not end well.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lib/msg/bounce.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/offer.hpp"
#include "lib/msg/transfer.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

class Port;
struct Route;

/// Of one port; its thread.
class Sender {
 public:
  /// A TxDone with this bit in its cookie is for on_sent().
  static constexpr uint64_t kCookie = uint64_t{1} << 63;

  explicit Sender(Port& port) : port_(port) {}
  /// @return 0, -ENOMEM.
  [[nodiscard]] int create();

  /// As Context::send_large().
  [[nodiscard]] int send(Context& context, const Route& route, uint64_t match_bits,
                         const void* data, uint64_t len_bytes, SendTransfer& transfer, bool small,
                         const uint64_t* immediate);
  void cancel(SendTransfer& transfer);

  // What the peer says; false: it has lied.
  [[nodiscard]] bool on_grant(Link& link, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_extend(Link& link, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_done(Link& link, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_abort(Link& link, std::span<const uint8_t> bytes);
  /// @param context whose it is.
  [[nodiscard]] bool on_offer(Link& link, uint32_t context, std::span<const uint8_t> bytes);
  [[nodiscard]] bool on_revoke(Link& link, uint32_t context, std::span<const uint8_t> bytes);

  /// The card has completed a message.
  void on_sent(const pmd::TxDone& done);
  /// The ring that was stopped runs again: what it gave back is posted once more.
  void resume();
  /// The peer is gone: nothing more is posted, and all are done once the card has completed theirs.
  void end_session(Link& link, int error);
  /// Before all sessions end: the card completes nothing any more, and reads nothing.
  void card_gone();
  void progress();
  /// Whether progress() has anything to do.
  [[nodiscard]] bool busy() const { return !working_.empty() || out_count_ != 0; }
  /// Whether the card has messages of ours.
  [[nodiscard]] bool sending() const { return out_count_ != 0; }

 private:
  static constexpr uint32_t kOut = 256;      // messages that the card has of all transfers
  static constexpr uint32_t kOutEach = 128;  // and of one

  struct Out {
    SendTransfer* transfer;
    uint32_t number;  // of the message in its cut
  };

  [[nodiscard]] OfferTaker& taker(const Link& link, uint32_t context);
  void accept(const Route& route, RequestBody& body, SendTransfer& transfer);
  [[nodiscard]] SendTransfer* find(const Link& link, uint32_t id) const;
  void work(SendTransfer& transfer);
  [[nodiscard]] bool take_back(SendTransfer& transfer, uint32_t number, pmd::Status status);
  static void ask_again(SendGrant& grant);
  [[nodiscard]] bool look(SendTransfer& transfer);
  void post(SendTransfer& transfer);
  [[nodiscard]] pmd::TxMessage message(const SendTransfer& transfer, const pmd::mem::PlanMessage& m,
                                       uint32_t slot);
  [[nodiscard]] bool say_closed(SendTransfer& transfer);
  void finish(SendTransfer& transfer);

  Port& port_;
  pmd::mem::AlignRules rules_;
  uint8_t flags_ = 0;  // of the messages
  Bounce bounce_;      // by slot of out_
  std::array<Out, kOut> out_{};
  uint32_t out_count_ = 0;
  std::vector<SendTransfer*> working_;
  std::vector<SendTransfer*> interrupted_;           // that have messages which the card gave back
  std::unordered_map<uint64_t, OfferTaker> takers_;  // by index of the link and context
  pmd::mem::Plan plan_;
};

}  // namespace rio::msg
