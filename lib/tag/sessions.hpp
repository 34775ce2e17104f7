/// @file
/// Ends what a context had under way with peers whose sessions have ended.
#pragma once

#include "lib/tag/intake.hpp"
#include "lib/tag/outbox.hpp"

namespace rio::tag {

/// One thread.
class Sessions final : public SessionWatch {
 public:
  /// All outlive the object. The intake and the outbox may be made after it: it uses them by
  /// functions only.
  Sessions(EngineState& state, UnexpectedStore& store, Intake& intake, Outbox& outbox);

  /// Hot. Whether look() has something to do.
  [[nodiscard]] bool changed() const {
    return port_.sessions_ended() != ended_ || port_.error() != 0;
  }
  /// Some session has ended. Messages that arrived before are taken first, and are not lost.
  /// Without tags the caller takes them, so that only sends end while the inbox has any.
  void look() override;
  /// A message has arrived. If it is of a session that is news, the former one has ended.
  void meet(const msg::Origin& origin) {
    if (static_cast<int32_t>(origin.session - state_.peers.session_of(*origin.link)) > 0) {
      end(*origin.link, origin.session, origin.link->error);
    }
  }
  void end(msg::Link& link, uint32_t session, int error) override;
  /// As TaggedContext::forget_former().
  void forget_former(uint32_t dest_id);
  /// The card is gone, or the context closes: all ends.
  void fail_all(int error);

 private:
  void end_all();
  void end_sends(Peer& peer, uint32_t session, int error);
  void disown_messages(const msg::Link& link);

  msg::MessagePort& port_;  // a copy of the state's, for changed()
  uint64_t ended_;          // sessions of the port that have ended, as look() saw last
  EngineState& state_;
  UnexpectedStore& store_;
  Intake& intake_;
  Outbox& outbox_;
};

}  // namespace rio::tag
