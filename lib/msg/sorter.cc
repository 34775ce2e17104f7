#include "lib/msg/sorter.hpp"

#include <cstring>

#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {

void Sorter::take(Rail& rail, const Arrival& arrival) {
  uint8_t* const buffer = arrival.buffer;
  if (arrival.length_bytes < kHeaderBytes) {
    ++works_.stats.bad;
    works_.buffers.give_back(buffer);
    return;
  }
  const HeaderWords header = load_header(buffer);
  if (header.kind() >= Kind::kHello) {
    on_session(rail, arrival, header.kind());
    works_.buffers.give_back(buffer);
    return;
  }
  const uint32_t index = header.key() & 0xFFFFu;
  Link* const link = index < works_.peers.count() ? &works_.peers.at(index) : nullptr;
  const Path* const path = link != nullptr ? link->paths[rail.index].get() : nullptr;
  // No peer uses our key before we have its key.
  if (path == nullptr || link->keys.local != header.key() || path->dest_id != arrival.source ||
      link->keys.remote == 0) {
    ++works_.stats.bad;
    works_.speaker.tell_unknown({&rail, arrival.source, header.key(), header.number(), 0});
    works_.buffers.give_back(buffer);
    return;
  }
  if (link->state != LinkState::kUp) {
    works_.sessions.begin(*link);  // a peer that uses our key knows that we have its key
  }
  const Numbered message{header, buffer, static_cast<uint16_t>(arrival.length_bytes), {}};
  const uint32_t ahead = header.number() - link->next_in();
  if (ahead == 0) {
    take_in_order(*link, message);
  } else if (static_cast<int32_t>(ahead) < 0 || link->has(header.number())) {
    ++works_.stats.twice;
    works_.buffers.give_back(buffer);
  } else if (!keep_early(*link, message)) {
    works_.buffers.give_back(buffer);
    works_.sessions.cut_off(*link);
  }
}

void Sorter::on_session(Rail& rail, const Arrival& arrival, Kind kind) {
  if (kind > Kind::kReset) {
    const std::span<const uint8_t> bytes(arrival.buffer + kHeaderBytes,
                                         arrival.length_bytes - kHeaderBytes);
    works_.stats.bad += works_.paths.on_message(rail, arrival.source, kind, bytes) ? 0 : 1;
    return;
  }
  SessionBody body;
  if (arrival.length_bytes != kHeaderBytes + sizeof(body)) {
    ++works_.stats.bad;
    return;
  }
  std::memcpy(&body, arrival.buffer + kHeaderBytes, sizeof(body));
  if (body.magic != kMagic) {
    ++works_.stats.bad;
    return;
  }
  // The card reports the end of a process before it takes messages from its successor at the same
  // destID. Process such events first, or they would end the successor's session. All messages of
  // the old process have been taken before this one.
  rail.silence.look_for_gone([] {});
  // If the sender has died since, there is no process to have a session with.
  if (rail.silence.has_gone(arrival.source) ||
      !works_.sessions.on_message(rail, arrival.source, kind, body)) {
    ++works_.stats.bad;
  }
}

/// Keep an early message. Only one with a credit keeps its buffer: otherwise a peer that withholds
/// one message could fill all buffers with later ones. @return false: the peer broke the protocol.
bool Sorter::keep_early(Link& link, Numbered message) {
  const HeaderWords& header = message.header;
  Inflow* const flow = header.takes_credit() ? &link.in[header.to()] : nullptr;
  const bool counts = flow != nullptr && flow->open;
  if (counts && flow->early == flow->left()) {
    return false;
  }
  if (is_large(header.kind())) {
    const uint32_t bytes = message.length_bytes - kHeaderBytes;
    if (bytes > message.body.size()) {
      return false;
    }
    std::memcpy(message.body.data(), message.buffer + kHeaderBytes, bytes);
  }
  uint8_t* const buffer = message.buffer;
  message.buffer = counts ? buffer : nullptr;
  if (!link.keep(message)) {
    return false;
  }
  if (counts) {
    ++flow->early;
  } else {
    works_.buffers.give_back(buffer);
  }
  ++works_.stats.early;
  works_.peers.watch(link, 0);
  link.expect(link.next_in());
  return true;
}

void Sorter::take_in_order(Link& link, Numbered next) {
  const uint32_t session = link.session;
  do {
    link.expect(link.next_in() + 1);
    if (takes_credit(next.header.kind())) {
      deliver(link, next);
      continue;
    }
    if (!is_large(next.header.kind())) {
      on_control(link, next.header);
    } else if (!works_.large.on_message(link, next)) {
      works_.sessions.cut_off(link);
    }
    drop(next);
  } while (link.session == session && take_early(link, &next));
  link.expect(link.next_in());
}

bool Sorter::take_early(Link& link, Numbered* next) {
  if (!link.take(next)) {
    return false;
  }
  if (next->buffer != nullptr) {
    Inflow& flow = link.in[next->header.to()];
    flow.early = static_cast<uint16_t>(flow.early - (flow.early != 0 ? 1 : 0));
  }
  return true;
}

void Sorter::deliver(Link& link, const Numbered& message) {
  const HeaderWords& header = message.header;
  const uint32_t bytes = message.length_bytes - kHeaderBytes - header.padding();
  // Handle the limit even if the message is dropped: the peer will not repeat it.
  if (!header.takes_credit() || bytes > kPartBytesMax ||
      link.out[header.from()].on_limit(header.credit()) != 0) {
    drop(message);
    works_.sessions.cut_off(link);
    return;
  }
  Inflow& flow = link.in[header.to()];
  if (!flow.open) {  // sent before the peer knew that the context is closed
    ++works_.stats.bad;
    drop(message);
    return;
  }
  if (flow.arrive() != 0 || message.buffer == nullptr) {
    drop(message);
    works_.sessions.cut_off(link);
    return;
  }
  ++works_.stats.received;
  Inbox& inbox = works_.contexts[header.to()]->inbox;  // not null, since its flow is open
  *inbox.tail() = {message.buffer + kHeaderBytes, bytes};
  inbox.push(1, {&link, link.session, header.from()});
}

void Sorter::on_control(Link& link, const HeaderWords& header) {
  if (header.from() >= kContexts || header.to() >= kContexts) {
    works_.sessions.cut_off(link);
    return;
  }
  ++works_.stats.received;
  SendAccount& records = link.large.records_out[header.from()];
  const uint64_t bit = 1ull << header.from();
  bool good = true;
  switch (header.kind()) {
    case Kind::kOpen:
      works_.inflows.open(link, header.to());
      break;
    case Kind::kOpened:
      if ((link.theirs.opened & bit) == 0) {
        records = SendAccount(kRecordWindow);
      }
      link.theirs.opened |= bit;
      [[fallthrough]];
    case Kind::kCredit:
      // The peer counts from its last kRefused on, so an earlier message may have carried the same
      // credit.
      good =
          (link.theirs.asked & bit) != 0 && link.out[header.from()].on_limit(header.credit()) == 0;
      break;
    case Kind::kRecords:
      good = (link.theirs.opened & bit) != 0 && records.on_limit(header.credit()) == 0;
      break;
    case Kind::kControl:
      good = link.large.control_out.on_limit(header.credit()) == 0;
      break;
    case Kind::kAlive:
      on_alive(link);
      break;
    case Kind::kRefused:
      good = on_refused(link, header);
      break;
    default:
      good = false;
  }
  if (!good) {
    works_.sessions.cut_off(link);
  }
}

/// The peer is stuck. It may wait for credits that were too few to announce: announce them now.
void Sorter::on_alive(Link& link) {
  for (uint32_t i = 0; i < kContexts; ++i) {
    if (link.in[i].open) {
      link.say.credit |= uint64_t{link.in[i].changed()} << i;
      link.say.records |= uint64_t{link.large.records_in[i].changed()} << i;
    }
  }
  works_.peers.want(link);
}

/// The peer has no such context, or not any more. @return false: we had not asked for it.
bool Sorter::on_refused(Link& link, const HeaderWords& header) {
  const uint32_t context = header.from();
  const uint64_t bit = 1ull << context;
  const bool asked = (link.theirs.asked & bit) != 0;
  const auto known = static_cast<uint16_t>(header.credit() + link.backlog.kept_back[context]);
  if (link.out[context].sent() != known) {
    link.lost |= link.routes.routed;  // the peer has not received all messages to it
  }
  ++link.refusals[context];
  ++works_.stats.refused;
  link.theirs.refused |= bit;
  link.theirs.asked &= ~bit;
  link.theirs.opened &= ~bit;
  link.out[context] = {};
  link.backlog.kept_back[context] = 0;
  link.large.records_out[context] = {};
  return asked;
}

}  // namespace rio::msg
