/// @file
/// Handles messages that the card has not delivered.
#pragma once

#include <cstdint>

#include "lib/msg/large.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/speaker.hpp"

namespace rio::msg {

/// One per rail; used only on the port's thread. A failed message is resent, or its session ends.
class Failures final : public Outbox::Events {
 public:
  Failures(const PortObjects& objects, Rail& rail) : works_(objects), rail_(rail) {}

  void on_failed(const pmd::TxDone& done) override;
  void on_large_done(const pmd::TxDone& done) override {
    works_.large.sender().on_sent(rail_, done);
  }
  void on_half_full() override { works_.retries.hold_if_greedy(rail_); }

 private:
  void on_message_failed(Path& path, uint32_t entry, pmd::Status status, uint64_t first_ns);
  void on_session_failed(const HeaderWords& header, uint32_t entry, pmd::Status status);

  PortObjects works_;
  Rail& rail_;
};

}  // namespace rio::msg
