#include "lib/ofi/remote.hpp"

#include <rdma/providers/fi_log.h>
#include <algorithm>

#include <chrono>
#include <cinttypes>
#include <cstring>

#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/domain.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/provider.hpp"

namespace rio::ofi {
namespace {

/// Number of bytes of the peer's memory that the call accesses.
[[nodiscard]] uint64_t extent(const RemoteCall& call) {
  const bool writes = call.verb == Verb::kWrite || call.verb == Verb::kUpdate;
  return writes ? call.operands.bytes() : call.result.bytes();
}

/// Checks that the arguments fit together.
[[nodiscard]] ssize_t check(const RemoteCall& call) {
  const uint64_t bytes = extent(call);
  if (call.operands.count > kIovMax || call.result.count > kIovMax ||
      call.compare.count > kIovMax) {
    return -FI_EINVAL;
  }
  if (!is_atomic(call.verb)) {
    return bytes > tag::kLengthMax ? -FI_EMSGSIZE : 0;
  }
  if (!is_atomic(call.verb, call.type, call.op)) {
    return -FI_EOPNOTSUPP;
  }
  const bool whole = (!has_operands(call.op) || call.operands.bytes() == bytes) &&
                     (call.verb != Verb::kCompare || call.compare.bytes() == bytes) &&
                     bytes % size_of(call.type) == 0;
  return !whole ? -FI_EINVAL : bytes > kAtomicBytesMax ? -FI_EMSGSIZE : 0;
}

/// The error of a transfer of the card: FI_E…, above 0.
[[nodiscard]] int error_of(pmd::Status status) {
  switch (status) {
    case pmd::Status::kOk:
      return 0;
    case pmd::Status::kResponseTimeout:
    case pmd::Status::kRetryExpired:
      return FI_ETIMEDOUT;
    case pmd::Status::kLinkDown:
      return FI_EHOSTUNREACH;
    case pmd::Status::kHostReadFailed:
      return FI_EFAULT;
    default:
      return FI_EIO;
  }
}

/// Whether the peer's memory may have been accessed, or may be yet.
[[nodiscard]] bool is_in_doubt(pmd::Status status) {
  return status != pmd::Status::kOk && status != pmd::Status::kHostReadFailed;
}

}  // namespace

Remote::Remote(const Bindings& bound, Domain& domain)
    : bound_(bound), domain_(domain), server_(bound, domain.regions()) {}

/// Operations under way end without completions: the user has closed the endpoint.
Remote::~Remote() {
  constexpr std::chrono::seconds kPatience{1};
  closing_ = true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  by_card_ -= static_cast<uint32_t>(card_done_.size());
  while (by_card_ != 0 && std::chrono::steady_clock::now() < end) {
    cards_.port().progress();
    cards_.progress();
  }
  if (by_card_ != 0) {
    base::log_warning(
        "rio: endpoint closed while a peer does not answer: the DMA queue is stopped, and all goes "
        "by messages until the domain is closed");
    cards_.stop();
  }
  if (by_card_ != 0) {  // told by the driver
    operations_.for_each([](Operation& operation) { operation.transfer.on_done = nullptr; });
  }
  FI_INFO(&provider(), FI_LOG_EP_DATA,
          "reads, writes and atomics: %" PRIu64 " by the card, %" PRIu64 " by messages\n",
          done_by_card_, done_by_messages_);
  msg::MessagePort* const port = tag_ != nullptr ? &tag_->port() : nullptr;
  tag_.reset();
  replies_.reset();
  if (by_card_ != 0) {
    port->take_over(operations_.leave());
  }
}

int Remote::enable(uint32_t first) {
  tag::TaggedConfig config;
  config.eager_bytes = domain_.border();
  msg::MessagePort& port = domain_.port();
  const auto open = [&](uint32_t offset, std::unique_ptr<tag::TaggedContext>* out) {
    return tag::TaggedContext::create(port, static_cast<uint16_t>(first + offset), config, out);
  };
  int rc = open(kRemoteContext, &tag_);
  rc = rc != 0 ? rc : open(kReplyContext, &replies_);
  refused_ = port.stats().refused;
  cards_.start(port, domain_.rma_border());
  return rc != 0 ? rc : server_.start(*tag_, *replies_);
}

ssize_t Remote::start(const RemoteCall& call) {
  if (const ssize_t rc = check(call); rc != 0) {
    return rc;
  }
  tag::Address peer = bound_.av->find(call.peer);
  if (peer == AddressVector::kNoPeer) [[unlikely]] {
    if (const int rc = bound_.av->find_slow(call.peer, &peer); rc != 0) {
      return rc;
    }
  }
  Operation* const operation = operations_.get();
  if (operation == nullptr) {
    return -FI_ENOMEM;
  }
  operation->to = peer - kTaggedContext + kRemoteContext;
  adopt(call, *operation);
  if (fenced_.empty() && start_by_card(call, *operation)) {
    return 0;
  }
  if (const ssize_t rc = prepare(*operation); rc != 0) {
    operations_.put(operation);
    return rc;
  }
  if (!fenced_.empty() || (operation->fences() && under_way_ != 0)) {
    fenced_.push_back(operation);
  } else {
    begin(*operation);
  }
  return 0;
}

void Remote::adopt(const RemoteCall& call, Operation& operation) {
  operation.remote = this;
  operation.id = domain_.next_question();
  operation.call = call;
  Party* const party = &operation;
  operation.ask.user = operation.data.user = operation.reply.user = party;
}

/// Every write asks for an answer: without one, the caller would not learn that it was refused.
/// @return false: it goes by messages.
bool Remote::start_by_card(const RemoteCall& call, Operation& operation) {
  const bool plain = (call.verb == Verb::kWrite || call.verb == Verb::kRead) &&
                     (call.flags & (FI_FENCE | FI_REMOTE_CQ_DATA)) == 0;
  const Buffers local = operation.buffers();
  const uint64_t bytes = local.bytes();
  if (!plain) {
    return false;
  }
  const CardTarget target = cards_.choose(operation.to, bytes);
  if (target.way == nullptr) {
    return false;
  }
  const uint64_t right = call.verb == Verb::kWrite ? FI_REMOTE_WRITE : FI_REMOTE_READ;
  bool asks = false;
  const uint64_t at = target.way->find(operation.to, call.key, call.address, bytes, right, &asks);
  if (asks) {
    ask_window(target, operation.to, call.key);
  }
  const bool must_copy = local.count > 1 || (call.flags & FI_INJECT) != 0;
  if (at == 0 || !target.way->reach(local.pieces[0].iov_base, bytes, must_copy, &operation.local)) {
    return false;
  }
  operation.target = target;
  msg::DmaTransfer& transfer = operation.transfer;
  transfer.rio_addr = at;
  transfer.va = operation.local.at;
  transfer.run = operation.local.run;
  transfer.left_bytes = bytes;
  transfer.dest_id = target.dest_id;
  transfer.op = call.verb == Verb::kWrite ? regs::DmaOp::kNwriteR : regs::DmaOp::kNread;
  transfer.user = &operation;
  transfer.on_done = [](msg::DmaTransfer& done) {
    auto& its = *static_cast<Operation*>(done.user);
    its.remote->take_from_card(its);
  };
  set_aside(operation);
  if (!target.way->start(transfer)) {
    target.way->put(operation.local);
    operation.call = call;
    return false;
  }
  ++by_card_;
  ++under_way_;
  return true;
}

/// Copy the arguments that the operation needs after the call has returned.
void Remote::set_aside(Operation& operation) {
  Buffers& local = operation.buffers();
  if (operation.call.verb == Verb::kWrite && operation.local.slot != nullptr) {
    local.gather(operation.local.slot);
    operation.own_pieces[0] = {operation.local.slot, local.bytes()};
    local.count = 1;
  } else {
    std::copy_n(local.pieces, local.count, operation.own_pieces.begin());
  }
  local.pieces = operation.own_pieces.data();
}

void Remote::take_from_card(Operation& operation) {
  if (cards_.is_several() && !closing_) {
    card_done_.push_back(&operation);
  } else {
    card_is_done(operation);
  }
}

void Remote::progress_cards() {
  cards_.progress();
  while (!card_done_.empty()) {
    for (Operation* const operation : std::exchange(card_done_, {})) {
      card_is_done(*operation);
    }
  }
}

void Remote::card_is_done(Operation& operation) {
  --by_card_;
  ++done_by_card_;
  operation.target.way->end(operation.transfer);
  if (closing_) {
    return;
  }
  const CardTarget& target = operation.target;
  const pmd::Status status = operation.transfer.status;
  if (status == pmd::Status::kErrorResponse || status == pmd::Status::kFlushed) {
    // The window has gone, or another one is there now: ask the owner again.
    target.way->forget(operation.to, operation.call.key);
    repeat_by_message(operation);
    return;
  }
  if (target.path != nullptr && is_in_doubt(status)) {
    target.way->forget(operation.to, operation.call.key);
    cards_.port().on_failed(*target.path, status);
    operation.fences_card = operation.call.verb == Verb::kWrite;
    repeat_by_message(operation);
    return;
  }
  operation.status = error_of(status);
  if (operation.status == 0 && operation.call.verb == Verb::kRead &&
      operation.local.slot != nullptr) {
    const Buffers& result = operation.call.result;
    result.scatter(operation.local.slot, result.bytes());
  }
  end(operation);
}

/// The message goes by any rail. A write that a card may have done, or may still do, is done again:
/// the bytes are the same, and the owner first closes the window.
void Remote::repeat_by_message(Operation& operation) {
  operation.status = static_cast<int>(-prepare(operation));
  if (operation.status != 0) {
    end(operation);
    return;
  }
  --under_way_;
  begin(operation);
}

void Remote::ask_window(const CardTarget& target, tag::Address to, uint64_t key) {
  Operation* const operation = operations_.get();
  if (operation == nullptr) {
    target.way->on_reply(to, key, 0, nullptr);
    return;
  }
  operation->to = to;
  operation->target = target;
  const iovec reply = {&operation->window, sizeof(operation->window)};
  RemoteCall call = {Verb::kWindow, 0, target.rails, key, 0, nullptr};
  call.result = {&reply, 1};
  adopt(call, *operation);
  operation->status = static_cast<int>(-prepare(*operation));
  if (operation->status != 0) {
    operations_.put(operation);
    target.way->on_reply(to, key, 0, nullptr);
    return;
  }
  begin(*operation);
}

/// Puts the data into the message if it fits; otherwise it stays where it is.
ssize_t Remote::prepare_message(Operation& operation) {
  const RemoteCall& call = operation.call;
  const uint64_t operands = has_operands(call.op) ? call.operands.bytes() : 0;
  const bool follows = call.verb == Verb::kWrite && operands > kInlineMax;
  const uint64_t inside = follows ? 0 : operands + call.compare.bytes();
  operation.message_bytes = sizeof(AskHeader) + inside;
  operation.message = make_bytes(operation.message_bytes);
  if (operation.message == nullptr) {
    return -FI_ENOMEM;
  }
  AskHeader ask = {};
  ask.verb = call.verb;
  if (is_atomic(call.verb)) {
    ask.type = static_cast<uint8_t>(call.type);
    ask.op = static_cast<uint8_t>(call.op);
  }
  const bool immediate = (call.flags & FI_REMOTE_CQ_DATA) != 0 && call.verb != Verb::kRead;
  ask.flags = static_cast<uint8_t>((follows ? AskHeader::kFollows : 0) |
                                   (immediate ? AskHeader::kImmediate : 0));
  if (operation.fences_card) {
    ask.flags |= AskHeader::kFences;
    ask.type = static_cast<uint8_t>(operation.target.remote);
  }
  ask.id = operation.id;
  ask.address = call.address;
  ask.key = call.key;
  ask.bytes = call.verb == Verb::kWindow ? 0 : extent(call);
  ask.immediate = immediate ? call.immediate : 0;
  std::memcpy(operation.message.get(), &ask, sizeof(ask));
  uint8_t* const at = operation.message.get() + sizeof(ask);
  if (!follows) {
    call.compare.gather(operands != 0 ? call.operands.gather(at) : at);
    return 0;
  }
  operation.data_bytes = operands;
  operation.data_at = static_cast<const uint8_t*>(call.operands.pieces[0].iov_base);
  if (call.operands.count > 1 || (call.flags & FI_INJECT) != 0) {
    operation.copy = make_bytes(operands);
    if (operation.copy == nullptr) {
      return -FI_ENOMEM;
    }
    call.operands.gather(operation.copy.get());
    operation.data_at = operation.copy.get();
  }
  return 0;
}

ssize_t Remote::prepare(Operation& operation) {
  if (const ssize_t rc = prepare_message(operation); rc != 0) {
    return rc;
  }
  Buffers& result = operation.call.result;
  operation.result_bytes = result.bytes();
  if (result.count == 1) {
    operation.result = static_cast<uint8_t*>(result.pieces[0].iov_base);
  } else if (result.count > 1) {
    operation.gathered = make_bytes(operation.result_bytes);
    operation.result = operation.gathered.get();
    std::copy_n(result.pieces, result.count, operation.own_pieces.begin());
    result.pieces = operation.own_pieces.data();
  }
  return operation.result_bytes != 0 && operation.result == nullptr ? -FI_ENOMEM : 0;
}

/// Posts the receive of the answer, then sends the request. The peer's end completes the receive.
void Remote::begin(Operation& operation) {
  if (tag_->port().stats().refused != refused_) [[unlikely]] {
    end_refused();  // an earlier refusal does not concern this operation
  }
  ++under_way_;
  ++done_by_messages_;
  operation.refusals = tag_->refusals(operation.to);
  operation.parts = 1;  // held until all parts have begun
  const tag::Address from = operation.to - kRemoteContext + kReplyContext;
  const tag::Pattern reply = {reply_bits(operation.id), 0, from};
  const int rc =
      replies_->receive(reply, operation.result, operation.result_bytes, operation.reply);
  if (rc == 0) {
    ++operation.parts;
  } else {
    take_reply(operation);  // takes the place of an answer: the request was never sent
  }
  send(operation, kAskBits, operation.message.get(), operation.message_bytes, operation.ask);
  if (operation.data_at != nullptr && operation.status == 0) {
    send(operation, data_bits(operation.id), operation.data_at, operation.data_bytes,
         operation.data);
  }
  if (--operation.parts == 0) {
    end(operation);
  }
}

void Remote::send(Operation& operation, uint64_t bits, const uint8_t* bytes, uint64_t count,
                  tag::SendRequest& request) {
  int rc = tag_->send(operation.to, bits, bytes, count, request);
  if ((rc == -ECONNRESET || rc == -ECONNREFUSED) && bits == kAskBits) {
    // This reports the fate of earlier requests, which the receives of their answers already know.
    // Send again.
    rc = tag_->send(operation.to, bits, bytes, count, request);
  }
  if (rc == 0) {
    ++operation.parts;
  } else if (rc < 0) {
    operation.status = operation.status != 0 ? operation.status : -rc;
    static_cast<void>(replies_->cancel(operation.reply));
  }
}

void Remote::went_on(Operation& operation, tag::Request& request) {
  if (&request == &operation.reply) {
    take_reply(operation);
  } else if (request.status != 0 && operation.status == 0) {
    operation.status = -request.status;
    static_cast<void>(replies_->cancel(operation.reply));
  }
  if (--operation.parts == 0) {
    end(operation);
  }
}

/// A peer's context has closed. All its answers came before that report: unanswered requests end
/// now.
[[gnu::noinline]] void Remote::end_refused() {
  refused_ = tag_->port().stats().refused;
  attend(*replies_);
  operations_.for_each([&](Operation& operation) {
    if (operation.parts != 0 && tag_->refusals(operation.to) != operation.refusals) {
      operation.status = operation.status != 0 ? operation.status : FI_ECONNREFUSED;
      static_cast<void>(replies_->cancel(operation.reply));
    }
  });
}

/// Whether an operation remains that peers or the user rely on: promised to the user without a
/// completion, awaited by a peer, or under way in the card.
bool Remote::busy() {
  bool busy = server_.busy() || by_card_ != 0;
  operations_.for_each([&](const Operation& operation) {
    const tag::Stage data = operation.data.stage;
    busy |= operation.call.silent || data == tag::Stage::kWaiting || data == tag::Stage::kMoving;
  });
  return busy;
}

/// Parses a foreign answer, or the error in its place.
void Remote::take_reply(Operation& operation) {
  const tag::RecvRequest& reply = operation.reply;
  int status = -reply.status;
  if (status == 0 && reply.immediate.there) {
    constexpr uint64_t kErrorMax = 4095;
    const uint64_t told = reply.immediate.value;
    status = told != 0 && told <= kErrorMax ? static_cast<int>(told) : FI_EIO;
  } else if (status == FI_EMSGSIZE || reply.length_bytes != operation.result_bytes) {
    status = status == 0 || status == FI_EMSGSIZE ? FI_EIO : status;
  }
  operation.status = operation.status != 0 ? operation.status : status;
}

void Remote::end(Operation& operation) {
  if (operation.status != 0) [[unlikely]] {
    bound_.av->check_again(operation.to - kRemoteContext);
  }
  if (operation.gathered != nullptr && operation.status == 0) {
    operation.call.result.scatter(operation.result, operation.result_bytes);
  }
  if (operation.call.verb == Verb::kWindow) {
    const CardTarget& target = operation.target;
    target.way->on_reply(operation.to, operation.call.key, cards_.bytes_max(target),
                         operation.status == 0 ? &operation.window : nullptr);
  } else {
    tell(operation);
  }
  if (operation.target.way != nullptr) {
    operation.target.way->put(operation.local);
  }
  operations_.put(&operation);
  --under_way_;
  while (!fenced_.empty() && (!fenced_.front()->fences() || under_way_ == 0)) {
    Operation* const next = fenced_.front();
    fenced_.pop_front();
    begin(*next);
  }
}

void Remote::tell(const Operation& operation) {
  const RemoteCall& call = operation.call;
  const bool writes = call.verb == Verb::kWrite || call.verb == Verb::kUpdate;
  const bool tells = !call.silent && (!bound_.tx_selective || (call.flags & FI_COMPLETION) != 0);
  count(writes ? bound_.writes : bound_.reads, operation.status);
  if ((!tells && operation.status == 0) || bound_.tx == nullptr) {
    return;
  }
  Completion& completion = bound_.tx->add();
  completion.entry.op_context = call.context;
  completion.entry.flags =
      (is_atomic(call.verb) ? FI_ATOMIC : FI_RMA) | (writes ? FI_WRITE : FI_READ);
  completion.error = operation.status;
}

}  // namespace rio::ofi
