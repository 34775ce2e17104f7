/// @file
/// Reads, writes and atomic operations in the memory of peers.
#pragma once

#include <rdma/fi_rma.h>

#include <deque>
#include <memory>
#include <vector>

#include "lib/ofi/address_vector.hpp"
#include "lib/ofi/card_ways.hpp"
#include "lib/ofi/info.hpp"
#include "lib/ofi/server.hpp"

namespace rio::ofi {

/// The arguments of a call.
struct RemoteCall {
  Verb verb;
  fi_addr_t peer;
  uint64_t address;
  uint64_t key;
  uint64_t flags;
  void* context;
  uint64_t immediate = 0;  // with FI_REMOTE_CQ_DATA
  bool silent = false;     // injected: no completion
  fi_datatype type = FI_UINT8;
  fi_op op = FI_ATOMIC_WRITE;
  Buffers operands = {nullptr, 0};  // the data to write
  Buffers compare = {nullptr, 0};
  Buffers result = {nullptr, 0};  // the space for the data read
};

/// All functions under a Guard.
class Remote {
 public:
  Remote(const Bindings& bound, Domain& domain);
  ~Remote();

  /// @param first of the endpoint's contexts. @return 0, or as tag::TaggedContext::create().
  [[nodiscard]] int enable(uint32_t first);
  /// Start a call. @return 0: it ends with a completion or an error entry; -FI_EINVAL,
  /// -FI_EMSGSIZE, -FI_ENOMEM.
  [[nodiscard]] ssize_t start(const RemoteCall& call);

  /// Calls tag::TaggedContext::forget_former() of its endpoints.
  void forget_former(uint32_t dest_id) {
    if (tag_ != nullptr) {
      tag_->forget_former(dest_id);
      replies_->forget_former(dest_id);
    }
  }

  /// Hot. End transfers that the cards have done.
  void reap_transfers() {
    if (by_card_ != 0 && cards_.has_done()) {
      progress_cards();
    }
  }
  /// Hot. After MessagePort::progress().
  void progress() {
    if (tag_ == nullptr) {
      return;
    }
    if (by_card_ != 0) {
      progress_cards();
    }
    attend(*replies_);
    attend(*tag_);
    if (tag_->port().stats().refused != refused_) [[unlikely]] {
      end_refused();
    }
    if (replies_->has_unexpected()) [[unlikely]] {
      replies_->drop_unexpected();  // answers to requests of a closed endpoint that had this number
    }
  }
  /// Whether peers or the user rely on something that only progress() completes.
  [[nodiscard]] bool busy();

 private:
  struct Operation final : Party {
    void done(tag::Request& request) override { remote->went_on(*this, request); }
    Remote* remote = nullptr;
    tag::Address to = 0;
    uint32_t id = 0;
    uint8_t refusals = 0;  // refusals by the peer's context when the operation began
    uint32_t parts = 0;    // requests under way
    int status = 0;        // 0, or the first error: FI_E…
    tag::SendRequest ask;
    tag::SendRequest data;
    tag::RecvRequest reply;
    std::unique_ptr<uint8_t[]> message;
    size_t message_bytes = 0;
    const uint8_t* data_at = nullptr;  // null: the data is in the message
    uint64_t data_bytes = 0;
    std::unique_ptr<uint8_t[]> copy;  // of data in several pieces
    uint8_t* result = nullptr;
    uint64_t result_bytes = 0;
    std::unique_ptr<uint8_t[]> gathered;  // a result, before it is scattered to several pieces
    WindowReply window = {};              // of Verb::kWindow
    // Used by a transfer of the card.
    CardTarget target;
    bool fences_card = false;  // the message that repeats it closes the owner's window first
    msg::DmaTransfer transfer;
    LocalBytes local;
    RemoteCall call = {};                   // as the user made it
    std::array<iovec, kIovMax> own_pieces;  // pieces of `call` that outlive the user's call

    [[nodiscard]] bool fences() const { return (call.flags & FI_FENCE) != 0; }
    /// The local buffers of a read or write: those written from, or read into.
    [[nodiscard]] Buffers& buffers() {
      return call.verb == Verb::kWrite ? call.operands : call.result;
    }
  };

  static void attend(tag::TaggedContext& tag) {
    tag.attend();
    while (tag::Request* const request = tag.next_done()) {
      static_cast<Party*>(request->user)->done(*request);
    }
  }
  void adopt(const RemoteCall& call, Operation& operation);
  [[nodiscard]] bool start_by_card(const RemoteCall& call, Operation& operation);
  static void set_aside(Operation& operation);
  void take_from_card(Operation& operation);
  void progress_cards();
  void card_is_done(Operation& operation);
  void repeat_by_message(Operation& operation);
  void ask_window(const CardTarget& target, tag::Address to, uint64_t key);
  [[nodiscard]] static ssize_t prepare(Operation& operation);
  [[nodiscard]] static ssize_t prepare_message(Operation& operation);
  void begin(Operation& operation);
  void send(Operation& operation, uint64_t bits, const uint8_t* bytes, uint64_t count,
            tag::SendRequest& request);
  void went_on(Operation& operation, tag::Request& request);
  void end_refused();
  void take_reply(Operation& operation);
  void end(Operation& operation);
  void tell(const Operation& operation);

  const Bindings& bound_;
  Domain& domain_;
  uint64_t refused_ = 0;  // value of PortStats::refused when last checked
  uint32_t under_way_ = 0;
  uint32_t by_card_ = 0;  // operations under way in the cards, and those of `card_done_`
  uint64_t done_by_card_ = 0;
  uint64_t done_by_messages_ = 0;
  bool closing_ = false;
  std::deque<Operation*> fenced_;  // operations that wait for all earlier ones
  // With several cards: operations that a card has done. They may end within the port's progress,
  // where nothing may be sent yet.
  std::vector<Operation*> card_done_;
  base::Slab<Operation> operations_;
  CardWays cards_;
  Server server_;
  // The endpoints are destroyed before all requests.
  std::unique_ptr<tag::TaggedContext> tag_;
  std::unique_ptr<tag::TaggedContext> replies_;
};

}  // namespace rio::ofi
