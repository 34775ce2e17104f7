// What arrives. Every field is the peer's word until it was compared with what we know.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "lib/tag/endpoint.hpp"

namespace rio::tag {

using msg::Kind;

namespace {

/// @param at a whole message. @param head_bytes of it, checked.
[[nodiscard]] inline Immediate immediate_of(const uint8_t* at, uint32_t head_bytes) {
  return head_bytes == kBitsBytes ? Immediate{} : Immediate{load_bits(at + kBitsBytes), true};
}

}  // namespace

/// Hot. One whole message that is alone in the inbox, as in a ping-pong: drain() without what pays
/// for many only. @return false: it is something else, or nobody waits for it; it is still there.
bool Endpoint::arrive_alone() {
  const msg::Inbox& inbox = context_->inbox();
  const iovec bytes = inbox.at(0);
  const Kind kind = msg::kind_of(bytes);
  const uint32_t head = head_bytes(has_immediate(kind));
  if (!is_whole(kind) || incoming_ != 0 || bytes.iov_len < head) [[unlikely]] {
    return false;
  }
  const msg::Origin origin = inbox.origin_of_run();
  const Address source = address(origin.link->dest_id(), origin.from);
  Receive* const receive = matcher_.arrive(source, load_bits(bytes.iov_base));
  if (receive == nullptr) {
    return false;
  }
  complete(static_cast<RecvRequest&>(*receive), source, bytes, head, &done_);
  context_->drop_oldest();
  return true;
}

void Endpoint::drain() {
  const msg::Inbox& inbox = context_->inbox();
  while (!inbox.empty()) {
    const msg::Origin origin = inbox.origin(0);
    if (is_whole(msg::kind_of(inbox.at(0))) && incoming_ == 0) [[likely]] {
      arrive_run(origin);
    } else {
      arrive_other(inbox.at(0), origin);
    }
  }
}

/// Whole messages of one sender; the first, at the least.
inline void Endpoint::arrive_run(const msg::Origin& origin) {
  const msg::Inbox& inbox = context_->inbox();
  const Address source = address(origin.link->dest_id(), origin.from);
  const uint32_t count = std::min(inbox.run(), inbox.in_a_row(0));
  const iovec* const messages = &inbox.at(0);
  const uint32_t head = head_bytes(has_immediate(msg::kind_of(messages[0])));
  uint32_t taken = 0;
  {
    ReceiveQueue::Run receives = matcher_.arrive_run(source);
    Requests done;
    for (; taken < count; ++taken) {
      const iovec& bytes = messages[taken];
      if (bytes.iov_len < head) [[unlikely]] {
        break;
      }
      Receive* const receive = receives.take(load_bits(bytes.iov_base));
      if (receive == nullptr) [[unlikely]] {
        break;
      }
      complete(static_cast<RecvRequest&>(*receive), source, bytes, head, &done);
    }
    done_.append_all(done);
  }
  if (taken != 0) {
    context_->drop_oldest(taken);
  }
  if (taken < count) [[unlikely]] {
    arrive_other(inbox.at(0), origin);
  }
}

/// @param bytes of a whole message. @param head what stands before the user's.
inline void Endpoint::complete(RecvRequest& request, Address source, const iovec& bytes,
                               uint32_t head, Requests* done) {
  const auto* const at = static_cast<const uint8_t*>(bytes.iov_base);
  const uint64_t length_bytes = bytes.iov_len - head;
  request.length_bytes = length_bytes;
  request.message_bits = load_bits(at);
  request.immediate = immediate_of(at, head);
  request.from = source;
  if (length_bytes <= msg::kTinyBytesMax && length_bytes <= request.capacity_bytes) [[likely]] {
    msg::copy_tiny(request.buffer, at + head, length_bytes);
    finish(request, 0, done);
    return;
  }
  place(request, 0, at + head, length_bytes);
  finish(request, truncation(request), done);
}

/// A whole message. It is the oldest of the inbox, as in all functions below.
/// @return null, or what is wrong with it: then it is there still.
const char* Endpoint::arrive_data(const iovec& bytes, const msg::Origin& origin, uint32_t head) {
  if (bytes.iov_len < head) {
    return "a message without match bits";
  }
  const auto* const at = static_cast<const uint8_t*>(bytes.iov_base);
  const uint64_t bits = load_bits(at);
  const Address source = address(origin.link->dest_id(), origin.from);
  if (Receive* const receive = matcher_.arrive(source, bits); receive != nullptr) {
    complete(static_cast<RecvRequest&>(*receive), source, bytes, head, &done_);
    context_->drop_oldest();
    return nullptr;
  }
  const Immediate immediate = immediate_of(at, head);
  Unexpected* const message =
      keep(source, {bits, bytes.iov_len - head, immediate.value}, immediate.there, head);
  if (message == nullptr) {
    return "no memory to keep a message";
  }
  message->whole = true;
  return nullptr;
}

void Endpoint::arrive_other(const iovec& bytes, const msg::Origin& origin) {
  if (origin.session != session_of(*origin.link)) {
    drop_arrived();  // cut off before it came to this
    return;
  }
  Peer* const peer = this->peer(address(origin.link->dest_id(), origin.from));
  if (peer == nullptr) {
    bad(origin, "no memory for a peer");
    return;
  }
  switch (const Kind kind = msg::kind_of(bytes); kind) {
    case Kind::kData:
    case Kind::kDataImmediate: {
      const char* const wrong = peer->incoming.active()
                                    ? "a message in the middle of another one"
                                    : arrive_data(bytes, origin, head_bytes(has_immediate(kind)));
      if (wrong != nullptr) {
        bad(origin, wrong);
      }
      return;
    }
    case Kind::kFirst:
    case Kind::kFirstImmediate:
      if (!arrive_first(*peer, bytes, has_immediate(kind))) {
        bad(origin, "a first part that makes no sense, or no memory for it");
      }
      return;
    case Kind::kRequest:
      if (!arrive_request(*peer)) {
        bad(origin, "a request in the middle of a message, or no memory for it");
      }
      return;
    default:
      if (!arrive_part(*peer, bytes, kind)) {
        bad(origin, "a part that does not fit");
      }
  }
}

bool Endpoint::arrive_first(Peer& peer, const iovec& bytes, bool has_immediate) {
  FirstHeader header;
  if (bytes.iov_len < sizeof(header)) {
    return false;
  }
  const auto* const at = static_cast<const uint8_t*>(bytes.iov_base);
  std::memcpy(&header, at, sizeof(header));
  const uint64_t count = bytes.iov_len - sizeof(header);
  const uint64_t total = header.total_bytes;
  Incoming incoming = peer.incoming;
  if ((!has_immediate && header.immediate != 0) || !incoming.begin(total, count, kLengthMax)) {
    return false;
  }
  Receive* const receive = matcher_.arrive(peer.address, header.bits);
  incoming.to = static_cast<RecvRequest*>(receive);
  if (receive == nullptr) {
    incoming.kept = keep(peer.address, header, has_immediate, sizeof(header));
    if (incoming.kept == nullptr) {
      return false;
    }
  } else {
    RecvRequest& request = *incoming.to;
    request.length_bytes = total;
    request.message_bits = header.bits;
    request.immediate = {header.immediate, has_immediate};
    request.from = peer.address;
    request.stage = Stage::kMoving;
    place(request, 0, at + sizeof(header), count);
    context_->drop_oldest();
  }
  peer.incoming = incoming;
  ++incoming_;
  return true;
}

bool Endpoint::arrive_part(Peer& peer, const iovec& bytes, Kind kind) {
  Incoming& incoming = peer.incoming;
  const uint64_t at = incoming.got_bytes();
  if (!incoming.add(kind, bytes.iov_len)) {
    return false;
  }
  if (incoming.to != nullptr) {
    place(*incoming.to, at, static_cast<const uint8_t*>(bytes.iov_base), bytes.iov_len);
    context_->drop_oldest();
  } else if (!keep_part(*incoming.kept, 0)) {
    return false;
  }
  if (incoming.whole()) {
    end_incoming(peer);
  }
  return true;
}

void Endpoint::end_incoming(Peer& peer) {
  const Incoming incoming = std::exchange(peer.incoming, {});
  --incoming_;
  if (incoming.to != nullptr) {
    finish(*incoming.to, truncation(*incoming.to));
  } else {
    incoming.kept->whole = true;
  }
}

/// Take the oldest of the inbox into a message that is not expected. @return null: no memory.
[[gnu::noinline]] Unexpected* Endpoint::keep(Address source, const FirstHeader& header,
                                             bool has_immediate, uint32_t skip_bytes) {
  Unexpected* const message = unexpected_.get();
  if (message == nullptr) {
    return nullptr;
  }
  if (!keep_part(*message, skip_bytes)) {
    unexpected_.put(message);
    return nullptr;
  }
  message->source = source;
  message->bits = header.bits;
  message->immediate = {header.immediate, has_immediate};
  message->length_bytes = header.total_bytes;
  matcher_.keep(*message);
  ++stats_.unexpected;
  return message;
}

bool Endpoint::keep_part(Unexpected& message, uint32_t skip_bytes) {
  Part* const part = parts_.get();
  if (part == nullptr) {
    return false;
  }
  part->delivery = context_->take_oldest();
  part->skip_bytes = skip_bytes;
  (message.last != nullptr ? message.last->next : message.first) = part;
  message.last = part;
  return true;
}

/// The oldest of the inbox is nobody's. A request has no buffer to be given back.
void Endpoint::drop_arrived() {
  if (msg::kind_of(context_->inbox().at(0)) == Kind::kRequest) {
    context_->refuse_large(context_->take_request());
  } else {
    context_->drop_oldest();
  }
}

/// The oldest of the inbox breaks a rule.
void Endpoint::bad(const msg::Origin& origin, const char* what) {
  base::log_warning("context %u: %s, from destID %u, context %u", context_->id(), what,
                    origin.link->dest_id(), origin.from);
  drop_arrived();
  ++stats_.cut_off;
  if (origin.session == origin.link->session) {
    port_.cut_off(*origin.link);
  }
  link_ended(*origin.link, origin.link->session, -EPROTO);
}

}  // namespace rio::tag
