#include "lib/ofi/message_flow.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "lib/ofi/fi_counter.hpp"

namespace rio::ofi {
namespace {

/// The error of a completion: FI_E…, above 0.
[[nodiscard]] int error_of(int status) {
  return status == -EMSGSIZE ? FI_ETRUNC : -status;
}

[[nodiscard]] bool is_sync(uint64_t flags) {
  return (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) != 0;
}

}  // namespace

MessageFlow::~MessageFlow() {
  tag_.reset();  // operations under way end without a completion: the user has closed the endpoint
}

int MessageFlow::enable(Domain& domain, uint32_t first_context) {
  tag::TaggedConfig config;
  config.eager_bytes = domain.border();
  // An address names a service, not a process: a message that no process received can be sent
  // again.
  config.send_again = [this](const void* data, uint64_t bytes) -> tag::SendRequest* {
    SendOperation* const operation = sends_.get();
    if (operation == nullptr) {
      return nullptr;
    }
    operation->copy = make_bytes(bytes);
    if (operation->copy == nullptr) {
      sends_.put(operation);
      return nullptr;
    }
    if (bytes != 0) {
      std::memcpy(operation->copy.get(), data, bytes);
    }
    operation->data = operation->copy.get();
    operation->user = nullptr;
    operation->tells = false;
    operation->may_wait = true;
    operation->sync = false;
    return operation;
  };
  return tag::TaggedContext::create(domain.port(), static_cast<uint16_t>(first_context + offset_),
                                    config, &tag_);
}

[[gnu::noinline]] int MessageFlow::find_slow(fi_addr_t peer, tag::Address* out) {
  tag::Address first = nobody();
  const int rc = bound_.av->find_slow(peer, &first);
  *out = rc == 0 ? first + offset_ : nobody();
  return rc;
}

void MessageFlow::forget_former(uint32_t dest_id) {
  if (tag_ == nullptr) {
    return;
  }
  tag_->forget_former(dest_id);
  tell_done();
  std::erase_if(said_gone_,
                [&](tag::Address address) { return tag::dest_id_of(address) == dest_id; });
  if (bound_.rx != nullptr) {
    bound_.rx->disown(dest_id);
  }
}

ssize_t MessageFlow::send(fi_addr_t to, uint64_t tag, tag::Immediate immediate, const void* data,
                          size_t bytes, void* context, uint64_t flags) {
  const tag::Address address = address_of(to);
  if (!is_sync(flags) && (tag_->send_tiny(address, tag, immediate, data, bytes) ||
                          tag_->send_whole(address, tag, immediate, data, bytes))) [[likely]] {
    tell_sent(context, 0, tells_sent(flags));
    return 0;
  }
  const iovec piece = {const_cast<void*>(data), bytes};
  return send(to, tag, immediate, Buffers{&piece, 1}, context, flags);
}

ssize_t MessageFlow::inject_slow(fi_addr_t to, uint64_t tag, tag::Immediate immediate,
                                 const void* data, size_t bytes) {
  if (tag_->send_whole(address_of(to), tag, immediate, data, bytes)) {
    tell_sent(nullptr, 0, false);
    return 0;
  }
  const iovec piece = {const_cast<void*>(data), bytes};
  return post(to, tag, immediate, Buffers{&piece, 1}, nullptr, FI_INJECT, false);
}

ssize_t MessageFlow::post(fi_addr_t to, uint64_t tag, tag::Immediate immediate, const Buffers& from,
                          void* context, uint64_t flags, bool tells) {
  tag::Address peer = address_of(to);
  if (peer == nobody()) [[unlikely]] {
    if (const int rc = find_slow(to, &peer); rc != 0) {
      return rc;
    }
  }
  SendOperation* const operation = sends_.get();
  if (operation == nullptr) {
    return -FI_ENOMEM;
  }
  operation->user = context;
  operation->tells = tells;
  operation->injected = (flags & FI_INJECT) != 0;
  // The caller gets no completion, so it may never call progress again: a queued send would never
  // leave, and the peer, which may already hold buffers for us, would wait for ever.
  operation->may_wait = tells || (flags & FI_INJECT) == 0;
  const uint8_t* data = from.count == 0 ? nullptr : static_cast<uint8_t*>(from.pieces[0].iov_base);
  const size_t bytes = from.bytes();
  if (bytes != 0 && (from.count > 1 || (flags & FI_INJECT) != 0)) {
    operation->copy = make_bytes(bytes);
    if (operation->copy == nullptr) {
      sends_.put(operation);
      return -FI_ENOMEM;
    }
    from.gather(operation->copy.get());
    data = operation->copy.get();
  }
  const int rc = is_sync(flags) ? tag_->send_sync(peer, tag, data, bytes, *operation, immediate)
                                : tag_->send(peer, tag, data, bytes, *operation, immediate);
  if (rc < 0) {
    sends_.put(operation);
    if (rc == -EAGAIN) {
      sched_yield();  // Open MPI retries at once, and the peer may be waiting for this CPU
    } else {
      bound_.av->check_again(peer - offset_);
    }
    return rc;
  }
  if (rc == 1) {
    finish(*operation);
  }
  tell_done();  // completes a receive that this send has matched: another thread may sleep until
                // then
  return 0;
}

ssize_t MessageFlow::receive(fi_addr_t source, Match match, const Buffers& to, void* context,
                             uint64_t flags) {
  iovec buffer = {};
  tag::Pattern pattern = {match.tag, match.ignore, nobody()};
  if (const int rc = find_source(source, &pattern.source); rc != 0) {
    return rc;
  }
  if ((flags & FI_MULTI_RECV) != 0 && to.count != 1) {
    return -FI_EINVAL;
  }
  RecvOperation* const operation = begin(context, flags, to, &buffer);
  return operation == nullptr
             ? -FI_ENOMEM
             : begun(tag_->receive(pattern, buffer.iov_base, buffer.iov_len, *operation),
                     *operation);
}

/// Prepares a receive. @param buffer set to where the message goes. @return null: no memory.
RecvOperation* MessageFlow::begin(void* context, uint64_t flags, const Buffers& to, iovec* buffer) {
  RecvOperation* const operation = begin(context, flags);
  *buffer = to.count == 0 ? iovec{nullptr, 0} : to.pieces[0];
  if (operation == nullptr || to.count <= 1) {
    return operation;
  }
  buffer->iov_len = to.bytes();
  operation->copy = make_bytes(buffer->iov_len);
  if (operation->copy == nullptr) {
    receives_.put(operation);
    return nullptr;
  }
  buffer->iov_base = operation->copy.get();
  std::copy_n(to.pieces, to.count, operation->pieces.begin());
  operation->piece_count = to.count;
  return operation;
}

ssize_t MessageFlow::not_waiting(int rc, RecvOperation& operation) {
  if (rc < 0) {
    receives_.put(&operation);
    return rc;
  }
  finish(operation);
  tell_done();  // completes a send that has waited for this receive
  return 0;
}

ssize_t MessageFlow::peek(fi_addr_t source, Match match, void* context, uint64_t flags) {
  tag::MessageInfo info{};
  tag::Pattern wanted = {match.tag, match.ignore, nobody()};
  if (const int rc = find_source(source, &wanted.source); rc != 0) {
    return rc;
  }
  if (bound_.rx == nullptr) {
    return -FI_ENOCQ;
  }
  if ((flags & (FI_CLAIM | FI_DISCARD)) == 0) {
    const bool found = tag_->probe(wanted, &info);
    tell_found(found ? &info : nullptr, match.tag, context, flags);
    return 0;
  }
  if (claimed_.contains(context)) {
    return -FI_EINVAL;
  }
  tag::Message* const message = tag_->claim(wanted, &info);
  tell_found(message != nullptr ? &info : nullptr, match.tag, context, flags);
  if (message != nullptr) {
    claimed_[context] = message;
    return (flags & FI_DISCARD) != 0 ? take_claimed({nullptr, 0}, context, flags, true) : 0;
  }
  return 0;
}

void MessageFlow::tell_found(const tag::MessageInfo* info, uint64_t tag, void* context,
                             uint64_t flags) {
  Completion& completion = bound_.rx->add();
  completion.entry.op_context = context;
  completion.entry.flags = FI_RECV | kind_ | (flags & FI_CLAIM);
  completion.entry.tag = tag;
  completion.av = bound_.av;
  if (info == nullptr) {
    completion.error = FI_ENOMSG;
  } else {
    completion.entry.flags |= info->immediate.there ? FI_REMOTE_CQ_DATA : 0;
    completion.entry.len = info->length_bytes;
    completion.entry.data = info->immediate.value;
    completion.entry.tag = info->bits;
    completion.source = info->source - offset_;
  }
}

ssize_t MessageFlow::take_claimed(const Buffers& to, void* context, uint64_t flags, bool is_told) {
  const bool discards = (flags & FI_DISCARD) != 0;
  const auto found = claimed_.find(context);
  if (found == claimed_.end()) {
    return -FI_EINVAL;
  }
  iovec buffer = {};
  RecvOperation* const operation =
      begin(context, flags & ~FI_MULTI_RECV, discards ? Buffers{nullptr, 0} : to, &buffer);
  if (operation == nullptr) {
    return -FI_ENOMEM;
  }
  operation->discards = discards;
  operation->is_told = is_told;
  tag::Message& message = *found->second;
  claimed_.erase(found);
  return begun(tag_->receive_claimed(message, buffer.iov_base, buffer.iov_len, *operation),
               *operation);
}

ssize_t MessageFlow::cancel(void* context) {
  const auto find = [context](auto& operations, auto* found) {
    operations.for_each([&](auto& operation) {
      if (operation.user == context &&
          (operation.stage == tag::Stage::kWaiting || operation.stage == tag::Stage::kMoving)) {
        found = &operation;
      }
    });
    return found;
  };
  RecvOperation* const receive = find(receives_, static_cast<RecvOperation*>(nullptr));
  SendOperation* const send = find(sends_, static_cast<SendOperation*>(nullptr));
  if (receive == nullptr && send == nullptr) {
    return -FI_ENOENT;
  }
  if (receive != nullptr) {
    receive->ends = receive->multi;
  }
  // A receive that has matched a message completes: the sender may know of the match.
  const bool is_matched = receive != nullptr && receive->stage == tag::Stage::kMoving;
  const int rc = is_matched           ? -EALREADY
                 : receive != nullptr ? tag_->cancel(*receive)
                                      : tag_->cancel(*send);
  tell_done();  // another thread may sleep until then
  return rc == -EALREADY ? 0 : rc;
}

bool MessageFlow::busy() {
  bool busy = false;
  sends_.for_each([&](const SendOperation& operation) { busy |= operation.injected; });
  return busy;
}

/// Reports a send. @param tells whether success is reported, too; errors always are.
void MessageFlow::tell_sent(void* context, int error, bool tells) {
  count(bound_.sends, error);
  if ((!tells && error == 0) || bound_.tx == nullptr) {
    return;
  }
  Completion& completion = bound_.tx->add();
  completion.entry.op_context = context;
  completion.entry.flags = FI_SEND | kind_;
  completion.error = error;
}

/// An operation with a peer has failed. The log reports a peer that is gone once, since launchers
/// do not always say which process died first.
[[gnu::noinline]] void MessageFlow::on_failure(tag::Address peer, int status) {
  const bool gone = status == -ECONNRESET || status == -EHOSTUNREACH || status == -ETIMEDOUT;
  if (gone && peer != tag::kAnySource && said_gone_.insert(peer).second) {
    base::log_error("rio: the peer with destID %u %s", tag::dest_id_of(peer),
                    status == -ECONNRESET ? "has gone, or was started anew" : "does not answer");
  }
  bound_.av->check_again(peer - offset_);
}

void MessageFlow::finish(SendOperation& operation) {
  if (operation.status != 0) [[unlikely]] {
    on_failure(operation.to, operation.status);
  }
  tell_sent(operation.user, error_of(operation.status), operation.tells);
  sends_.put(&operation);
}

[[gnu::noinline]] void MessageFlow::scatter(const RecvOperation& operation) {
  const Buffers pieces = {operation.pieces.data(), operation.piece_count};
  pieces.scatter(operation.buffer, std::min(operation.length_bytes, operation.capacity_bytes));
}

/// Reports a receive. @param flags in addition to those of every receive.
inline void MessageFlow::tell_received(const RecvOperation& operation, uint64_t flags) {
  count(bound_.receives, operation.status);
  if ((!operation.tells && operation.status == 0 && flags == 0) || bound_.rx == nullptr) {
    return;
  }
  Completion& completion = bound_.rx->add();
  const tag::Immediate immediate = operation.immediate;
  completion.entry.op_context = operation.user;
  completion.entry.flags = FI_RECV | kind_ | (immediate.there ? FI_REMOTE_CQ_DATA : 0) | flags;
  completion.entry.len = std::min(operation.length_bytes, operation.capacity_bytes);
  completion.entry.buf = operation.copy != nullptr ? nullptr : operation.buffer;
  completion.entry.data = immediate.value;
  completion.entry.tag = operation.message_bits;
  completion.av = bound_.av;
  completion.source = operation.from - offset_;
  completion.error = error_of(operation.status);
  completion.lost_bytes = operation.length_bytes - completion.entry.len;
}

/// The next message goes behind this one, while there is room for one of the least size. A receive
/// that fails also returns the buffer to the user.
[[gnu::noinline]] void MessageFlow::finish_multi(RecvOperation& operation) {
  for (;;) {
    if (operation.status != 0 && operation.status != -EMSGSIZE) {
      operation.length_bytes = 0;  // still the length of the message before
      operation.immediate = {};
    }
    const uint64_t used = std::min(operation.length_bytes, operation.capacity_bytes);
    const uint64_t left = operation.capacity_bytes - used;
    if (operation.status != 0 || left == 0 || left < bound_.min_multi) {
      break;
    }
    tell_received(operation, 0);
    if (operation.ends) {
      operation.status = -ECANCELED;
      continue;
    }
    operation.buffer += used;
    const tag::Pattern pattern = {operation.bits, operation.ignore, operation.source};
    const int rc = tag_->receive(pattern, operation.buffer, left, operation);
    if (rc == 0) {
      return;
    }
    operation.status = rc < 0 ? rc : operation.status;
  }
  tell_received(operation, FI_MULTI_RECV);
  receives_.put(&operation);
}

void MessageFlow::finish(RecvOperation& operation) {
  if (operation.status != 0) [[unlikely]] {
    on_failure(operation.source, operation.status);
  }
  if (operation.copy != nullptr) [[unlikely]] {
    scatter(operation);
  }
  if (operation.multi) [[unlikely]] {
    finish_multi(operation);
    return;
  }
  if (operation.discards) [[unlikely]] {
    operation.status = operation.status == -EMSGSIZE ? 0 : operation.status;
    operation.length_bytes = 0;
  }
  if (!operation.is_told) {
    tell_received(operation, 0);
  }
  receives_.put(&operation);
}

}  // namespace rio::ofi
