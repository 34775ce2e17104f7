/// @file
/// Transactions with an 8-bit ID: doorbells, barrier notifications, reads and writes of remote
/// memory, maintenance.
#pragma once

#include <functional>
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

  /// Take a free transaction of the flow and send its request. If the wire has no room, send_due()
  /// sends it later; until then Flow::requests_wait is set. @return false: all 256 are in flight or
  /// resting.
  [[nodiscard]] bool start(Flow& flow, const Transaction& request);
  /// Take a free transaction of the flow and send its request at once. @return false: all 256 are
  /// in flight or resting, the link is down, or the wire has no room.
  [[nodiscard]] bool start_now(Flow& flow, const Transaction& request);
  void send_due();
  /// Make kLongRequests that were sent visible, so that the partner takes all of them together.
  void publish() {
    if (unpublished_ != nullptr) {
      unpublished_->publish();
      unpublished_ = nullptr;
    }
  }
  [[nodiscard]] bool due() const { return !due_.empty() && core_.link_up; }
  /// Send a request that has no response. @return false: no room on the wire; try again later.
  [[nodiscard]] bool send_posted(Flow& flow, Transaction request) {
    return transmit(flow, request, 0);
  }

  /// The transaction in flight that a response answers; null: none.
  [[nodiscard]] Transaction* answered(Flow& flow, const InFrame& response);
  /// Process the response to a transaction; its data goes to host memory. @return how it has ended;
  /// nullopt: answered RETRY, it is sent again later. Notifications are never sent again here.
  [[nodiscard]] std::optional<regs::Status> conclude(Flow& flow, Transaction& transaction,
                                                     const InFrame& response);
  /// End a transaction and free its ID.
  void end(Flow& flow, Transaction& transaction);
  /// Count a kLongRequest of which the partner has done nothing as never sent.
  void uncount(const Transaction& transaction) {
    core_.counts.tx_packets -= long_packets(transaction.length);
  }

  /// Tells the owner of a transaction that it has ended. The status is "in doubt", or the reason
  /// why it was not sent (again). Called while flows are iterated: it must not send, nor make a
  /// flow.
  using Ended = std::function<void(const Flow&, const Transaction&, regs::Status)>;
  /// End transactions whose response time-out has expired, and quarantines that are over.
  void check_timers(const Ended& ended);
  /// The flow's partner is gone: end all its transactions, and the quarantines.
  void lose(Flow& flow, const Ended& ended);
  /// The pair was reset: its transactions in flight rest.
  void forget(const Pair& pair);

 private:
  [[nodiscard]] Transaction* take(Flow& flow, const Transaction& request);
  [[nodiscard]] bool again(Flow& flow, Transaction& transaction);
  /// End a transaction that was not answered. If a response may still arrive, its ID rests.
  void expire(Flow& flow, Transaction& transaction, regs::Status status, const Ended& ended);
  struct Due {
    Flow* flow;
    Transaction* transaction;
  };
  /// The status with which a transaction would expire. @return kOk: it must not, since it waits to
  /// be sent.
  [[nodiscard]] regs::Status fate(const Flow& flow, const Transaction& transaction) const;
  /// Write the request to the wire. @return false: no room.
  bool transmit(Flow& flow, Transaction& transaction, uint8_t tid);
  static void send_gathered(const Flow& flow, const Transaction& transaction, Frame& frame,
                            uint32_t payload);
  [[nodiscard]] bool transmit_long(Flow& flow, Transaction& transaction, uint8_t tid);
  /// The partner must not pull the bytes of a kLongRequest from now on.
  static void revoke(const Flow& flow, const Transaction& transaction);
  [[nodiscard]] static uint8_t tid_of(const Flow& flow, const Transaction& transaction) {
    return static_cast<uint8_t>(&transaction - flow.transactions.get());
  }

  Core& core_;
  std::vector<Due> due_;
  FrameWriter* unpublished_ = nullptr;  // has frames that are not published yet
};

}  // namespace rio::model
