#include "lib/msg/outbox.hpp"

#include <algorithm>

namespace rio::msg {

int Outbox::start() {
  pmd::DmaMemory slots;
  const uint32_t spares = tx_.stragglers_max();
  int rc = alloc_area(endpoint_, (1u << kRingLog2) + spares, &slots);
  rc = rc != 0 ? rc
               : tx_.use_slots(static_cast<uint8_t*>(slots.va), slots.iova, kStrideBytes, spares);
  budget_end_ = tx_.next_index();
  return rc;
}

bool Outbox::may_request(const Route& route) {
  const Link& link = *route.link;
  const uint32_t to = HeaderWords{0, route.word}.to();
  // Reap first: a reaped completion may end the session, and the other conditions then change.
  return (in_budget(tx_.next_index()) || (reap_for_more() && link.outbox == this)) &&
         link.has_opened(to) && !link.backlog.held && !has_to_hear(route) &&
         link.large.records_out[to].available() != 0 &&
         link.large.control_out.available() > kForAnswers;
}

void Outbox::post_request(const Route& route, const RequestBody& body) {
  Link& link = *route.link;
  const HeaderWords word = {0, route.word};
  link.large.records_out[word.to()].take_known();
  link.large.control_out.take_known();
  copied_ += body.edge_bytes;
  post_body(link,
            HeaderWords::rest_of(word.to(), word.from(), route.back->tell(), Kind::kRequest,
                                 padding_of(sizeof(body))),
            &body, sizeof(body));
}

bool Outbox::take_room() {
  if (!tx_.has_room(0)) {
    reap();
  }
  return tx_.has_room(0) && !stopped_;
}

bool Outbox::say(Link& link, Kind kind, uint32_t to, uint32_t from, uint32_t credit) {
  // Reaping completions to make room may end the session: check it afterwards.
  if (!take_room() || link.state != LinkState::kUp || link.path->rest.on) {
    return false;
  }
  post_body(link, HeaderWords::rest_of(to, from, credit, kind, 0), nullptr, 0);
  return true;
}

bool Outbox::say_to(uint32_t dest_id, const HeaderWords& header, const void* body, uint32_t bytes) {
  if (!take_room()) {
    return false;
  }
  uint8_t* const at = tx_.slot_va();
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), body, bytes);
  tx_.send_slot(at, pmd::TxQueue::slot_words(dest_id, mailbox(0, kHeaderBytes + bytes)),
                kHeaderBytes + bytes);
  return true;
}

void Outbox::post_body(Link& link, uint64_t header, const void* body, uint32_t bytes) {
  const HeaderWords words = {link.next_out, header};
  uint8_t* const at = tx_.slot_va();
  std::memcpy(at, &words, sizeof(words));
  if (bytes != 0) {
    std::memcpy(at + sizeof(words), body, bytes);
  }
  post(link, at, kHeaderBytes + bytes);
}

void Outbox::post_again(const Link& link, const std::vector<uint8_t>& message) {
  uint8_t* const at = tx_.slot_va();
  std::memcpy(at, message.data(), message.size());
  const auto length_bytes = static_cast<uint32_t>(message.size());
  const uint32_t number = load_header(message.data()).number();
  tx_.send_slot(at, words(link, number, length_bytes), length_bytes);
}

/// Reap, because the budget is used up. @return whether there is a new budget.
bool Outbox::reap_for_more() {
  reap();
  if (tx_.outstanding() >= large_count_ + share()) [[unlikely]] {
    events_.on_half_full();
  }
  if (!tx_.has_room(kReserve) || stopped_) {
    budget_end_ = tx_.next_index();
    return false;
  }
  budget_end_ = tx_.next_index() + std::min<uint32_t>(kBudget, tx_.free_count() - kReserve);
  return true;
}

void Outbox::reap() {
  if (!in_budget(tx_.next_index())) {
    budget_end_ = tx_.next_index();  // not too far behind, or it would seem to be ahead
  }
  if (large_count_ == 0) [[likely]] {
    tx_.skip_delivered();  // skips all delivered entries, also those of large data
    if (!tx_.ready()) {
      return;
    }
  }
  reap_each();
}

void Outbox::reap_each() {
  pmd::TxDone done[kBurst];
  uint32_t n = 0;
  // A reap that finds nothing runs an emulated card, which may copy long messages meanwhile. So
  // only the first one may: what has completed lets the sender go on.
  do {
    n = tx_.reap(done, kBurst);
    for (uint32_t i = 0; i < n; ++i) {
      if ((done[i].cookie & kLargeCookie) != 0) {
        events_.on_large_done(done[i]);
      } else if (done[i].status != pmd::Status::kOk) [[unlikely]] {
        events_.on_failed(done[i]);
      }
    }
  } while (n == kBurst && tx_.ready());
}

uint32_t Outbox::out_to(uint32_t dest_id) const {
  return count([&](uint32_t entry) { return tx_.slot_dest_id(entry) == dest_id; });
}

uint32_t Outbox::messages_to(uint32_t dest_id) const {
  return count(
      [&](uint32_t entry) { return tx_.slot_dest_id(entry) == dest_id && tx_.is_slot(entry); });
}

/// Count the entries in use that are `wanted`.
template <class Wanted>
uint32_t Outbox::count(Wanted wanted) const {
  uint32_t count = 0;
  for (uint32_t entry = tx_.oldest_index(); entry != tx_.next_index(); ++entry) {
    count += wanted(entry) ? 1 : 0;
  }
  tx_.for_each_straggler([&](uint32_t entry) { count += wanted(entry) ? 1 : 0; });
  return count;
}

void Outbox::begin_stop() {
  stopped_ = true;
  budget_end_ = tx_.next_index();
  tx_.begin_stop();
}

int Outbox::restart() {
  if (const int rc = tx_.restart(); rc != 0) {
    return rc;
  }
  stopped_ = false;
  budget_end_ = tx_.next_index();
  return 0;
}

}  // namespace rio::msg
