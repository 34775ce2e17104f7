/// @file
/// Sessions with peers that end: what an endpoint had under way with them ends, too.
#pragma once

#include "lib/tag/intake.hpp"
#include "lib/tag/outbox.hpp"

namespace rio::tag {

/// One thread.
class Sessions final : public SessionWatch {
 public:
  /// All outlive the object. The intake and the outbox may be made after it: it uses them by
  /// functions only.
  Sessions(msg::MessagePort& port, msg::MessageContext& context, Matcher& matcher,
           Completions& completions, Peers& peers, UnexpectedStore& store, Intake& intake,
           Outbox& outbox);

  /// Hot. Whether look() has something to do.
  [[nodiscard]] bool changed() const {
    return port_.sessions_ended() != ended_ || port_.error() != 0;
  }
  /// Some session has ended. Messages that came before that are taken first, and are not lost.
  void look() override;
  void end(msg::Link& link, uint32_t session, int error) override;
  /// As TaggedContext::forget_former().
  void forget_former(uint32_t dest_id);
  /// The card is gone, or the endpoint closes: all ends.
  void fail_all(int error);

 private:
  void disown_messages(const msg::Link& link);

  msg::MessagePort& port_;
  uint64_t ended_;  // sessions of the port that have ended, as look() saw last
  msg::MessageContext& context_;
  Matcher& matcher_;
  Completions& completions_;
  Peers& peers_;
  UnexpectedStore& store_;
  Intake& intake_;
  Outbox& outbox_;
};

}  // namespace rio::tag
