/// @file
/// Transactions with an 8-bit ID: doorbells, reads and writes of remote memory, maintenance.
#pragma once

#include <optional>
#include <vector>

#include "fpga/model/core/core.hpp"

namespace rio::model {

/// Whether a request is answered.
[[nodiscard]] constexpr bool has_response(regs::DmaOp op) {
  return op != regs::DmaOp::kNwrite && op != regs::DmaOp::kSwrite;
}

class Transactions {
 public:
  explicit Transactions(Core& core) : core_(core) {}

  /// Take a free transaction of the flow. @return null: all 256 are in flight or resting.
  [[nodiscard]] Transaction* start(Flow& flow);

  /// Send the request, for the first time or again. If the wire has no room, send_due() sends it
  /// later.
  void send(Pair& pair, Flow& flow, Transaction& transaction);
  void send_due();
  [[nodiscard]] bool due() const { return !due_.empty() && core_.link_up; }
  /// Send a request that has no response. @return false: no room on the wire; try again later.
  [[nodiscard]] bool send_posted(Pair& pair, Flow& flow, const Transaction& request);

  /// The transaction in flight that a response answers; null: none.
  [[nodiscard]] Transaction* answered(Flow& flow, const InFrame& response);
  /// Process the response to a transaction; its data goes to host memory. @return how it has ended;
  /// nullopt: answered RETRY, it is sent again later.
  [[nodiscard]] std::optional<regs::Status> conclude(Pair& pair, Flow& flow,
                                                     Transaction& transaction,
                                                     const InFrame& response);
  /// End a transaction and free its ID.
  void end(Flow& flow, Transaction& transaction);
  /// End a transaction for its owner. A response may still arrive, so its ID rests.
  void rest(Transaction& transaction);

  struct Expired {
    Pair* pair;
    Flow* flow;
    Transaction* transaction;
    regs::Status status;  ///< in doubt, or the reason why it was not sent (again)
  };
  /// The owner was told of an expired transaction.
  void expire(Flow& flow, Transaction& transaction);
  /// Transactions whose response time-out has expired. Also ends quarantines that are over.
  [[nodiscard]] const std::vector<Expired>& check_timers();
  /// All transactions in flight to a partner that is gone. Also ends the flow's quarantines.
  [[nodiscard]] const std::vector<Expired>& lose(Pair& pair, Flow& flow);
  /// Correct the send time of frames that were stamped `time_ns` but sent just now.
  void sent_late(uint64_t time_ns);
  /// The card was reset: transactions in flight rest.
  void forget(Pair& pair);

 private:
  /// Call `fn(pair, flow, transaction)` for all that are in flight or rest.
  template <class Fn>
  void each(Fn fn) {
    for (Pair& pair : core_.pairs) {
      for (auto& of_destination : pair.flows) {
        Flow& flow = *of_destination.second;
        flow.each_transaction([&](Transaction& t) { fn(pair, flow, t); });
      }
    }
  }
  [[nodiscard]] bool again(Pair& pair, Flow& flow, Transaction& transaction);
  struct Due {
    Pair* pair;
    Flow* flow;
    uint8_t tid;
  };
  /// The status with which a transaction would expire. @return kOk: it must not, since it waits to
  /// be sent.
  [[nodiscard]] regs::Status fate(const Pair& pair, const Transaction& transaction) const;
  /// Write the request to the wire. @return false: no room.
  bool transmit(Pair& pair, Flow& flow, const Transaction& transaction, uint8_t tid);
  [[nodiscard]] static uint8_t tid_of(const Flow& flow, const Transaction& transaction) {
    return static_cast<uint8_t>(&transaction - flow.transactions.get());
  }

  Core& core_;
  std::vector<Due> due_;
  std::vector<Expired> expired_;
};

}  // namespace rio::model
