// Peers that do not answer. Entries of the ring are used again in order, so one that is not
// answered stands in the way of all that come after it. The ring is then stopped, which the card
// bounds, and started again; who was silent is left alone until he answers a question that costs
// nobody anything. See docs/decisions/0019-a-peer-that-does-not-answer.md.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "lib/msg/clock.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {
namespace {

// Looks at the ring, 32 calls of progress each, before silence means anything: a caller that does
// not let its card work hears nobody.
constexpr uint32_t kLooksMin = 8;
constexpr uint64_t kRestMaxNs = 1'000'000'000;
constexpr uint64_t kForgetNs = 10'000'000'000;  // who was silent before rests longer until then
constexpr uint64_t kStopNs = 1'000'000'000;     // a card takes three response time-outs, and a bit
constexpr uint32_t kAnswerBytes = 8;
constexpr uint32_t kAnswerAlign = 64;

}  // namespace

void Port::look_at_ring() {
  if (error_ != 0) {
    return;
  }
  if (restarting_) {
    look_at_stop();
    return;
  }
  const uint32_t oldest = tx_->oldest_index();
  if (oldest != stuck_.oldest || oldest == tx_->next_index()) {
    stuck_ = {oldest, oldest, 0, 0};
    return;
  }
  const uint64_t now = now_ns();
  const bool known = stuck_.since_ns != 0;
  ++stuck_.looks;
  if (known && (stuck_.looks < kLooksMin ||
                now - stuck_.since_ns <= uint64_t{config_.response_timeout_us} * 1000)) {
    return;
  }
  if (known && others_wait(tx_->slot_dest_id(oldest), stuck_.end)) {
    begin_restart();
    return;
  }
  stuck_ = {oldest, tx_->next_index(), 0, now};
}

/// Whether a silent peer costs others anything. One alone that is silent waits for itself only.
/// @param end of the entries that are looked at.
bool Port::others_wait(uint32_t silent, uint32_t end) const {
  if (!tx_->has_room(kBudget + kReserve)) {  // what large data leaves to others
    return true;
  }
  // The card sends in order, too: behind one that waits for a letter nothing goes out.
  for (uint32_t entry = tx_->oldest_index(); entry != end; ++entry) {
    if (tx_->is_out(entry) && tx_->slot_dest_id(entry) != silent) {
      return true;
    }
  }
  return false;
}

void Port::begin_restart() {
  ++stats_.restarts;
  restarting_ = true;
  stop_ns_ = now_ns();
  budget_end_ = tx_->next_index();
  // Also where its message did not get as far as the wire, and comes back as one that was not sent.
  const auto silent = index_of_.find(tx_->slot_dest_id(tx_->oldest_index()));
  if (silent != index_of_.end()) {
    rest(*links_[silent->second]);
  }
  tx_->begin_stop();
}

void Port::look_at_stop() {
  const int stopped = tx_->stopped();
  const uint64_t bound_ns = 4 * uint64_t{config_.response_timeout_us} * 1000 + kStopNs;
  if (stopped == 1) {
    for (uint32_t left = ~0u; tx_->outstanding() < left;) {
      left = tx_->outstanding();
      reap_others();
    }
    finish_restart();
  } else if (stopped < 0 || now_ns() - stop_ns_ > bound_ns) {
    give_up("stop");
  }
}

/// The card does not do as it should with its ring: mostly since it is not there any more.
void Port::give_up(const char* what) {
  until_card_ = 1;
  look_at_card();
  if (error_ == 0) {
    error_ = -ENODEV;
    base::log_error("%s does not %s its transmit ring; reset the card, and open the port again",
                    endpoint_->name().c_str(), what);
  }
}

void Port::finish_restart() {
  if (tx_->restart() != 0) {
    give_up("start");
    return;
  }
  restarting_ = false;
  budget_end_ = tx_->next_index();
  stuck_ = {tx_->oldest_index(), tx_->oldest_index(), 0, 0};
  std::vector<Flushed> all;
  all.swap(flushed_);
  for (Flushed& each : all) {
    Link& link = *links_[each.message.link];
    if (link.session != each.message.session) {
      continue;
    }
    if (link.backlog.held || link.rest.on || each.resent || !tx_->has_room(0)) {
      hold(link);
      keep_to_send(link, std::move(each.message));
    } else {
      post_again(link, each.message);  // as if nothing had been
    }
  }
  if (sender_ != nullptr) {
    sender().resume();
  }
}

/// Until something is heard of the peer, and for as long as its letters rest after a time-out.
void Port::rest(Link& link) {
  Rest& rest = link.rest;
  if (rest.on) {
    return;
  }
  const uint64_t now = now_ns();
  const uint64_t first_ns = uint64_t{config_.response_timeout_us} * 2500;
  const bool soon = rest.length_ns != 0 && now - rest.over_ns < kForgetNs;
  rest.length_ns = soon ? std::max(first_ns, std::min(2 * rest.length_ns, kRestMaxNs)) : first_ns;
  rest.since_ns = now;
  rest.until_ns = now + rest.length_ns;
  rest.on = true;
  rest.answered = false;
  ++stats_.rests;
  resting_.push_back(link.index());
  hold(link);
  ask_resting(link);
}

bool Port::can_ask() const {
  return dma_ != nullptr && !dma_->gone();
}

bool Port::have_answer_memory() {
  pmd::DmaMemory memory;
  if (answer_.va == nullptr && endpoint_->alloc(kAnswerBytes, kAnswerAlign, &memory) == 0) {
    answer_ = {memory.va, memory.iova, memory.len_bytes};
  }
  return answer_.va != nullptr;
}

/// A read of a word of the peer's. Whether it is allowed does not matter, only that an answer
/// comes: then the peer has seen all that was sent before.
void Port::ask_resting(Link& link) {
  Rest& rest = link.rest;
  if (rest.asked || !can_ask() || !have_answer_memory()) {
    return;
  }
  rest.question.rio_addr = 0;
  rest.question.va = static_cast<uint8_t*>(answer_.va);
  rest.question.run = &answer_;
  rest.question.left_bytes = kAnswerBytes;
  rest.question.dest_id = link.dest_id();
  rest.question.op = regs::DmaOp::kNread;
  rest.question.user = &rest;
  rest.question.on_done = [](DmaTransfer& question) {
    Rest& asker = *static_cast<Rest*>(question.user);
    asker.asked = false;
    asker.answered = question.status == pmd::Status::kOk ||
                     question.status == pmd::Status::kErrorResponse ||
                     question.status == pmd::Status::kRetryExpired;
  };
  rest.asked = dma_->start(rest.question);
}

void Port::look_at_rests() {
  if (dma_ != nullptr) {
    dma_->progress();
  }
  const uint64_t now = now_ns();
  const std::vector<uint32_t> all = resting_;
  for (const uint32_t index : all) {
    if (!look_at_rest(*links_[index], now)) {
      end_rest(*links_[index]);
    }
  }
}

/// @return whether it rests on.
bool Port::look_at_rest(Link& link, uint64_t now) {
  Rest& rest = link.rest;
  // Nobody tells the peer: he is told when he speaks.
  if (link.state == LinkState::kUp &&
      now - rest.since_ns > uint64_t{config_.deliver_ms} * 1'000'000) {
    end_session(link, -ETIMEDOUT);
    std::erase_if(parked_, [&](const Again& again) { return again.link == link.index(); });
  }
  if (now < rest.until_ns || rest.asked) {
    return true;
  }
  if (rest.answered || !can_ask()) {
    return false;  // what is sent once more is the question where there is no other
  }
  rest.length_ns = std::max(rest.length_ns, std::min(2 * rest.length_ns, kRestMaxNs));
  rest.until_ns = now + rest.length_ns;
  ask_resting(link);
  return true;
}

void Port::end_rest(Link& link) {
  link.rest.on = false;
  link.rest.over_ns = now_ns();
  std::erase(resting_, link.index());
  std::erase_if(parked_, [&](Again& again) {
    const bool its = again.link == link.index();
    if (its) {
      again_.push_back(std::move(again));
    }
    return its;
  });
  want(link);
}

}  // namespace rio::msg
