/// @file
/// The stream of txonly, rxonly and flowgen: sends, or receives, or both.
#pragma once

#include <vector>

#include "apps/testpmd/mode.hpp"

namespace rio::testpmd {

/// Where the next message goes; a generator takes its ways in turn. Neighbours that are equal are
/// cheaper, and four letters of a mailbox can fly.
struct Way {
  uint32_t dest_id;
  uint16_t flow;
  uint8_t mbox;
};

/// One port. It always takes what comes in, since what is refused comes again and again. Payloads
/// that it sends lie at --offset in buffers of its own; those that the card cannot take there are
/// bounced (alignment plan).
class Generator final : public Stream {
 public:
  /// @param ways empty: it only receives. @param flows of each port: flow numbers are port index *
  /// flows and up.
  Generator(const RunSetup& setup, TestPort& port, std::vector<Way> ways, uint32_t flows);
  /// Before turn(), if there are ways. @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] int allocate(std::string* error);

  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] bool quiet() const noexcept override { return in_flight_ == 0 && ready_ == 0; }
  [[nodiscard]] bool sends() const override { return !ways_.empty(); }

 private:
  uint32_t receive() noexcept;
  uint32_t count_good(uint32_t n) noexcept;
  uint32_t send(bool may_send) noexcept;
  uint32_t prepare(uint32_t n) noexcept;
  void advance(uint32_t sent) noexcept;
  uint32_t reap() noexcept;
  void failed(const pmd::TxDone& done) noexcept;

  pmd::SharedRxQueue& rx_;
  pmd::TxQueue& tx_;
  std::vector<Way> ways_;
  uint32_t way_ = 0;    // the next one
  uint32_t ready_ = 0;  // messages that are written and not sent
  uint32_t free_top_ = 0;
  SendBuffers send_;
  std::vector<uint64_t> free_;         // bus addresses of buffers, a stack
  std::vector<pmd::TxMessage> slots_;  // one for each way, and a burst more: ways in turn
  std::vector<uint16_t> flows_;        // of the slots
  pmd::TxDone done_[kBurstMax];
  pmd::RxMessage messages_[kBurstMax];
  pmd::RxBuffer buffers_[kBurstMax];
};

/// A generator for each port. @param ways_of `vector<Way>(setup, port)`, the ways that a port sends
/// by. @return as Generator::allocate().
template <typename WaysOf>
[[nodiscard]] int make_generators(const RunSetup& setup, uint32_t flows, WaysOf&& ways_of,
                                  Streams* streams, std::string* error) {
  return make_each(setup, streams, [&](TestPort& port, std::unique_ptr<Stream>* out) {
    auto stream = std::make_unique<Generator>(setup, port, ways_of(setup, port), flows);
    const int rc = stream->sends() ? stream->allocate(error) : 0;
    *out = std::move(stream);
    return rc;
  });
}

/// To the port's peer, one way for each letter of the mailboxes that messages of this size may
/// take.
[[nodiscard]] std::vector<Way> ways_by_letter(const RunSetup& setup, const TestPort& port);

}  // namespace rio::testpmd
