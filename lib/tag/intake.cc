#include "lib/tag/intake.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace rio::tag {

using msg::Kind;

namespace {

/// @param at a whole message. @param head_bytes of it, checked.
[[nodiscard]] inline Immediate immediate_of(const uint8_t* at, uint32_t head_bytes) {
  return head_bytes == kBitsBytes ? Immediate{} : Immediate{load_bits(at + kBitsBytes), true};
}

}  // namespace

bool Intake::arrive_alone() {
  const msg::Inbox& inbox = state_.context->inbox();
  const iovec bytes = inbox.at(0);
  const Kind kind = msg::kind_of(bytes);
  const uint32_t head = head_bytes(has_immediate(kind));
  if (!is_whole(kind) || incoming_ != 0 || bytes.iov_len < head) [[unlikely]] {
    return false;
  }
  const msg::Origin origin = inbox.origin_of_run();
  const Address source = address(origin.link->dest_id(), origin.from);
  Receive* const receive = state_.matcher.arrive(source, load_bits(bytes.iov_base));
  if (receive == nullptr) {
    return false;
  }
  complete(static_cast<RecvRequest&>(*receive), source, bytes, head, state_.completions.list());
  state_.context->drop_oldest();
  return true;
}

void Intake::drain() {
  const msg::Inbox& inbox = state_.context->inbox();
  while (!inbox.empty()) {
    const msg::Origin origin = inbox.origin(0);
    if (is_whole(msg::kind_of(inbox.at(0))) && incoming_ == 0) [[likely]] {
      arrive_run(origin);
    } else {
      arrive(inbox.at(0), origin);
    }
  }
}

/// Whole messages of one sender; the first, at the least.
inline void Intake::arrive_run(const msg::Origin& origin) {
  const msg::Inbox& inbox = state_.context->inbox();
  const Address source = address(origin.link->dest_id(), origin.from);
  const uint32_t count = std::min(inbox.run(), inbox.in_a_row(0));
  const iovec* const messages = &inbox.at(0);
  const uint32_t head = head_bytes(has_immediate(msg::kind_of(messages[0])));
  uint32_t taken = 0;
  {
    ReceiveQueue::Run receives = state_.matcher.arrive_run(source);
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
    state_.completions.append_all(done);
  }
  if (taken != 0) {
    state_.context->drop_oldest(taken);
  }
  if (taken < count) [[unlikely]] {
    arrive(inbox.at(0), origin);
  }
}

/// @param bytes of a whole message. @param head what stands before the user's.
inline void Intake::complete(RecvRequest& request, Address source, const iovec& bytes,
                             uint32_t head, Requests* done) {
  const auto* const at = static_cast<const uint8_t*>(bytes.iov_base);
  const uint64_t length_bytes = bytes.iov_len - head;
  describe(request, source, load_bits(at), immediate_of(at, head), length_bytes);
  if (length_bytes <= msg::kTinyBytesMax && length_bytes <= request.capacity_bytes) [[likely]] {
    msg::copy_tiny(request.buffer, at + head, length_bytes);
    tag::finish(request, 0, done);
    return;
  }
  place(request, 0, at + head, length_bytes);
  tag::finish(request, truncation(request), done);
}

/// A whole message. It is the oldest of the inbox, as in all functions below.
/// @return null, or what is wrong with it: then it is there still.
const char* Intake::arrive_data(const iovec& bytes, const msg::Origin& origin, uint32_t head) {
  if (bytes.iov_len < head) {
    return "a message without match bits";
  }
  const auto* const at = static_cast<const uint8_t*>(bytes.iov_base);
  const uint64_t bits = load_bits(at);
  const Address source = address(origin.link->dest_id(), origin.from);
  if (Receive* const receive = state_.matcher.arrive(source, bits); receive != nullptr) {
    complete(static_cast<RecvRequest&>(*receive), source, bytes, head, state_.completions.list());
    state_.context->drop_oldest();
    return nullptr;
  }
  const Immediate immediate = immediate_of(at, head);
  Unexpected* const message = store_.keep_arrived(
      source, {bits, bytes.iov_len - head, immediate.value}, immediate.there, head);
  if (message == nullptr) {
    return "no memory to keep a message";
  }
  message->whole = true;
  return nullptr;
}

void Intake::arrive(const iovec& bytes, const msg::Origin& origin) {
  if (origin.session != state_.peers.session_of(*origin.link)) {
    drop_arrived();  // cut off before it came to this
    return;
  }
  Peer& peer = state_.peers.of(origin);
  switch (const Kind kind = msg::kind_of(bytes); kind) {
    case Kind::kData:
    case Kind::kDataImmediate: {
      const char* const wrong = peer.incoming.active()
                                    ? "a message in the middle of another one"
                                    : arrive_data(bytes, origin, head_bytes(has_immediate(kind)));
      if (wrong != nullptr) {
        cut_off(origin, wrong);
      }
      return;
    }
    case Kind::kFirst:
    case Kind::kFirstImmediate:
      if (!arrive_first(peer, bytes, has_immediate(kind))) {
        cut_off(origin, "a first part that makes no sense, or no memory for it");
      }
      return;
    case Kind::kRequest:
      if (!large_.arrive(peer)) {
        cut_off(origin, "a request in the middle of a message, or no memory for it");
      }
      return;
    default:
      if (!arrive_part(peer, bytes, kind)) {
        cut_off(origin, "a part that does not fit");
      }
  }
}

bool Intake::arrive_first(Peer& peer, const iovec& bytes, bool has_immediate) {
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
  Receive* const receive = state_.matcher.arrive(peer.address, header.bits);
  incoming.to = static_cast<RecvRequest*>(receive);
  if (!store_.accepts(total)) {
    state_.context->drop_oldest();
  } else if (receive == nullptr) {
    incoming.kept = store_.keep_arrived(peer.address, header, has_immediate, sizeof(header));
    if (incoming.kept == nullptr) {
      return false;
    }
  } else {
    RecvRequest& request = *incoming.to;
    describe(request, peer.address, header.bits, {header.immediate, has_immediate}, total);
    request.stage = Stage::kMoving;
    place(request, 0, at + sizeof(header), count);
    state_.context->drop_oldest();
  }
  peer.incoming = incoming;
  ++incoming_;
  return true;
}

bool Intake::arrive_part(Peer& peer, const iovec& bytes, Kind kind) {
  Incoming& incoming = peer.incoming;
  const uint64_t at = incoming.got_bytes();
  if (!incoming.add(kind, bytes.iov_len)) {
    return false;
  }
  if (incoming.to != nullptr) {
    place(*incoming.to, at, static_cast<const uint8_t*>(bytes.iov_base), bytes.iov_len);
    state_.context->drop_oldest();
  } else if (incoming.kept == nullptr) {
    state_.context->drop_oldest();
  } else if (!store_.add_part(*incoming.kept, 0)) {
    return false;
  }
  if (incoming.whole()) {
    end_incoming(peer);
  }
  return true;
}

void Intake::end_incoming(Peer& peer) {
  const Incoming incoming = std::exchange(peer.incoming, {});
  --incoming_;
  if (incoming.to != nullptr) {
    state_.completions.finish(*incoming.to, truncation(*incoming.to));
  } else if (incoming.kept != nullptr) {
    incoming.kept->whole = true;
  }
}

/// Drop the oldest of the inbox. A request has no buffer to be given back.
void Intake::drop_arrived() {
  if (msg::kind_of(state_.context->inbox().at(0)) == Kind::kRequest) {
    state_.context->refuse_large(state_.context->take_request());
  } else {
    state_.context->drop_oldest();
  }
}

bool Intake::has_incoming(const msg::Origin& origin) const {
  const Peer* const peer = state_.peers.known(address(origin.link->dest_id(), origin.from));
  return peer != nullptr && peer->incoming.active();
}

void Intake::cut_off(const msg::Origin& origin, const char* what) {
  base::log_warning("context %u: %s, from destID %u, context %u", state_.context->id(), what,
                    origin.link->dest_id(), origin.from);
  drop_arrived();
  ++state_.stats.cut_off;
  if (origin.session == origin.link->session) {
    state_.port.cut_off(*origin.link);
  }
  sessions_.end(*origin.link, origin.link->session, -EPROTO);
}

void Intake::redirect(Peer& peer, RecvRequest& request) {
  peer.incoming.kept = nullptr;
  peer.incoming.to = &request;
  request.stage = Stage::kMoving;
}

void Intake::fail_incoming(Peer& peer, int error) {
  if (!peer.incoming.active()) {
    return;
  }
  const Incoming incoming = std::exchange(peer.incoming, {});
  --incoming_;
  if (incoming.to != nullptr) {
    state_.completions.finish(*incoming.to, error);
  } else if (incoming.kept == nullptr) {
    return;
  } else if (incoming.kept->place == Place::kClaimed) {
    incoming.kept->status = error;  // told to the receive that takes it
  } else {
    store_.discard(*incoming.kept);
  }
}

}  // namespace rio::tag
