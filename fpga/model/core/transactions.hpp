/// @file
/// Transactions with an id of 8 bits: doorbells, fabric reads and writes, maintenance.
#pragma once

#include <vector>

#include "fpga/model/core/core.hpp"

namespace rio::model {

class Transactions {
 public:
  explicit Transactions(Core& core) : core_(core) {}

  /// A free transaction of the flow. @return null: all 256 fly or rest.
  [[nodiscard]] Transaction* start(Flow& flow);

  /// Send the request, first or again. Where the wire has no room it is sent by send_due().
  void send(Pair& pair, Flow& flow, Transaction& transaction);
  void send_due();
  [[nodiscard]] bool due() const { return !due_.empty() && core_.link_up; }
  /// Send a request that has no response. @return false: no room on the wire, come again.
  [[nodiscard]] bool send_posted(Pair& pair, Flow& flow, const Transaction& request);

  /// The transaction that a response answers; null: none that flies.
  [[nodiscard]] Transaction* answered(Flow& flow, const InFrame& response);
  /// RETRY: to be sent again after a while. @return false: the limit is reached.
  [[nodiscard]] bool again(Pair& pair, Flow& flow, Transaction& transaction);
  /// It is over and its id is free.
  void end(Flow& flow, Transaction& transaction);
  /// It is over for its owner, but a response may still come: the id rests.
  void rest(Transaction& transaction);

  struct Expired {
    Pair* pair;
    Flow* flow;
    Transaction* transaction;
    regs::Status status;  ///< in doubt, or what kept it from being sent (again)
  };
  /// Its owner was told.
  void expire(Flow& flow, Transaction& transaction);
  /// Transactions whose response time-out has run out; ends quarantines on the way.
  [[nodiscard]] const std::vector<Expired>& check_timers();
  /// Those of a flow whose partner is gone; ends quarantines on the way.
  [[nodiscard]] const std::vector<Expired>& lose(Pair& pair, Flow& flow);
  /// Frames that were stamped with `time_ns` were sent just now.
  void sent_late(uint64_t time_ns);
  /// The card was reset: what flies rests.
  void forget(Pair& pair);

 private:
  struct Due {
    Pair* pair;
    Flow* flow;
    uint8_t tid;
  };
  /// @return the status of a transaction whose time has run out; kOk: it waits to be sent, with
  /// reason.
  [[nodiscard]] regs::Status fate(const Pair& pair, const Transaction& transaction) const;
  /// @return false: no room on the wire.
  bool transmit(Pair& pair, Flow& flow, const Transaction& transaction, uint8_t tid);
  [[nodiscard]] static uint8_t tid_of(const Flow& flow, const Transaction& transaction) {
    return static_cast<uint8_t>(&transaction - flow.transactions.get());
  }

  Core& core_;
  std::vector<Due> due_;
  std::vector<Expired> expired_;
};

}  // namespace rio::model
