#include "lib/msg/retries.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

/// Whether messages to the peer are not resent yet.
[[nodiscard]] bool is_waiting(const Link& link) {
  return link.path->rest.on ||
         (link.peer_rails != nullptr && base::now_ns() < link.peer_rails->wait_until_ns);
}

}  // namespace

void Retries::keep(Link& link, Again message) {
  ++link.backlog.again;
  again_.push_back(std::move(message));
}

uint64_t Retries::take_since(const Rail& rail, uint32_t entry) {
  const auto known = std::find_if(resent_.begin(), resent_.end(), [&](const Resent& resent) {
    return resent.rail == &rail && resent.entry == entry;
  });
  if (known == resent_.end()) {
    return 0;
  }
  const uint64_t since_ns = known->since_ns;
  arrived_or_failed(*known);
  resent_.erase(known);
  return since_ns;
}

bool Retries::is_resent(const Rail& rail, uint32_t entry) const {
  return std::any_of(resent_.begin(), resent_.end(), [&](const Resent& resent) {
    return resent.rail == &rail && resent.entry == entry;
  });
}

/// A resent message is completed.
void Retries::arrived_or_failed(const Resent& resent) {
  Link& link = peers_.at(resent.link);
  link.backlog.resent -= resent.session == link.session ? 1 : 0;
}

void Retries::send_again() {
  static_cast<void>(listening_.now_ns());  // messages wait for answers
  std::erase_if(resent_, [&](const Resent& resent) {
    const pmd::TxQueue& ring = resent.rail->outbox.ring();
    const bool over = ring.next_index() - resent.entry > ring.next_index() - ring.oldest_index() &&
                      !ring.is_straggler(resent.entry);
    if (over) {
      arrived_or_failed(resent);
    }
    return over;
  });
  for (Again& again : std::exchange(again_, {})) {
    Link& link = peers_.at(again.link);
    // Making room may end the session, or begin a rest: check both afterwards.
    const bool room = link.outbox->take_room();
    if (again.session != link.session) {
      continue;
    }
    if (!room || is_waiting(link) || link.backlog.resent >= kAgainMax) {
      again_.push_back(std::move(again));
      continue;
    }
    ++stats_.again;
    link.outbox->count_again();
    --link.backlog.again;
    ++link.backlog.resent;
    const Rail& rail = link.path->rail;
    resent_.push_back(
        {again.link, again.session, &rail, rail.outbox.ring().next_index(), again.since_ns});
    link.outbox->post_again(link, again.bytes);
  }
}

void Retries::post_flushed() {
  for (Again& each : std::exchange(flushed_, {})) {
    Link& link = peers_.at(each.link);
    if (link.session != each.session) {
      continue;
    }
    if (link.backlog.held || link.path->rest.on || each.resent || link.outbox->stopped() ||
        !link.outbox->ring().has_room(0)) {
      hold(link);
      keep(link, std::move(each));
    } else {
      link.outbox->post_again(link, each.bytes);
    }
  }
}

void Retries::salvage(const Rail& rail) {
  const pmd::TxQueue& ring = rail.outbox.ring();
  const auto keep_slot = [&](uint32_t entry) {
    Path* const path = peers_.find(rail.index, ring.slot_dest_id(entry));
    const uint8_t* const slot = ring.slot_va(entry);
    if (!ring.is_slot(entry) || path == nullptr || &path->link.path->rail == &rail ||
        load_header(slot).kind() >= Kind::kHello ||
        load_header(slot).key() != path->link.keys.remote) {
      return;
    }
    Link& link = path->link;
    hold(link);
    const uint64_t since_ns = take_since(rail, entry);
    keep(link, {link.index(),
                link.session,
                since_ns != 0 ? since_ns : listening_.now_ns(),
                {slot, slot + ring.slot_bytes(entry)}});
  };
  ring.for_each_straggler(keep_slot);
  for (uint32_t entry = ring.oldest_index(); entry != ring.next_index(); ++entry) {
    if (ring.is_out(entry)) {
      keep_slot(entry);
    }
  }
}

void Retries::drop(const Link& link) {
  std::erase_if(again_, [&](const Again& again) { return again.link == link.index(); });
}

bool Retries::has_due() const {
  return std::any_of(again_.begin(), again_.end(),
                     [&](const Again& again) { return !is_waiting(peers_.at(again.link)); });
}

void Retries::hold(Link& link) {
  if (!link.backlog.held) {
    held_.push_back(link.index());
  }
  link.hold();
}

void Retries::hold_if_greedy(const Rail& rail) {
  const pmd::TxQueue& ring = rail.outbox.ring();
  const auto hold_receiver = [&](uint32_t entry) {
    Path* const path = peers_.find(rail.index, ring.slot_dest_id(entry));
    if (path != nullptr && rail.outbox.messages_to(path->dest_id) >= rail.outbox.share()) {
      hold(path->link);
    }
  };
  hold_receiver(ring.oldest_index());
  hold_receiver(ring.last_aside());
}

void Retries::release_held() {
  std::erase_if(held_, [&](uint32_t index) {
    Link& link = peers_.at(index);
    if (!link.backlog.held) {
      return true;  // the session has ended
    }
    if (link.path->rest.on || link.backlog.again != 0 || link.backlog.resent != 0 ||
        link.outbox->messages_to(link.path->dest_id) >= Outbox::kOutMax / 2) {
      link.hold();
      return false;
    }
    link.release();
    return true;
  });
}

uint64_t Retries::find_lost(Link& link, uint32_t key, const uint32_t* not_taken) const {
  uint64_t lost = 0;
  std::vector<Again> unsent;
  const auto sort_out = [&](const Again& message, bool not_taken_yet) {
    const HeaderWords header = message.header();
    if (header.key() != key || !header.takes_credit()) {
      return;
    }
    const bool whole = header.kind() == Kind::kData || header.kind() == Kind::kDataImmediate;
    if (not_taken_yet && whole) {
      unsent.push_back(message);
    } else {
      lost |= 1ull << header.from();
    }
  };
  const auto check_slot = [&](const Path& path, uint32_t entry, bool is_out) {
    const pmd::TxQueue& ring = path.rail.outbox.ring();
    const uint8_t* const slot = ring.slot_va(entry);
    const bool is_late =
        not_taken != nullptr && static_cast<int32_t>(load_header(slot).number() - *not_taken) >= 0;
    if (ring.slot_dest_id(entry) == path.dest_id && ring.is_slot(entry) && (is_out || is_late)) {
      sort_out({link.index(), link.session, 0, {slot, slot + ring.slot_bytes(entry)}},
               !is_out && !is_resent(path.rail, entry));
    }
  };
  // Each slot keeps its last message; of older ones only stragglers have not arrived. Large data
  // ends with the session.
  for (const std::unique_ptr<Path>& each : link.paths) {
    if (each == nullptr) {
      continue;
    }
    const Path& path = *each;
    const pmd::TxQueue& ring = path.rail.outbox.ring();
    ring.for_each_straggler([&](uint32_t entry) { check_slot(path, entry, true); });
    for (uint32_t back = 1u << Outbox::kRingLog2; back != 0; --back) {
      const uint32_t entry = ring.next_index() - back;
      if (!ring.is_straggler(entry)) {
        const bool is_posted = static_cast<int32_t>(entry - ring.oldest_index()) >= 0;
        check_slot(path, entry, is_posted && ring.is_out(entry));
      }
    }
  }
  for (const std::vector<Again>* const kept : {&again_, &flushed_}) {
    for (const Again& again : *kept) {
      if (again.link == link.index() && again.session == link.session) {
        sort_out(again, again.never_left);
      }
    }
  }
  std::erase_if(unsent,
                [&](const Again& message) { return (lost >> message.header().from() & 1) != 0; });
  std::sort(unsent.begin(), unsent.end(), [](const Again& one, const Again& other) {
    return static_cast<int32_t>(one.header().number() - other.header().number()) < 0;
  });
  link.unsent = std::move(unsent);
  return lost;
}

void Retries::find_lost_late(Link& link, uint32_t not_taken) const {
  const std::vector<Again> before = std::move(link.unsent);
  uint64_t lost = find_lost(link, link.keys.former, &not_taken);
  if (link.state == LinkState::kUp || !before.empty()) {
    for (const Again& message : link.unsent) {  // messages of the new session may have overtaken it
      lost |= 1ull << message.header().from();
    }
    link.unsent = before;
  }
  link.keys.former = 0;
  link.lost |= lost;
}

}  // namespace rio::msg
