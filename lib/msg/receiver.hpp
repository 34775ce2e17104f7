/// @file
/// Receives of large data: a request waits for its match, then for a queue, and then its entries
/// are posted in windows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/msg/bounce.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/offer.hpp"
#include "lib/msg/transfer.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

class Port;

/// Of one port; its thread.
class Receiver {
 public:
  explicit Receiver(Port& port) : port_(port) {}
  /// @return 0, -ENOMEM.
  [[nodiscard]] int create();

  /// REQUEST, which takes a record. @param number of it, as Link::number_in() gave before.
  /// @return the request, to be put into the inbox; null: the peer has lied.
  [[nodiscard]] Request* on_request(Link& link, const Header& header,
                                    std::span<const uint8_t> bytes, uint16_t number);
  /// CLOSED. @return false: the peer has lied.
  [[nodiscard]] bool on_closed(Link& link, std::span<const uint8_t> bytes);
  /// REVOKED. @param context ours.
  [[nodiscard]] bool on_revoked(Link& link, uint32_t context, std::span<const uint8_t> bytes);

  // As those of Context.
  void receive(Context& context, Request* request, void* buffer, uint64_t capacity,
               RecvTransfer& transfer);
  /// @param record whether it has taken one.
  void refuse(Request* request, bool record = true);
  void cancel(RecvTransfer& transfer);
  void keep(Request& request);
  [[nodiscard]] int offer(Link& link, uint16_t context, uint64_t match_bits, uint64_t ignore_bits,
                          void* buffer, uint64_t capacity);
  void revoke(Link& link, uint16_t context);

  /// The peer is gone: its queues are stopped, its mailboxes rest.
  void end_session(Link& link, int error);
  void progress();
  /// Whether progress() has anything to do.
  [[nodiscard]] bool busy() const {
    return (used_ | to_stop_ | open_offers_) != 0 || !working_.empty() || !resting_.empty() ||
           assigner_.ready();
  }
  /// Whether large data may come that nobody waits for.
  [[nodiscard]] bool late_possible() const { return quarantined_ != 0 || !resting_.empty(); }

 private:
  static constexpr uint32_t kQueues = QueueAssigner::kQueues;
  static constexpr uint32_t kWindow = 128;  // entries of one transfer
  static constexpr uint32_t kBounceEach = 64;

  struct Queue {
    pmd::DedicatedRxQueue* ring = nullptr;  // null: closed
    RecvTransfer* transfer = nullptr;
    std::vector<uint32_t> bounced;  // buffers of entries that the card has
  };

  /// Of one peer, for one context.
  struct Offer {
    Link* link;
    uint16_t context;
    OfferMaker maker;
    OfferBody body;
    QueuePlace place;
    const void* buffer;
    uint64_t age;
    bool say_revoke;
    uint32_t skip;     // offers not to be made, since the last ones were refused
    uint32_t refused;  // in a row

    void failed();
  };

  [[nodiscard]] Offer* find_offer(const Link& link, uint32_t context);
  [[nodiscard]] bool take_offer(Offer& offer, Request& request, uint16_t number);
  void end_offer(Offer& offer, bool refused);
  void look_at_offers();
  void accept(const Request& request, RecvTransfer& transfer);
  void say_stop(const Request& request, uint8_t reason);
  void park(Request& request, StopCause cause);
  [[nodiscard]] bool close_request(Request& request, const StopBody& body);
  [[nodiscard]] RecvTransfer* find(const Link& link, uint32_t id) const;
  [[nodiscard]] Request* find_request(const Link& link, uint32_t id) const;
  void work(RecvTransfer& transfer);
  void free(Request* request, bool record);
  void begin(RecvTransfer& transfer, const QueuePlace& place);
  [[nodiscard]] bool open(const Link& link, const QueuePlace& place);
  void post(RecvTransfer& transfer);
  [[nodiscard]] bool post_whole(RecvTransfer& transfer, const pmd::mem::Range& range, uint32_t n);
  void serve();
  bool reap(Queue& queue);
  void complete(Queue& queue, const pmd::EntryDone& done);
  [[nodiscard]] uint32_t complete_placed(RecvTransfer& transfer,
                                         std::span<const pmd::EntryDone> done);
  [[nodiscard]] bool look(RecvTransfer& transfer);
  [[nodiscard]] bool say_total(RecvTransfer& transfer);
  [[nodiscard]] bool say_abort(RecvTransfer& transfer);
  void stop_queue(uint32_t queue);
  void leave(RecvTransfer& transfer);
  void finish(RecvTransfer& transfer, int status);

  Port& port_;
  pmd::mem::AlignRules rules_;
  QueueAssigner assigner_;
  std::array<Queue, kQueues> queues_;
  uint32_t used_ = 0;         // queues with a transfer, a bit each
  uint32_t to_stop_ = 0;      // and those that the card did not stop when it was told to
  uint32_t quarantined_ = 0;  // transfers whose mailbox is
  uint32_t open_offers_ = 0;
  uint64_t offer_age_ = 0;
  std::vector<std::unique_ptr<Offer>> offers_;  // one for each peer and context that had any
  Bounce bounce_;
  std::vector<RecvTransfer*> working_;
  std::vector<Link*> resting_;
  std::vector<std::unique_ptr<Request>> requests_;  // all that there are
  std::vector<Request*> spare_;
  pmd::mem::Plan plan_;
};

}  // namespace rio::msg
