#include "lib/msg/silence.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"
#include "pmd/dev/types.hpp"

namespace rio::msg {
namespace {

// Checks of the ring, 32 calls of progress() each, before silence counts: a caller that rarely
// calls progress() receives no answers.
constexpr uint32_t kLooksMin = 8;
constexpr uint64_t kRestMaxNs = 1'000'000'000;
constexpr uint64_t kForgetNs =
    10'000'000'000;  // a peer that falls silent again within this time rests longer
constexpr uint32_t kAnswerBytes = 8;
constexpr uint32_t kAnswerAlign = 64;

void on_answer(DmaTransfer& question) {
  Rest& asker = *static_cast<Rest*>(question.user);
  asker.asked = false;
  asker.answered = question.status == pmd::Status::kOk ||
                   question.status == pmd::Status::kErrorResponse ||
                   question.status == pmd::Status::kRetryExpired;
}

}  // namespace

Silence::Silence(const PortObjects& objects, Rail& rail)
    : works_(objects), rail_(rail), events_(rail.endpoint.events()) {}

pmd::TxQueue& Silence::ring() const {
  return rail_.outbox.ring();
}

void Silence::check_ring() {
  if (rail_.health.error() != 0) {
    return;
  }
  if (rail_.outbox.stopped()) {
    poll_stop();
    return;
  }
  if (wants_stop_) {
    stop();
    return;
  }
  check_straggler();
  const uint32_t oldest = ring().oldest_index();
  if (oldest != stuck_.oldest || oldest == ring().next_index()) {
    stuck_ = {oldest, oldest, 0, 0};
    return;
  }
  const uint64_t now = base::now_ns();
  const bool known = stuck_.since_ns != 0;
  ++stuck_.looks;
  if (known &&
      (stuck_.looks < kLooksMin || now - stuck_.since_ns <= works_.config.response_timeout_ns())) {
    return;
  }
  Path* const silent = works_.peers.find(rail_.index, ring().slot_dest_id(oldest));
  if (known && ((silent != nullptr && moves(*silent)) ||
                others_wait(ring().slot_dest_id(oldest), stuck_.end))) {
    begin_restart(silent);
    return;
  }
  stuck_ = {oldest, ring().next_index(), 0, now};
}

/// Look at one of the messages that others have passed. If its receiver has answered nothing for a
/// response time-out, it rests; the message stays with the card.
void Silence::check_straggler() {
  uint32_t entry = 0;
  Path* const path = ring().look_aside(&entry)
                         ? works_.peers.find(rail_.index, ring().slot_dest_id(entry))
                         : nullptr;
  if (path == nullptr || path->rest.on) {
    return;
  }
  Rest& rest = path->rest;
  const uint64_t now = base::now_ns();
  if (rest.passed_ns == 0 || !ring().is_straggler(rest.passed)) {
    rest.passed = entry;
    rest.passed_ns = now;
  } else if (now - rest.passed_ns > works_.config.response_timeout_ns()) {
    rest.passed_ns = 0;
    if (moves(*path)) {
      stop();
    } else {
      begin_rest(*path);
    }
  }
}

bool Silence::others_wait(uint32_t silent_dest_id, uint32_t end) const {
  if (!ring().has_room(Outbox::kBudget +
                       Outbox::kReserve)) {  // room that large data leaves for other messages
    return true;
  }
  if (ring().stragglers_max() != 0) {
    return false;  // the card passes over messages that wait, and their entries do not stop the
                   // ring
  }
  // The card sends in order: one message that waits for a letter blocks all later ones.
  for (uint32_t entry = ring().oldest_index(); entry != end; ++entry) {
    if (ring().is_out(entry) && ring().slot_dest_id(entry) != silent_dest_id) {
      return true;
    }
  }
  return false;
}

/// @param silent the path of the ring's oldest message; null: of no peer.
void Silence::begin_restart(Path* silent) {
  // The peer rests even if its message never left the card and is returned unsent.
  if (silent != nullptr && silent->link.path == silent) {
    begin_rest(*silent);
  }
  stop();
}

/// A message on a path was not answered for a response time-out. @return whether the messages to
/// the peer take another path now.
bool Silence::moves(Path& path) {
  if (path.link.peer_rails == nullptr) {
    return false;
  }
  rail_.health.check_soon();
  works_.paths.on_failed(path, pmd::Status::kResponseTimeout);
  return path.link.path != &path;
}

void Silence::doubt(Path& path) {
  if (moves(path)) {
    call_back(path);
  }
}

void Silence::call_back(const Path& path) {
  const Outbox& outbox = rail_.outbox;
  wants_stop_ |= !outbox.stopped() && outbox.out_to(path.dest_id) != 0;
}

void Silence::stop() {
  wants_stop_ = false;
  ++works_.stats.restarts;
  stop_ns_ = base::now_ns();
  rail_.outbox.begin_stop();
}

void Silence::poll_stop() {
  rail_.outbox.reap_each();  // what never left goes by another rail meanwhile
  const int stopped = ring().stopped();
  const uint64_t bound_ns =
      uint64_t{pmd::stop_limit_ms(works_.config.response_timeout_us, pmd::kStopSlackMs)} *
      1'000'000;
  if (stopped == 1) {
    for (uint32_t left = ~0u; ring().outstanding() < left;) {
      left = ring().outstanding();
      rail_.outbox.reap_each();
    }
    finish_restart();
  } else if (stopped < 0 || base::now_ns() - stop_ns_ > bound_ns) {
    give_up("stop");
  }
}

/// The card has not stopped or restarted its ring, usually because it is gone.
void Silence::give_up(const char* what) {
  rail_.health.check_soon();
  works_.sessions.check_card();
  rail_.health.fail(what);
}

void Silence::finish_restart() {
  if (rail_.outbox.restart() != 0) {
    give_up("start");
    return;
  }
  stuck_ = {ring().oldest_index(), ring().oldest_index(), 0, 0};
  works_.retries.post_flushed();
  works_.large.resume(rail_);
}

void Silence::begin_rest(Path& path) {
  Rest& rest = path.rest;
  if (rest.on || (path.link.peer_rails != nullptr && path.state.is_up())) {
    return;
  }
  const uint64_t now = base::now_ns();
  // Letters in doubt rest for two response time-outs, as late as a receiver and the card may be.
  const uint64_t first_ns = pmd::latest_ns(pmd::latest_ns(2 * works_.config.response_timeout_ns()));
  const bool soon = rest.length_ns != 0 && now - rest.over_ns < kForgetNs;
  rest.length_ns = soon ? std::max(first_ns, std::min(2 * rest.length_ns, kRestMaxNs)) : first_ns;
  rest.since_ns = works_.listening.at(now);
  rest.until_ns = now + rest.length_ns;
  rest.on = true;
  rest.answered = false;
  ++works_.stats.rests;
  resting_.push_back(&path);
  works_.retries.hold(path.link);
  ask(path);
}

bool Silence::can_ask() const {
  return rail_.dma != nullptr && !rail_.dma->gone();
}

/// Read a word of the peer's memory. Any answer will do, even a refusal: the peer has then seen
/// everything sent before.
void Silence::ask(Path& path) {
  Rest& rest = path.rest;
  if (rest.asked || !can_ask()) {
    return;
  }
  if (answer_.va == nullptr) {
    pmd::DmaMemory memory;
    if (rail_.endpoint.alloc(kAnswerBytes, kAnswerAlign, &memory) != 0) {
      return;
    }
    answer_ = {memory.va, memory.iova, memory.len_bytes};
  }
  rest.question = {.va = static_cast<uint8_t*>(answer_.va),
                   .run = &answer_,
                   .left_bytes = kAnswerBytes,
                   .dest_id = path.dest_id,
                   .on_done = on_answer,
                   .user = &rest};
  rest.asked = rail_.dma->start(rest.question);
}

void Silence::check_rests() {
  if (rail_.dma != nullptr) {
    rail_.dma->progress();
  }
  const uint64_t now = base::now_ns();
  const std::vector<Path*> all = resting_;
  for (Path* const path : all) {
    if (!still_rests(*path, now)) {
      end_rest(*path);
    }
  }
}

/// Check one resting path. @return whether it goes on resting.
bool Silence::still_rests(Path& path, uint64_t now) {
  Rest& rest = path.rest;
  Link& link = path.link;
  // No reset is sent to the silent peer: its next message causes one.
  if (link.state == LinkState::kUp &&
      works_.listening.at(now) - rest.since_ns > works_.config.deliver_ns()) {
    works_.sessions.end(link, -ETIMEDOUT);
    works_.retries.drop(link);
    // The user's memory, which the card still reads from, must become the user's again.
    if (rail_.outbox.large_count() != 0 && rail_.outbox.out_to(path.dest_id) != 0 &&
        !rail_.outbox.stopped()) {
      stop();
    }
  }
  if (now < rest.until_ns || rest.asked) {
    return true;
  }
  if (rest.answered || !can_ask()) {
    return false;  // without a DMA queue, the resent messages serve as the question
  }
  rest.length_ns = std::max(rest.length_ns, std::min(2 * rest.length_ns, kRestMaxNs));
  rest.until_ns = now + rest.length_ns;
  ask(path);
  return true;
}

void Silence::end_rest(Path& path) {
  path.rest.on = false;
  path.rest.over_ns = base::now_ns();
  std::erase(resting_, &path);
  works_.peers.want(path.link);
}

/// The peer has gone from this rail. It is gone for good if it is on no other one.
void Silence::path_gone(Path& path) {
  if (!works_.paths.on_path_gone(path)) {
    works_.sessions.peer_gone(path.link);
  }
  if (path.rest.on) {
    end_rest(path);
  }
}

/// Record an event. @return the path to the peer that has gone; null: no known peer has gone.
Path* Silence::note_event(const pmd::CardEvent& event) {
  if (event.type == regs::EventType::kOverflow) {
    gone_.clear();  // some peers may have come back
  }
  if (event.type == regs::EventType::kLink) {
    works_.paths.on_link(rail_, event.info != 0);
  }
  if (event.type != regs::EventType::kPartner) {
    return nullptr;
  }
  if (event.info != 0) {
    gone_.erase(event.source);
    return nullptr;
  }
  gone_.insert(event.source);
  return works_.peers.find(rail_.index, event.source);
}

}  // namespace rio::msg
