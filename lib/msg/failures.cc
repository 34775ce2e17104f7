#include "lib/msg/failures.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {

void Failures::on_failed(const pmd::TxDone& done) {
  // A message stays in its slot until the entry is used again.
  const pmd::TxQueue& ring = rail_.outbox.ring();
  const auto entry = static_cast<uint32_t>(done.cookie);
  const HeaderWords header = load_header(ring.slot_va(entry));
  Path* const path = works_.peers.find(rail_.index, ring.slot_dest_id(entry));
  const uint64_t first_ns = works_.retries.take_since(rail_, entry);
  // A message lost once usually arrives when it is resent.
  const bool in_doubt = done.status == pmd::Status::kResponseTimeout;
  if (path != nullptr && in_doubt) {
    rail_.silence.doubt(*path);
  } else if (path != nullptr) {
    works_.paths.on_failed(*path, done.status);
  }
  if (path != nullptr && in_doubt && path->link.path == path &&
      (rail_.outbox.stopped() ||
       (first_ns != 0 && rail_.silence.others_wait(path->dest_id, ring.next_index())))) {
    rail_.silence.begin_rest(*path);
  }
  if (header.kind() >= Kind::kHello) {
    on_session_failed(header, entry, done.status);
  } else if (path != nullptr &&
             path->link.keys.remote == header.key()) {  // otherwise its session is over
    on_message_failed(*path, entry, done.status, first_ns);
  }
}

/// Resend a failed message, or end its session. @param first_ns first failure; 0: now.
void Failures::on_message_failed(Path& path, uint32_t entry, pmd::Status status,
                                 uint64_t first_ns) {
  Link& link = path.link;
  const uint8_t* const slot = rail_.outbox.ring().slot_va(entry);
  const uint64_t now = works_.listening.now_ns();
  const uint64_t since_ns = first_ns != 0 ? first_ns : now;
  Again again = {
      link.index(), link.session, since_ns, {slot, slot + rail_.outbox.ring().slot_bytes(entry)}};
  if (rail_.outbox.stopped() && status == pmd::Status::kFlushed && link.path == &path) {
    again.resent = first_ns != 0;
    works_.retries.keep_flushed(std::move(again));
    return;
  }
  if (status == pmd::Status::kBadDescriptor ||
      (status == pmd::Status::kFlushed && !rail_.outbox.stopped())) {
    works_.sessions.end(link, -EIO);
    return;
  }
  works_.retries.hold(link);
  // A peer that refuses messages is alive.
  const bool refused = status == pmd::Status::kRetryExpired;
  if (!refused && now - since_ns > works_.config.deliver_ns()) {
    works_.sessions.reset(link, -ETIMEDOUT);
    return;
  }
  // The message was not read, refused, or is in doubt. Resending is safe: by its number, the peer
  // recognizes a duplicate.
  again.since_ns = refused ? now : since_ns;
  again.never_left =
      (status == pmd::Status::kLinkDown || status == pmd::Status::kFlushed) && first_ns == 0;
  works_.retries.keep(link, std::move(again));
}

/// A session message has failed. Only resets are repeated here: Sessions repeats a hello, and the
/// peer's repeated hello causes a new welcome.
void Failures::on_session_failed(const HeaderWords& header, uint32_t entry, pmd::Status status) {
  // Do not repeat a reset to a silent peer: its next message causes another reset.
  const bool stopped = rail_.outbox.stopped();
  if (header.kind() != Kind::kReset || (stopped && status == pmd::Status::kResponseTimeout)) {
    return;
  }
  SessionBody body;
  std::memcpy(&body, rail_.outbox.ring().slot_va(entry) + sizeof(header), sizeof(body));
  const uint32_t tried = stopped && status == pmd::Status::kFlushed ? 0 : 1;
  works_.speaker.tell_unknown({&rail_, rail_.outbox.ring().slot_dest_id(entry), body.session,
                               body.first, header.number() + tried});
}

}  // namespace rio::msg
