#include "lib/msg/rail_news.hpp"

#include <utility>

#include "base/log.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kPublishNs = 250'000'000;  // between two writes of the page

}  // namespace

const char* to_string(RailReason reason) {
  switch (reason) {
    case RailReason::kNone:
      return "none";
    case RailReason::kNoAnswer:
      return "no answer";
    case RailReason::kLinkDown:
      return "link down";
    case RailReason::kCardGone:
      return "card gone";
    case RailReason::kPeerGone:
      return "peer gone";
  }
  return "unknown";
}

uint32_t RailNews::rail_of(const Path& path) {
  return path.rail.index;
}

RailNews::Record& RailNews::record(const Path& path) {
  const uint32_t index = path.link.index();
  if (index >= records_.size()) {
    records_.resize(index + 1);
  }
  return records_[index][rail_of(path)];
}

void RailNews::start() {
  std::vector<std::string> cards;
  for (const Rail* const rail : port_.rails) {
    cards.push_back(rail->endpoint.name());
  }
  // Without the page, everything else works.
  static_cast<void>(page_.create(port_.rails.first().endpoint.dest_id(), cards));
}

RailStats RailNews::stats(uint32_t rail) const {
  RailStats stats;
  port_.rails.at(rail).add_counts(&stats);
  stats.moves = rails_[rail].moves;
  stats.downs = rails_[rail].downs;
  for (uint32_t i = 0; i < port_.peers.count(); ++i) {
    const Link& link = port_.peers.at(i);
    const Path* const path = link.paths[rail].get();
    // A peer with one rail is reached by the path in use, which is not searched.
    const bool is_found =
        path != nullptr && (link.peer_rails != nullptr ? path->is_found : link.path == path);
    if (link.state == LinkState::kUp && is_found) {
      ++stats.paths;
      stats.paths_up += path->state.is_up() && stats.gone == 0 ? 1 : 0;
    }
  }
  return stats;
}

void RailNews::write_page(uint64_t now_ns) {
  std::array<RailStats, kRailsMax> all;
  for (uint32_t i = 0; i < port_.rails.count(); ++i) {
    all[i] = stats(i);
  }
  page_.write(now_ns, {all.data(), port_.rails.count()});
  publish_ns_ = now_ns + kPublishNs;
}

void RailNews::observe(const Link& link, uint64_t now_ns) {
  if (link.state != LinkState::kUp) {
    forget(link);
    return;
  }
  for (const std::unique_ptr<Path>& path : link.paths) {
    if (path == nullptr) {
      continue;
    }
    Record& known = record(*path);
    if (path->is_found && path->state.is_up() && known.noted != Noted::kUp) {
      note_up(*path, known, now_ns);
    } else if (path->state.state() == rail::RailState::State::kDown && known.noted == Noted::kUp) {
      note_down(*path, known, now_ns);
    }
  }
}

void RailNews::forget(const Link& link) {
  for (const std::unique_ptr<Path>& path : link.paths) {
    if (path != nullptr) {
      const Noted was = std::exchange(record(*path).noted, Noted::kNothing);
      rails_[rail_of(*path)].down_now -= was == Noted::kDown ? 1 : 0;
    }
  }
}

void RailNews::note_up(const Path& path, Record& record, uint64_t now_ns) {
  OfRail& rail = rails_[rail_of(path)];
  const bool is_back = std::exchange(record.noted, Noted::kUp) == Noted::kDown;
  record.pending = RailReason::kNoAnswer;
  if (record.changes != 0 && !record.last.is_up) {
    ++changes_;
    ++record.changes;
    record.last.is_up = true;
    record.last.time_ns = now_ns;
  }
  if (is_back && --rail.down_now == 0) {
    base::log_info("rail %u, %s: reaches all its peers again", rail_of(path),
                   path.rail.endpoint.name().c_str());
  }
}

void RailNews::note_down(const Path& path, Record& record, uint64_t now_ns) {
  OfRail& rail = rails_[rail_of(path)];
  record.noted = Noted::kDown;
  ++changes_;
  ++record.changes;
  record.last = {rail_of(path), path.link.dest_id(), false, record.pending, now_ns};
  ++rail.downs;
  // CardHealth has logged that a card is gone, and a process that ends takes its cards away one
  // after the other.
  if (rail.down_now++ == 0 && record.pending != RailReason::kCardGone &&
      record.pending != RailReason::kPeerGone) {
    base::log_warning("rail %u, %s: %s, so destID %u is not reached by it now; check the cable",
                      rail_of(path), path.rail.endpoint.name().c_str(), to_string(record.pending),
                      path.link.dest_id());
  }
}

bool RailEvents::next(const RailNews& news, RailEvent* out) {
  if (changes_ == news.changes_) {
    return false;
  }
  told_.resize(news.records_.size());
  for (size_t link = 0; link < told_.size(); ++link) {
    for (uint32_t rail = 0; rail < kRailsMax; ++rail) {
      const RailNews::Record& record = news.records_[link][rail];
      if (told_[link][rail] != record.changes) {
        told_[link][rail] = record.changes;
        *out = record.last;
        return true;
      }
    }
  }
  changes_ = news.changes_;
  return false;
}

}  // namespace rio::msg
