// barrier: queue pairs are the members of a group, and each arrives again as soon as it may. The
// latency is the time from the last arrival to each member's exit.
#include <cstring>

#include "apps/testpmd/barrier_group.hpp"
#include "apps/testpmd/barrier_meeting.hpp"
#include "apps/testpmd/mode.hpp"
#include "apps/testpmd/text.hpp"
#include "base/random.hpp"
#include "lib/barrier/scheme.hpp"

namespace rio::testpmd {
namespace {

constexpr uint32_t kGroup = 1;
constexpr uint32_t kSlot = 0;

/// A member that this process polls.
struct Place {
  TestPort* port;
  uint32_t pair;
  uint32_t rank;
};

uint64_t last_epoch(const Place& place) {
  return place.port->barrier_epochs[place.pair];
}

/// The group of a run.
struct Members {
  std::vector<uint32_t> dest_ids;  // by rank
  std::vector<Place> ours;
};

/// The queue pairs that can be members: those of a card that is wired to itself, else the first one
/// of each card, since a card does not reach itself by its cable.
std::vector<Place> all_places(const RunSetup& setup) {
  std::vector<Place> places;
  const auto add = [&places](TestPort& port, uint32_t pair) {
    places.push_back({&port, pair, static_cast<uint32_t>(places.size())});
  };
  TestPort& first = *setup.ports.front();
  for (uint32_t pair = 0; first.wire == "loop" && pair < first.queue_pairs(); ++pair) {
    add(first, pair);
  }
  for (const auto& port : setup.ports) {
    if (port->wire != "loop") {
      add(*port, 0);
    }
  }
  return places;
}

/// Find the members that --ranks and --peers name.
int find_members(const RunSetup& setup, Members* out, std::string* error) {
  const Options& options = setup.options;
  std::vector<Place> places = all_places(setup);
  Members members;
  if (options.peers.empty()) {
    const auto ranks = options.ranks != 0 ? options.ranks : static_cast<uint32_t>(places.size());
    if (ranks > places.size()) {
      return fail(error,
                  "--ranks %u: there can be %zu; give a card that is wired to itself more queue "
                  "pairs (wire=loop,qps=%u), add cards, or name by --peers the destIDs of all "
                  "ranks, those of other processes too",
                  ranks, places.size(), ranks);
    }
    places.resize(ranks);
    for (const Place& place : places) {
      members.dest_ids.push_back(place.port->dest_id(place.pair));
    }
    members.ours = std::move(places);
    *out = std::move(members);
    return 0;
  }
  if (options.ranks != 0 && options.ranks != options.peers.size()) {
    return fail(error, "--ranks %u: --peers names %s; leave --ranks out", options.ranks,
                counted(options.peers.size(), "destID", "destIDs").c_str());
  }
  for (const uint32_t dest_id : options.peers) {
    if (std::ranges::count(options.peers, dest_id) > 1) {
      return fail(error, "--peers: destID 0x%x is there twice; name each rank once", dest_id);
    }
  }
  members.dest_ids = options.peers;
  for (uint32_t rank = 0; rank < options.peers.size(); ++rank) {
    for (const Place& place : places) {
      if (place.port->dest_id(place.pair) == options.peers[rank]) {
        members.ours.push_back({place.port, place.pair, rank});
      }
    }
  }
  if (members.ours.empty()) {
    return fail(error,
                "--peers: no port has any of these destIDs (port 0 has 0x%x); name those of all "
                "ranks, in their order",
                places.front().port->dest_id());
  }
  if (members.ours.size() != members.dest_ids.size() && options.count == 0) {
    return fail(error,
                "--peers: %zu of %zu ranks are of other processes, which must make as many "
                "barriers; give all of them the same --count",
                members.dest_ids.size() - members.ours.size(), members.dest_ids.size());
  }
  *out = std::move(members);
  return 0;
}

/// One member's barriers.
class BarrierStream final : public Stream {
 public:
  /// @param group the members of this process. @param member its number in `group`.
  BarrierStream(const RunSetup& setup, const Place& place, std::shared_ptr<const Members> members,
                std::shared_ptr<BarrierGroup> group, uint32_t member)
      : Stream(setup, *place.port),
        queue_(place.port->pair(place.pair).barriers()),
        members_(std::move(members)),
        group_(std::move(group)),
        rank_(place.rank),
        member_(member),
        last_epoch_(place.port->barrier_epochs[place.pair]),
        epoch_(last_epoch_),
        scheme_(setup.options.schedule),
        skew_ticks_(setup.options.skew_us * rte_get_tsc_hz() / 1'000'000),
        slots_(setup.options.via == BarrierStart::kSlot &&
               place.port->card().caps().barrier_slots != 0),
        random_(setup.options.seed + place.rank) {}

  [[nodiscard]] int open(std::string* error) override;
  uint32_t turn(bool may_send) noexcept override;
  [[nodiscard]] std::string label() const override {
    return "rank " + std::to_string(rank_) + ", " + Stream::label();
  }

 private:
  [[nodiscard]] bool start() noexcept;
  void finish(const pmd::BarrierDone& done) noexcept;

  pmd::BarrierQueue& queue_;
  const std::shared_ptr<const Members> members_;
  const std::shared_ptr<BarrierGroup> group_;
  const uint32_t rank_;
  const uint32_t member_;
  uint64_t& last_epoch_;  // the queue pair's last epoch, for later runs
  uint64_t epoch_;        // the one that runs, or that ended last
  const barrier::Scheme& scheme_;
  const uint64_t skew_ticks_;
  const bool slots_;
  base::Random random_;
  uint64_t arrive_tsc_ = 0;  // earliest time of the next arrival
  bool failed_ = false;      // whether the last barrier failed
  regs::BarrierDesc desc_{};
};

int BarrierStream::open(std::string* error) {
  barrier::Schedule schedule;
  const auto ranks = static_cast<uint32_t>(members_->dest_ids.size());
  const auto dest_id_of = [this](uint32_t rank) { return members_->dest_ids[rank]; };
  int rc = barrier::make_schedule(scheme_, ranks, rank_, &schedule);
  rc = rc != 0 ? rc : barrier::write_descriptor(schedule, {.group = kGroup}, dest_id_of, &desc_);
  if (rc != 0) {
    return fail(error, "rank %u: no schedule (%s)", rank_, std::strerror(-rc));
  }
  if (slots_ && queue_.load(kSlot, desc_, 0) != 0) {
    return fail(error, "rank %u: its barrier cannot be loaded; see the log above", rank_);
  }
  return 0;
}

bool BarrierStream::start() noexcept {
  const uint64_t next = epoch_ + 1;
  group_->arrive(member_, next, rte_rdtsc());
  const auto word = static_cast<uint32_t>(next);
  const pmd::BarrierRequest request{&desc_, 0, word};
  // Neither can be full: a member has one barrier at a time.
  const bool started = slots_ ? queue_.go(kSlot, word) : queue_.post(&request, 1) == 1;
  epoch_ = next;
  count_sent(started ? 1 : 0);
  return started;
}

void BarrierStream::finish(const pmd::BarrierDone& done) noexcept {
  const uint64_t now = rte_rdtsc();
  failed_ = done.status != pmd::Status::kOk;
  if (failed_) {
    note_failure(done.status);
  } else {
    const uint64_t last = group_->last_arrival(epoch_);
    if (last == 0) {
      stats.violations.add(1);
    } else {
      latency.add(now > last ? now - last : 0);
    }
    stats.rx_messages.add(1);
  }
  stats.retries.add(done.retries);
  in_flight_ -= 1;
  group_->end(member_, epoch_);
  last_epoch_ = epoch_;
  arrive_tsc_ =
      skew_ticks_ == 0
          ? 0
          : now + random_.below(static_cast<uint32_t>(std::min<uint64_t>(skew_ticks_, UINT32_MAX)));
}

uint32_t BarrierStream::turn(bool may_send) noexcept {
  pmd::BarrierDone done;
  if (queue_.reap(&done, 1) != 0) {  // also steps an emulated card before the member arrives
    finish(done);
    return 1;
  }
  if (in_flight_ != 0) {
    return 0;
  }
  if (left_ == 0) [[unlikely]] {
    set_finished();
    return 0;
  }
  if (arrive_tsc_ != 0 && rte_rdtsc() < arrive_tsc_) {
    return 0;
  }
  // After a failure members may be in different epochs, and none may be two ahead of another.
  if ((failed_ && !group_->all_ended(epoch_)) || !group_->may_arrive(epoch_ + 1, may_send)) {
    return 0;
  }
  return start() ? 1 : 0;
}

int check(const RunSetup& setup, std::string* error) {
  Members members;
  if (find_members(setup, &members, error) != 0) {
    return -EINVAL;
  }
  for (const Place& place : members.ours) {
    if ((place.port->pair(place.pair).rings() & pmd::ring_bit(regs::Ring::kBarrier)) != 0) {
      continue;
    }
    return place.port->card().caps().barrier_rounds == 0
               ? fail(error, "%s has no barrier engine; take another card",
                      place.port->name.c_str())
               : fail(error,
                      "%s was started without its barrier ring; start rio-testpmd with "
                      "--mode barrier",
                      place.port->name.c_str());
  }
  const auto ranks = static_cast<uint32_t>(members.dest_ids.size());
  if (ranks < 2) {
    return fail(error,
                "a barrier needs two ranks or more, and there is one; give a card that is wired to "
                "itself more queue pairs (--vdev raw_rio0,wire=loop,qps=8), or add cards");
  }
  if (std::ranges::any_of(members.ours, [first = last_epoch(members.ours[0])](const Place& place) {
        return last_epoch(place) != first;
      })) {
    return fail(error, "the ranks are in different barriers since an earlier run; start again");
  }
  return barrier::check_fits(setup.options.schedule, ranks, error);
}

int make(const RunSetup& setup, Streams* streams, std::string* error) {
  const auto members = std::make_shared<Members>();
  if (find_members(setup, members.get(), error) != 0) {
    return -EINVAL;
  }
  const auto count = static_cast<uint32_t>(members->ours.size());
  const auto group = std::make_shared<BarrierGroup>(count, last_epoch(members->ours[0]));
  for (uint32_t i = 0; i < count; ++i) {
    auto stream = std::make_unique<BarrierStream>(setup, members->ours[i], members, group, i);
    if (stream->open(error) != 0) {
      return -EINVAL;
    }
    streams->push_back(std::move(stream));
  }
  std::vector<pmd::QueuePair*> pairs;
  for (const Place& place : members->ours) {
    pairs.push_back(&place.port->pair(place.pair));
  }
  return meet(pairs, members->dest_ids, static_cast<uint32_t>(last_epoch(members->ours[0])), error);
}

std::string describe(const RunSetup& setup) {
  Members members;
  std::string ignored;
  (void)find_members(setup, &members, &ignored);  // check() has found them
  return counted(members.dest_ids.size(), "rank", "ranks") + ", " +
         barrier::to_string(setup.options.schedule);
}

}  // namespace

constinit const Mode kBarrierMode = {.name = "barrier",
                                     .max_bytes = kTransferBytesMax,
                                     .takes_offset = false,
                                     .sends_to_peers = false,
                                     .latency_of = "from the last arrival to leaving",
                                     .check = check,
                                     .make_streams = make,
                                     .describe = describe};

}  // namespace rio::testpmd
