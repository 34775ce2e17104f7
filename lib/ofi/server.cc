#include "lib/ofi/server.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/name.hpp"

namespace rio::ofi {
namespace {

[[nodiscard]] uint64_t right_of(Verb verb) {
  switch (verb) {
    case Verb::kRead:
      return FI_REMOTE_READ;
    case Verb::kWrite:
    case Verb::kUpdate:
      return FI_REMOTE_WRITE;
    default:
      return FI_REMOTE_READ | FI_REMOTE_WRITE;
  }
}

}  // namespace

int Server::start(tag::TaggedContext& tag, tag::TaggedContext& replies) {
  tag_ = &tag;
  replies_ = &replies;
  asks_.reset(new (std::nothrow) Ask[kAsks]);
  if (asks_ == nullptr) {
    return -FI_ENOMEM;
  }
  for (uint32_t i = 0; i < kAsks; ++i) {
    asks_[i].server = this;
    asks_[i].request.user = static_cast<Party*>(&asks_[i]);
    post(asks_[i]);
  }
  return 0;
}

/// Posts a receive. It also matches requests that have already arrived.
void Server::post(Ask& ask) {
  const tag::Pattern any = {kAskBits, 0, tag::kAnySource};
  while (tag_->receive(any, ask.bytes.data(), ask.bytes.size(), ask.request) == 1) {
    if (ask.request.status == 0 && !serve(ask)) {
      waiting_.push_back(&ask);
      return;
    }
  }
}

void Server::arrived(Ask& ask) {
  if (ask.request.status == -EMSGSIZE) {
    refuse(ask.request.from);
  } else if (tag_->port().error() != 0) {
    return;  // the card is gone; if only the asker is gone, other peers still ask
  }
  if (ask.request.status == 0 && !serve(ask)) {
    waiting_.push_back(&ask);
    return;
  }
  post(ask);
}

/// A peer whose requests make no sense runs another release, or is hostile. Ending the session is
/// the answer: that completes all its requests.
void Server::refuse(tag::Address from) {
  msg::MessagePort& port = tag_->port();
  if (msg::Link* const link = port.link(tag::dest_id_of(from)); link != nullptr) {
    port.cut_off(*link);
  }
}

/// Handles one request. @return false: not now, try again later.
bool Server::serve(const Ask& ask) {
  AskHeader header;
  std::span<const uint8_t> rest;
  const std::span bytes(ask.bytes.data(), ask.request.length_bytes);
  if (read_ask(bytes, &header, &rest) != 0) {
    refuse(ask.request.from);
    return true;
  }
  Answer* const answer = answers_under_way_ < kAnswersMax ? answers_.get() : nullptr;
  if (answer == nullptr) {
    return false;
  }
  ++answers_under_way_;
  answer->server = this;
  answer->ask = header;
  answer->from = ask.request.from;
  answer->session = session_with(ask.request.from);
  answer->data.user = answer->reply.user = static_cast<Party*>(answer);
  serve(*answer, rest);
  return true;
}

void Server::serve(Answer& answer, std::span<const uint8_t> rest) {
  const AskHeader& ask = answer.ask;
  if (ask.verb == Verb::kWindow) {
    show_window(answer);
    return;
  }
  uint8_t* at = nullptr;
  answer.memory = regions_.find(ask.key, ask.address, ask.bytes, right_of(ask.verb), &at);
  if (answer.memory != nullptr) {
    answer.use = Use(*answer.memory);
  } else {
    answer.error = FI_EACCES;
  }
  if ((ask.flags & AskHeader::kFences) != 0 && answer.error == 0) {
    answer.error = -regions_.close_window(*answer.memory, ask.type);
    at = answer.error == 0 ? at : nullptr;
  }
  if ((ask.flags & AskHeader::kFollows) != 0) {
    take_data(answer, at);
    return;
  }
  const bool ok = answer.error == 0;
  if (ok && ask.verb == Verb::kWrite && !rest.empty()) {
    std::memcpy(at, rest.data(), rest.size());
  }
  if (ok && is_atomic(ask.verb)) {
    answer.error = compute(answer, at, rest);
  }
  const bool reads = answer.error == 0 && ask.verb == Verb::kRead;
  const bool fetches = answer.error == 0 && answer.old != nullptr;
  tell(answer);
  reply(answer, reads ? at : answer.old.get(), reads || fetches ? ask.bytes : 0);
}

/// Tells a peer that knows the key where the card has the region, unless accesses have to be
/// counted.
void Server::show_window(Answer& answer) {
  Memory* const memory = regions_.find(answer.ask.key);
  const bool tells = bound_.remote_reads != nullptr || bound_.remote_writes != nullptr;
  if (memory == nullptr) {
    answer.error = FI_EACCES;
  } else if (tells || !open_window(*memory, answer, &answer.window)) {
    answer.window = {};
  }
  reply(answer, reinterpret_cast<const uint8_t*>(&answer.window),
        memory != nullptr ? sizeof(answer.window) : 0);
}

/// Opens the window of the rail that the asking side names, for its rail at the other end.
/// @return false: there is no such path, or as Regions::open_window().
bool Server::open_window(Memory& memory, const Answer& answer, WindowReply* out) {
  const msg::Link* const link = tag_->port().known_link(tag::dest_id_of(answer.from));
  const uint64_t rails = answer.ask.address;
  const msg::Rails& own = tag_->port().rails();
  if (link == nullptr || link->peer_rails == nullptr) {
    return rails == 0 && regions_.open_window(memory, own.at(0), tag::dest_id_of(answer.from), out);
  }
  const msg::Path* const path = link->paths[owner_rail(rails)].get();
  return path != nullptr && path->is_found && path->remote == asking_rail(rails) &&
         regions_.open_window(memory, path->rail, path->dest_id, out);
}

int Server::compute(Answer& answer, uint8_t* at, std::span<const uint8_t> rest) {
  const AskHeader& ask = answer.ask;
  const auto type = static_cast<fi_datatype>(ask.type);
  if (ask.verb != Verb::kUpdate && ask.bytes != 0) {
    answer.old = make_bytes(ask.bytes);
    if (answer.old == nullptr) {
      return FI_ENOMEM;
    }
  }
  const uint8_t* const compare =
      ask.verb == Verb::kCompare ? rest.data() + (rest.size() - ask.bytes) : nullptr;
  apply(type, static_cast<fi_op>(ask.op), at, rest.data(), compare, answer.old.get(),
        ask.bytes / size_of(type));
  return 0;
}

/// Receives the data that belongs to a request. Refused data is received, too, and dropped, so that
/// its sender completes.
void Server::take_data(Answer& answer, uint8_t* at) {
  const tag::Pattern wanted = {data_bits(answer.ask.id), 0, answer.from};
  const uint64_t room = at != nullptr ? answer.ask.bytes : 0;
  if (tag_->receive(wanted, at, room, answer.data) == 1) {
    went_on(answer, answer.data);
  }
}

void Server::went_on(Answer& answer, tag::Request& request) {
  if (&request == &answer.reply) {
    const tag::SendRequest& sent = answer.reply;
    if (sent.status == -ECONNREFUSED && !std::exchange(answer.again, true)) {
      reply(answer, sent.data, sent.length_bytes);
    } else {
      end(answer);  // no answer can be sent to a peer that is gone
    }
    return;
  }
  const bool whole = request.status == 0 && answer.data.length_bytes == answer.ask.bytes;
  if (answer.error == 0 && !whole) {
    answer.error = FI_EIO;
  }
  tell(answer);
  reply(answer, nullptr, 0);
}

/// A number that changes when a peer goes, and when another process takes its place.
uint32_t Server::session_with(tag::Address peer) const {
  const msg::Link* const link = tag_->port().known_link(tag::dest_id_of(peer));
  return link != nullptr ? link->session : 0;
}

/// Answers only the process that asked. Sending may fail once with the old report of a closed
/// endpoint that had the number of the asking one: the answer is sent again. If the asking endpoint
/// has closed, another may have its number, and drops the answer.
void Server::reply(Answer& answer, const uint8_t* bytes, uint64_t count) {
  const tag::Immediate error = {static_cast<uint64_t>(answer.error), answer.error != 0};
  const tag::Address to = answer.from - kRemoteContext + kReplyContext;
  int rc = -ECONNRESET;
  // The first attempt may report the end of an earlier process or endpoint with this number.
  const auto is_news = [&] {
    return rc == -ECONNRESET || (rc == -ECONNREFUSED && !std::exchange(answer.again, true));
  };
  for (uint32_t tries = 3; tries != 0 && is_news(); --tries) {
    if (answer.session != session_with(answer.from)) {
      break;
    }
    rc = replies_->send(to, reply_bits(answer.ask.id), bytes, count, answer.reply, error);
  }
  if (rc != 0) {
    end(answer);
  }
}

void Server::end(Answer& answer) {
  --answers_under_way_;
  answers_.put(&answer);
  if (!waiting_.empty()) {
    Ask* const next = waiting_.back();
    waiting_.pop_back();
    arrived(*next);
  }
}

/// Reports an access to the owner of the memory, if it has asked for that.
void Server::tell(const Answer& answer) {
  if (answer.error != 0) {
    return;
  }
  const bool writes = answer.ask.verb != Verb::kRead;
  count(writes ? bound_.remote_writes : bound_.remote_reads, 0);
  answer.memory->count(writes);
  if ((answer.ask.flags & AskHeader::kImmediate) != 0 && bound_.rx != nullptr) {
    Completion& completion = bound_.rx->add();
    const uint64_t kind = is_atomic(answer.ask.verb) ? FI_ATOMIC : FI_RMA;
    completion.entry.flags = kind | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    completion.entry.len = answer.ask.bytes;
    completion.entry.data = answer.ask.immediate;
  }
}

}  // namespace rio::ofi
