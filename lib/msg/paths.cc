#include "lib/msg/paths.hpp"

#include <algorithm>
#include <bit>

#include "base/clock.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kTellMostNs = 1'000'000'000;
constexpr uint64_t kWaitPart = 4;  // of a response time-out, for another path to answer
constexpr uint32_t kProbeBytes = 8;
constexpr uint32_t kProbeAlign = 64;

void on_answer(DmaTransfer& question) {
  Path& path = *static_cast<Path*>(question.user);
  path.is_probed = false;
  const uint64_t now = base::now_ns();
  if (question.status == pmd::Status::kOk || question.status == pmd::Status::kErrorResponse ||
      question.status == pmd::Status::kRetryExpired) {
    path.state.probe_answered(now);
  } else if (question.status == pmd::Status::kFlushed) {
    path.state.probe_unsent();
  } else {
    path.state.probe_unanswered(now);
  }
}

}  // namespace

void Paths::meet(Link& link, uint32_t rails) {
  if (port_.rails.count() == 1 || rails < 2 || rails > kRailsMax) {
    if (link.peer_rails != nullptr) {  // the peer's process before had several
      std::erase(met_, link.index());
      news_.forget(link);
      link.peer_rails.reset();
      link.paths[0]->remote = 0;
      port_.rails.first().outbox.use(*link.paths[0]);
    }
    return;
  }
  if (link.peer_rails == nullptr) {
    link.peer_rails = std::make_unique<PeerRails>();
    met_.push_back(link.index());
  } else if (link.peer_rails->session == link.session) {
    return;
  }
  *link.peer_rails = {.session = link.session};
  link.peer_rails->chooser.emplace(policy_, rail::only(link.path->rail.index), link.index(),
                                   port_.rails.first().endpoint.dest_id() < link.dest_id());
  for (const std::unique_ptr<Path>& path : link.paths) {
    if (path != nullptr) {
      path->is_found = false;
      path->remote = path.get() == link.path ? path->remote : Path::kNoRail;
    }
  }
}

void Paths::check() {
  if (met_.empty()) {
    return;
  }
  for (Rail* const rail : port_.rails) {
    if (rail->dma != nullptr && rail->dma->busy()) {
      rail->dma->progress();
    }
  }
  const uint64_t now = base::now_ns();
  is_calm_ = true;
  for (const uint32_t index : met_) {
    Link& link = port_.peers.at(index);
    PeerRails& peer = *link.peer_rails;
    news_.observe(link, now);
    if (link.state != LinkState::kUp) {
      continue;
    }
    if (!peer.has_ours && now >= peer.tell_ns && say_rails(link)) {
      peer.tell_ns = now + peer.wait_ns;
      peer.wait_ns = std::min(2 * peer.wait_ns, kTellMostNs);
    }
    for (Rail* const rail : port_.rails) {
      Path* const path = link.paths[rail->index].get();
      if (path == nullptr || !path->is_found) {
        search(link, *rail, now);
      } else if (path->state.probe_due(now)) {
        probe(*path, now);
      }
      is_calm_ &= path == nullptr || !path->is_found || path->state.is_up();
    }
    if (!link.path->state.is_up() || link.outbox->ring().outstanding() == 0) {
      choose(link);
    }
  }
  news_.publish(now);
}

/// Read a word of the peer's memory, which the peer's card answers by itself. Any answer will do,
/// even a refusal.
void Paths::probe(Path& path, uint64_t now) {
  Rail& rail = path.rail;
  if (rail.dma == nullptr || rail.dma->gone()) {
    ask(path.link, rail, path.dest_id);
    path.state.probe_sent(now);
    path.is_asked = true;
    return;
  }
  if (path.is_probed) {
    return;
  }
  pmd::IovaRun& answer = answers_[rail.index];
  if (answer.va == nullptr) {
    pmd::DmaMemory memory;
    if (rail.endpoint.alloc(kProbeBytes, kProbeAlign, &memory) != 0) {
      return;
    }
    answer = {memory.va, memory.iova, memory.len_bytes};
  }
  path.probe = {.va = static_cast<uint8_t*>(answer.va),
                .run = &answer,
                .left_bytes = kProbeBytes,
                .dest_id = path.dest_id,
                .on_done = on_answer,
                .user = &path};
  path.is_probed = rail.dma->start(path.probe);
  if (path.is_probed) {
    path.state.probe_sent(now);
  }
}

void Paths::turn(Link& link) {
  const uint32_t count = port_.rails.count();
  for (uint32_t i = 1; i < count; ++i) {
    Path* const next = link.paths[(link.path->rail.index + i) % count].get();
    if (next != nullptr && next->rail.health.error() == 0) {
      next->rail.outbox.use(*next);
      return;
    }
  }
}

void Paths::on_failed(Path& path, pmd::Status status) {
  if (path.link.peer_rails == nullptr) {
    return;
  }
  const uint64_t now = base::now_ns();
  const uint32_t rank_before = path.state.rank();
  const bool is_in_use = path.link.path == &path;
  is_calm_ = false;
  if (status == pmd::Status::kResponseTimeout) {
    path.state.in_doubt(now);
  } else if (status == pmd::Status::kLinkDown) {
    news_.because(path, RailReason::kLinkDown);
    path.state.refused(now);
  }
  if (!path.link.path->state.is_up()) {
    choose(path.link);
  }
  if (path.state.rank() == rank_before) {
    return;
  }
  if (!is_in_use) {
    say(path.link, path.rail, Kind::kLeft);  // the peer would find out a time-out later
  } else if (path.link.path == &path) {
    // A path that was down is asked now. If it works again, its answer comes long before what would
    // be resent by this one is in doubt once more.
    path.link.peer_rails->wait_until_ns = now + port_.config.response_timeout_ns() / kWaitPart;
  }
}

void Paths::on_link(Rail& rail, bool is_up) {
  is_calm_ = false;
  const uint64_t now = base::now_ns();
  for (const uint32_t index : met_) {
    Link& link = port_.peers.at(index);
    if (Path* const path = link.paths[rail.index].get(); path != nullptr) {
      if (!is_up) {
        news_.because(*path, RailReason::kLinkDown);
      }
      is_up ? path->state.link_up(now) : path->state.link_down(now);
      if (!link.path->state.is_up()) {
        choose(link);
      }
    }
  }
}

bool Paths::on_path_gone(Path& path) {
  Link& link = path.link;
  if (link.peer_rails == nullptr) {
    return false;
  }
  if (&path != link.path && !path.is_found) {
    return true;  // the report is of an earlier process, whose successor has a session already
  }
  path.is_found = false;
  set_rails(link);
  news_.because(path, RailReason::kPeerGone);
  path.state.card_gone(base::now_ns());
  return choose(link);
}

void Paths::on_card_gone(Rail& rail) {
  is_calm_ = false;
  const uint64_t now = base::now_ns();
  for (const uint32_t index : met_) {
    Link& link = port_.peers.at(index);
    if (Path* const path = link.paths[rail.index].get(); path != nullptr) {
      news_.because(*path, RailReason::kCardGone);
      path->state.card_gone(now);
      choose(link);
      say_lost(link, rail);
    }
  }
}

/// Tell the peer about a rail of ours, by the path in use.
void Paths::say(const Link& link, const Rail& rail, Kind kind) {
  const RailBody body = {kMagic, link.keys.remote, link.keys.local,
                         static_cast<uint16_t>(rail.index), RailBody::kNone};
  static_cast<void>(link.outbox->say_to(link.path->dest_id,
                                        {link.keys.remote, HeaderWords::rest_of(0, 0, 0, kind, 0)},
                                        &body, sizeof(body)));
}

/// Make the chooser follow the paths that are found.
void Paths::set_rails(Link& link) {
  rail::RailSet rails = 0;
  for (const std::unique_ptr<Path>& path : link.paths) {
    rails |= path != nullptr && path->is_found ? rail::only(path->rail.index) : 0;
  }
  if (rails != 0) {
    link.peer_rails->chooser->set_rails(rails);
  }
}

rail::RailView Paths::view_of(const Link& link, bool is_large) const {
  rail::RailView view;
  uint32_t rank = 0;  // of the last resort
  for (const std::unique_ptr<Path>& path : link.paths) {
    if (path == nullptr || !path->is_found || path->rail.health.error() != 0) {
      continue;
    }
    const rail::RailSet one = rail::only(path->rail.index);
    const Outbox& outbox = path->rail.outbox;
    const bool has_room =
        is_large || (!outbox.stopped() && outbox.ring().has_room(Outbox::kReserve));
    view.up |= path->state.is_up() ? one : 0;
    if (path->state.is_last_resort() && path->state.rank() >= rank) {
      view.last_resort = path->state.rank() > rank ? one : view.last_resort | one;
      rank = path->state.rank();
    }
    view.room |= has_room && !path->rest.on ? one : 0;
  }
  return view;
}

rail::RailSet Paths::stripe_rails(const Link& link, uint64_t bytes) const {
  constexpr uint64_t kMessagesMost = UINT32_MAX;
  const uint64_t messages = bytes / pmd::mem::kMessagePage + 1;
  return link.peer_rails->chooser->stripe_rails(
      view_of(link, true), granted_, static_cast<uint32_t>(std::min(messages, kMessagesMost)));
}

/// @return null: the policy has none that may be used and has room.
Path* Paths::choose_by_policy(Link& link) const {
  constexpr uint64_t kMessageBytes = 256;  // nothing better is known
  rail::RailLoads loads = granted_;        // for the rates
  for (const Rail* const rail : port_.rails) {
    loads.set_queued(rail->index, rail->outbox.ring().outstanding() * kMessageBytes);
  }
  const int rail = link.peer_rails->chooser->small_rail(view_of(link, false), loads, kMessageBytes);
  return rail >= 0 ? link.paths[static_cast<uint32_t>(rail)].get() : nullptr;
}

/// The path that is most likely to work, of those that are not up or have no room.
Path* Paths::choose_any(const Link& link) {
  Path* best = nullptr;
  uint32_t best_cost = 0;
  for (const std::unique_ptr<Path>& each : link.paths) {
    if (each == nullptr || !each->is_found || each->rail.health.error() != 0) {
      continue;
    }
    constexpr uint32_t kRank = 1u << 20;
    constexpr uint32_t kWaits = 1u << 16;
    const uint32_t cost = (rail::RailState::kRankMost - each->state.rank()) * kRank +
                          (each->rest.on || each->rail.outbox.stopped() ? kWaits : 0) +
                          each->rail.outbox.ring().outstanding();
    if (best == nullptr || cost < best_cost) {
      best = each.get();
      best_cost = cost;
    }
  }
  return best;
}

bool Paths::choose(Link& link) {
  const uint64_t now = base::now_ns();
  Path* best = choose_by_policy(link);
  best = best != nullptr ? best : choose_any(link);
  if (best == nullptr) {
    return false;
  }
  if (!best->state.is_up()) {
    for (const std::unique_ptr<Path>& each : link.paths) {
      if (each != nullptr && each->is_found) {
        each->state.want(now);
      }
    }
  }
  if (best != link.path) {
    const Path& left = *link.path;
    news_.moved(left);
    best->rail.outbox.use(*best);
    link.peer_rails->wait_until_ns = 0;
    if (!left.state.is_up()) {
      left.rail.silence.call_back(left);
      say(link, left.rail, Kind::kLeft);
    }
    port_.peers.want(link);
  }
  return true;
}

Path* Paths::find(Link& link, uint32_t remote) const {
  if (link.peer_rails == nullptr) {
    return remote == 0 ? link.path : nullptr;
  }
  Path* path = nullptr;
  for (const std::unique_ptr<Path>& each : link.paths) {
    // Also one that was lost after the peer has chosen it: the attempt fails, and another follows.
    if (each != nullptr && each->remote == remote && (path == nullptr || each->is_found)) {
      path = each.get();
    }
  }
  return path;
}

bool Paths::is_left(const Path& path) {
  const auto& paths = path.link.paths;
  return path.link.peer_rails != nullptr &&
         std::any_of(paths.begin(), paths.end(), [&](const std::unique_ptr<Path>& each) {
           return each != nullptr && each->is_found && each->state.rank() > path.state.rank();
         });
}

Path& Paths::choose_for_large(const Link& link) const {
  const rail::RailSet rails = stripe_rails(link, 1);
  return rails != 0 ? *link.paths[std::countr_zero(rails)] : *link.path;
}

}  // namespace rio::msg
